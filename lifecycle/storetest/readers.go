package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// Pages have every object that does not change exactly once, while others are created,
// changed and removed.
func pagesMissNothing(t *tester) {
	const unchanged, writers = 24, 8
	var want, others []string
	for i := range unchanged {
		want = append(want, fmt.Sprintf("%02d unchanged", i))
		others = append(others, fmt.Sprintf("%02d a", i), fmt.Sprintf("%02d z", i))
		t.put(want[i], idle)
	}
	var done atomic.Bool
	t.together(writers+1, func(i int) error {
		for n := 0; i < writers && !done.Load(); n++ {
			if err := t.changeAlone(others[i*len(others)/writers], n); err != nil {
				return err
			}
		}
		if i < writers {
			return nil
		}
		defer done.Store(true)
		for round := range t.attempts / 4 {
			q := query([]string{idle}[:round%2]...)
			q.Limit = 1 + round%7
			got, err := t.readPages(q)
			got = slices.DeleteFunc(got, func(id string) bool { return !strings.HasSuffix(id, "unchanged") })
			if err == nil && !slices.Equal(got, want) {
				err = fmt.Errorf("pages of %d have %q of the unchanged objects", q.Limit, got)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// readPages reads all pages and returns the ids, which are in order.
func (t *tester) readPages(q lifecycle.Query) (ids []string, err error) {
	for {
		page, err := t.store().List(t.Context(), q)
		if err != nil {
			return nil, err
		}
		for _, id := range idsOf(page) {
			if id <= q.After {
				return nil, fmt.Errorf("%q follows %q", id, q.After)
			}
			q.After, ids = id, append(ids, id)
		}
		if len(page) < q.Limit {
			return ids, nil
		}
	}
}

// changeAlone creates, moves or removes an object that has no other writer.
func (t *tester) changeAlone(id string, n int) error {
	r, err := t.store().Get(t.Context(), key(id))
	if err != nil {
		return err
	}
	ch := change(r, []string{idle, moving}[n%2])
	if n%3 == 2 && r.Exists() {
		ch = removal(r)
	}
	err = t.send(commitOf(ch))
	if errors.Is(err, lifecycle.ErrConflict) && !r.Exists() {
		return nil // the numbers of an absent object may have grown
	}
	return err
}

// A reader that discards what it has read gets every message once, and those of one
// object in order, while many callers commit.
func messagesAreReadOnce(t *tester) {
	t.needs(t.has.Messages, "the store declares no Messages")
	const writers = 8
	each := max(1, t.attempts/5)
	var writing atomic.Int64
	writing.Store(writers)
	next := map[string]int{} // by writer: the number of its messages that were read
	t.together(writers+1, func(i int) error {
		if i < writers {
			defer writing.Add(-1)
			return t.emit(fmt.Sprint("writer", i), each)
		}
		for last := false; ; {
			list, err := t.store().(lifecycle.Outbox).Messages(t.Context(), 3)
			if err != nil || len(list) == 0 && last {
				return err
			}
			last = writing.Load() == 0 // one more page, of what was written before this
			var numbers []uint64
			for _, m := range list {
				numbers = append(numbers, m.Number)
				if want := fmt.Sprint(m.Key, " ", next[m.Key]); string(m.Payload) != want {
					return fmt.Errorf("a reader has got message %q instead of %q", m.Payload, want)
				}
				next[m.Key]++
			}
			if err := t.store().(lifecycle.Outbox).Discard(t.Context(), numbers...); err != nil {
				return err
			}
		}
	})
	for i := range writers {
		require.Equal(t, each, next[fmt.Sprint("writer", i)], "messages of writer %d", i)
	}
}

// emit commits n times to an object of its own, with a message each time.
func (t *tester) emit(id string, n int) error {
	r, err := t.store().Get(t.Context(), key(id))
	for i := 0; i < n && err == nil; i++ {
		c := commitOf(change(r, moving))
		c.Messages = []lifecycle.Message{{Topic: "t", Key: id, Payload: fmt.Append(nil, id, " ", i)}}
		err = t.send(c)
		r = c.Changes[0].To
	}
	return err
}
