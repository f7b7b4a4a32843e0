package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// Pages have every object that does not change exactly once, while others are created,
// changed and removed.
func pagesMissNothing(t *tester) {
	var want []string
	var writers []func() error
	for i := range 24 {
		want = append(want, fmt.Sprintf("%02d unchanged", i))
		t.put(want[i], idle)
		if i%3 == 0 {
			n, before := 0, key(fmt.Sprintf("%02d a", i))
			writers = append(writers, func() error {
				n++
				return t.changeAlone(before, n)
			})
		}
	}
	t.together(1, func(int) error {
		for round := range t.attempts / 4 {
			q := query([]string{idle}[:round%2]...)
			q.Limit = 1 + round%7
			got, err := t.readPages(q)
			if err != nil {
				return err
			}
			got = slices.DeleteFunc(got, func(id string) bool { return !strings.HasSuffix(id, "unchanged") })
			if !slices.Equal(got, want) {
				return fmt.Errorf("pages of %d have %q of the unchanged objects", q.Limit, got)
			}
		}
		return nil
	}, writers...)
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
func (t *tester) changeAlone(k lifecycle.Key, n int) error {
	r, err := t.store().Get(t.Context(), k)
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
	next := map[string]int{} // by writer: the number of its messages that were read
	read := func() error {
		for {
			list, err := t.store().(lifecycle.Outbox).Messages(t.Context(), 3)
			if err != nil || len(list) == 0 {
				return err
			}
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
	}
	t.together(writers, func(i int) error {
		id := fmt.Sprint("writer", i)
		return t.writeAlone(id, each, func(n int, c *lifecycle.Commit) {
			c.Messages = []lifecycle.Message{{Topic: "t", Key: id, Payload: fmt.Append(nil, id, " ", n)}}
		})
	}, read)
	for i := range writers {
		require.Equal(t, each, next[fmt.Sprint("writer", i)], "messages of writer %d", i)
	}
}
