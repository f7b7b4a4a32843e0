package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/interlock-go/interlock/lifecycle"
)

var listDemands = []demand{
	{name: "List/pages_during_changes", check: listPagesDuringChanges},
}

func owner(name string, epoch uint64) lifecycle.OwnerRef {
	return lifecycle.OwnerRef{Name: name, Epoch: epoch}
}

// Pages have every object that does not change exactly once, while others are created,
// changed and removed.
func listPagesDuringChanges(t *tester) {
	const unchanged, writers = 24, 8
	var want, others []string
	for i := range unchanged {
		want = append(want, fmt.Sprintf("%02d unchanged", i))
		others = append(others, fmt.Sprintf("%02d a", i), fmt.Sprintf("%02d z", i))
		t.put(want[i], idle)
	}
	read := func(round int) error {
		q := query([]string{idle}[:round%2]...)
		q.Limit = 1 + round%7
		got, err := t.readPages(q)
		got = slices.DeleteFunc(got, func(id string) bool { return !strings.HasSuffix(id, "unchanged") })
		if err == nil && !slices.Equal(got, want) {
			err = fmt.Errorf("pages of %d have %q of the unchanged objects", q.Limit, got)
		}
		return err
	}
	var done atomic.Bool
	t.together(writers+1, func(i int) error {
		if i == writers {
			defer done.Store(true)
			for round := range t.attempts / 4 {
				if err := read(round); err != nil {
					return err
				}
			}
			return nil
		}
		for n := 0; !done.Load(); n++ {
			if err := t.changeAlone(others[i*len(others)/writers], n); err != nil {
				return err
			}
		}
		return nil
	})
}

// readPages reads all pages and returns the ids, which are in order.
func (t *tester) readPages(q lifecycle.Query) (ids []string, err error) {
	for {
		page, err := t.store.List(t.Context(), q)
		if err != nil {
			return nil, err
		}
		for i := range page {
			if page[i].ID <= q.After {
				return nil, fmt.Errorf("%q follows %q", page[i].ID, q.After)
			}
			q.After = page[i].ID
			ids = append(ids, q.After)
		}
		if len(page) < q.Limit {
			return ids, nil
		}
	}
}

// changeAlone creates, moves or removes an object that has no other writer.
func (t *tester) changeAlone(id string, n int) error {
	r, err := t.store.Get(t.Context(), key(id))
	if err != nil {
		return err
	}
	ch := change(r, []string{idle, moving}[n%2])
	if n%3 == 2 && r.Exists() {
		ch = removal(r)
	}
	err = send(t.Context(), t.store, commitOf(ch))
	if errors.Is(err, lifecycle.ErrConflict) && !r.Exists() {
		return nil // the numbers of an absent object may have grown
	}
	return err
}
