package storetest

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

func endDemands() []demand {
	return []demand{
		{
			name: "Context/ended_is_refused", run: endedIsRefused,
			says: "A call with a context that has ended returns its cause, and nothing is written or discarded.",
		},
		{
			name: "Context/ending_meanwhile_is_all_or_nothing", run: endingMeanwhile,
			says: "A commit whose context ends meanwhile is written if it returns nil, and not if it returns an error other than ErrUnknownOutcome.",
		},
		{
			name: "Context/ending_at_any_look", run: endingAtAnyLook,
			says: "So it is wherever the store looks at the context, from the first time to the last; an error then matches the context's and its cause, or is ErrUnknownOutcome, and a read is right or fails.",
		},
		{
			name: "Close/refuses_every_call", run: closedRefuses, needs: needCloser,
			says: "After Close every call returns ErrClosed; Close may be called twice.",
		},
		{
			name: "Close/during_calls", run: closeDuringCalls, needs: needCloser,
			says: "Calls that Close meets are done, or refused with ErrClosed.",
		},
		{
			name: "Reopen/keeps_everything", run: reopenKeeps, needs: needReopen,
			says: "What was acknowledged is there after the store was opened again: records, numbers, tokens, history and messages.",
		},
	}
}

// calls makes every call of a store with a context. The numbers are those of
// messages to be discarded.
func (t *trial) calls(ctx context.Context, r lifecycle.StoredRecord, numbers ...uint64) map[string]error {
	errs := map[string]error{}
	_, errs["Get"] = t.store.Get(ctx, r.Key)
	_, errs["List"] = t.store.List(ctx, lifecycle.Query{Machine: machine, Limit: 1})
	_, errs["List of an unknown machine"] = t.store.List(ctx, lifecycle.Query{Machine: "unknown", Limit: 1})
	errs["Commit of a move"] = send(ctx, t.store, commitOf(change(r, broken)))
	errs["Commit of a removal"] = send(ctx, t.store, commitOf(removal(r)))
	errs["Commit of a creation"] = send(ctx, t.store, commitOf(change(lifecycle.StoredRecord{Key: key("new")}, idle)))
	if h, ok := t.store.(lifecycle.Historian); ok {
		_, errs["History"] = h.History(ctx, r.Key, 0, all)
	}
	if o, ok := t.store.(lifecycle.Outbox); ok {
		_, errs["Messages"] = o.Messages(ctx, all)
		errs["Discard"] = o.Discard(ctx, numbers...)
	}
	return errs
}

func endedIsRefused(t *trial) {
	has := t.store.Capabilities()
	ch := commitOf(change(t.get(key("a")), idle))
	if has.Messages {
		ch.Messages = []lifecycle.Message{message("kept")}
	}
	t.commit(ch)
	r := ch.Changes[0].To
	var numbers []uint64
	if has.Messages {
		numbers = t.told(t.messages(all), ch.Messages)
	}
	never := t.get(key("new"))

	cause := errors.New("storetest: the cause")
	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	late, stop := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer stop()
	for ctx, want := range map[context.Context]error{cancelled: cause, late: context.DeadlineExceeded} {
		for what, err := range t.calls(ctx, r, numbers...) {
			if !errors.Is(err, want) || !errors.Is(err, ctx.Err()) {
				t.Errorf("%s with a context that has ended is to return an error that matches %q and its cause, %q, it returns: %v",
					what, ctx.Err(), want, err)
			}
		}
		t.stays("calls with a context that has ended", r, never)
	}
	if has.History {
		if rows := t.history(r.Key, 0, all); len(rows) != 1 {
			t.Errorf("after calls with a context that has ended there are %d rows, not 1", len(rows))
		}
	}
	if has.Messages {
		t.told(t.messages(all), ch.Messages)
	}
}

