package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/interlock-go/interlock/lifecycle"
)

func recallDemands() []demand {
	return []demand{
		{
			name: "Recall/is_what_get_returns", run: recallsWhatIsRead, needs: needRecall,
			says: "What is recalled after a Get, a commit or a conflict is, in every field, what Get returns, and of no other object.",
		},
		{
			name: "Recall/nothing_that_was_not_written", run: recallsWhatIsWritten, needs: needRecall,
			says: "Nothing of a refused commit is recalled, nor of a commit that was written before under its token and says something else now, and nothing is recalled that was removed.",
		},
		{
			name: "Recall/belongs_to_a_revision", run: recallsUnderWriters, needs: needRecall,
			says: "While 8 goroutines move and remove an object, what is recalled is always a record that was committed, with its own revision.",
		},
	}
}

func (t *trial) recall(k lifecycle.Key) (lifecycle.StoredRecord, bool) {
	return t.store.(lifecycle.Recaller).Recall(k)
}

// recalls demands that nothing is recalled, or the record as it is.
func (t *trial) recalls(after string, k lifecycle.Key) {
	t.Helper()
	r, ok := t.recall(k)
	if now := t.get(k); ok {
		same(t, "recalled after "+after, r, now)
	}
	if r, ok = t.recall(k); ok {
		same(t, "recalled after "+after+" and a Get", r, t.get(k))
	}
}

func recallsWhatIsRead(t *trial) {
	ch := change(t.get(key("a")), moving)
	to := full(ch.To.Key)
	to.Sequence, to.Operation = ch.To.Sequence, ch.To.Operation
	ch.To, ch.Within = to, hour
	t.write(ch)
	t.recalls("a commit of a new object", key("a"))
	t.write(beat(t.get(key("a")), "another", 7))
	t.recalls("a quiet change", key("a"))
	before := t.get(key("a"))
	bare := change(before, idle)
	bare.To.Payload, bare.To.Reason = nil, "because\xff"
	t.write(bare)
	t.recalls("a commit without a payload", key("a"))
	empty := change(t.get(key("a")), idle)
	empty.To.Payload, empty.To.Saved = lifecycle.RawPayload{}, lifecycle.RawPayload{}
	t.write(empty)
	t.recalls("a commit with empty payloads", key("a"))
	t.refused(commitOf(change(before, broken)), "an old revision")
	t.recalls("a conflict", key("a"))
	for i := range 40 { // as much as some store remembers, and more
		t.put(key(fmt.Sprint("x", i)), idle)
	}
	for i := range 40 {
		t.recalls("commits of others", key(fmt.Sprint("x", i)))
	}
	if r, ok := t.recall(key("nobody")); ok {
		t.Errorf("of an object that never was %s is recalled", in(&r))
	}
}

func recallsWhatIsWritten(t *trial) {
	before := t.put(key("a"), idle)
	t.move(before, moving)
	t.refused(commitOf(change(before, broken)), "an old revision")
	t.recalls("a refused commit", key("a"))

	written := commitOf(change(t.get(key("a")), idle))
	other := again(written)
	t.commit(written)
	other.Changes[0].To.Payload = lifecycle.RawPayload("what nobody has written")
	_ = t.store.Commit(t.Context(), other)
	t.recalls("a commit with a token that was used", key("a"))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := t.store.Commit(ctx, commitOf(change(t.get(key("a")), broken))); !errors.Is(err, context.Canceled) {
		t.Errorf("a commit under a context that has ended is to be its error, it is: %v", err)
	}
	t.recalls("a commit under a context that has ended", key("a"))

	t.write(removal(t.get(key("a"))))
	if r, ok := t.recall(key("a")); ok && r.Exists() {
		if _, err := t.store.Get(t.Context(), key("a")); err == nil {
			t.Errorf("after its removal the object is recalled: %s", in(&r))
		}
	}
	t.put(key("a"), idle)
	t.recalls("a removal and a new life", key("a"))
}

func recallsUnderWriters(t *trial) {
	k := key("a")
	var mu sync.Mutex
	contents := map[lifecycle.Revision]lifecycle.StoredRecord{} // by revision, of what was committed
	var recalled []lifecycle.StoredRecord
	var bad atomic.Pointer[string]
	fail := func(format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		bad.CompareAndSwap(nil, &text)
	}
	together(8, func(w int) {
		for i := range t.attempts {
			if r, ok := t.recall(k); ok {
				mu.Lock()
				recalled = append(recalled, r)
				mu.Unlock()
			}
			now, err := t.store.Get(t.Context(), k)
			if err != nil {
				fail("Get: %v", err)
				return
			}
			ch := change(now, []string{idle, moving, broken}[i%3])
			ch.To.Reason, ch.To.Payload = fmt.Sprint(w, " ", i), lifecycle.RawPayload(fmt.Sprint("of ", w, " in its round ", i))
			if now.Exists() && i%10 == 9 {
				ch = removal(now)
			}
			c := commitOf(ch)
			switch err := send(t.Context(), t.store, c); {
			case err == nil:
				mu.Lock()
				contents[c.Changes[0].To.Revision] = c.Changes[0].To
				mu.Unlock()
			case !errors.Is(err, lifecycle.ErrConflict):
				fail("Commit: %v", err)
				return
			}
		}
	})
	if text := bad.Load(); text != nil {
		t.Fatal(*text)
	}
	for _, r := range recalled {
		want, ok := contents[r.Revision]
		if !ok {
			t.Fatalf("a record was recalled that nobody has committed: %s", in(&r))
		}
		same(t, "recalled under writers", r, want)
	}
}