func endingMeanwhile(t *trial) {
	r := t.put(key("a"), idle)
	for range t.attempts {
		ctx, cancel := context.WithCancel(t.Context())
		c := commitOf(change(r, moving))
		together(2, func(i int) {
			if i == 0 {
				cancel()
				return
			}
			err := send(ctx, t.store, c)
			if errors.Is(err, lifecycle.ErrUnknownOutcome) {
				err = send(t.Context(), t.store, again(c)) // settles it
			}
			now, errGet := t.store.Get(t.Context(), r.Key)
			if errGet != nil {
				t.Errorf("Get: %v", errGet)
				return
			}
			if written := now.Sequence != r.Sequence; (err == nil) != written {
				t.Errorf("a commit whose context ended meanwhile returned %v, written: %t", err, written)
			}
			if errors.Is(err, lifecycle.ErrConflict) {
				t.Errorf("a commit that nobody contests: %v", err)
			}
		})
		cancel()
		r = t.get(r.Key)
	}
}

func closedRefuses(t *trial) {
	r := t.put(key("a"), idle)
	for range 2 {
		if err := t.store.(io.Closer).Close(); err != nil && !errors.Is(err, lifecycle.ErrClosed) {
			t.Errorf("Close: %v", err)
		}
		for what, err := range t.calls(t.Context(), r) {
			if !errors.Is(err, lifecycle.ErrClosed) {
				t.Errorf("%s of a closed store is to return ErrClosed, it returns: %v", what, err)
			}
		}
	}
}

func closeDuringCalls(t *trial) {
	const callers = 8
	var records [callers]lifecycle.StoredRecord
	for i := range records {
		records[i] = t.put(key(writerID(i)), idle)
	}
	begun := make(chan struct{}, callers)
	together(callers+1, func(i int) {
		if i == callers {
			for range callers {
				<-begun
			}
			if err := t.store.(io.Closer).Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
			return
		}
		for n, r := 0, records[i]; ; n++ {
			c := commitOf(change(r, moving))
			err := send(t.Context(), t.store, c)
			if n == 0 {
				begun <- struct{}{}
			}
			switch {
			case errors.Is(err, lifecycle.ErrClosed):
				return
			case err != nil:
				t.Errorf("Commit to a store that is being closed: %v", err)
				return
			}
			r = c.Changes[0].To
		}
	})
}

func reopenKeeps(t *trial) {
	t.keeps("the store was opened again", func() {
		t.store = t.h.Reopen(t.TB, t.store)
		if t.store == nil {
			t.Fatal("storetest: Reopen of the harness returned no store")
		}
		closeLater(t.TB, t.store)
	})
}

// keeps demands that what was acknowledged is there after an end, twice, and that
// the store goes on with it.
func (t *trial) keeps(what string, end func()) {
	has := t.store.Capabilities()
	a := t.get(key("a"))
	c := commitOf(lifecycle.StoredChange{Expect: a.Revision, To: full(a.Key), Timeout: hour})
	c.Changes[0].To.Sequence = a.Sequence + 1
	if has.Messages {
		c.Messages = []lifecycle.Message{message("one"), message("two")}
	}
	sent, filled := t.sent(c)
	a = filled.Changes[0].To
	left := t.remove(t.move(t.put(key("b"), idle), moving))
	outdated := t.put(key("c"), idle)
	now := t.move(outdated, moving)
	for range 2 {
		end()
		t.stays(what, a, now, left)
		t.found(lifecycle.Query{Machine: machine}, "a", "c")
		t.found(lifecycle.Query{Machine: machine, States: []string{moving}}, "c")
		t.refused(commitOf(change(outdated, broken)), "an outdated revision, after "+what)
		if has.History {
			t.repeat(sent, filled, "after "+what)
			t.newest(t.history(a.Key, 0, all), []lifecycle.HistoryRow{filled.Changes[0].Row(filled.Token)}, 1)
		}
		if has.Messages {
			t.told(t.messages(all), c.Messages)
		}
		again := t.move(now, moving) // under a revision of its own
		if again.Revision == now.Revision || again.Revision == outdated.Revision {
			t.Errorf("revision %q is repeated after %s", again.Revision, what)
		}
		outdated, now = now, again
	}
	made := t.move(left, idle)
	t.isAbove(made, left)
	if made.Revision == left.Revision {
		t.Errorf("revision %q is repeated after %s", made.Revision, what)
	}
}
