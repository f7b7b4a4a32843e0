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

var listDemands = []demand{
	{name: "List/returns_records", check: listReturnsRecords},
	{name: "List/by_state", check: listByState},
	{name: "List/not_owned_by", check: listNotOwnedBy},
	{name: "List/unowned_and_no_deadline", check: listUnownedAndNoDeadline},
	{name: "List/order_of_ids", check: listOrderOfIDs},
	{name: "List/pages", check: listPages},
	{name: "List/pages_during_changes", check: listPagesDuringChanges},
}

// List returns the present records with all fields. With WithoutPayload, Payload,
// Saved and Args are nil, and all other fields are the same.
func listReturnsRecords(t *tester) {
	a := t.write(t.fullChange(t.get(key("a"))))
	b := t.move(t.put("b", idle), moving)
	equal(t, []lifecycle.StoredRecord{a, b}, t.list(query()), "the list")
	b = t.move(b, broken)
	a.Payload, a.Saved, a.Args, b.Payload = nil, nil, nil, nil
	for _, q := range []lifecycle.Query{query(), query(a.State, b.State)} {
		q.WithoutPayload = true
		found := t.list(q)
		equal(t, []lifecycle.StoredRecord{a, b}, found, "the list without payloads")
		require.Nil(t, found[0].Payload)
		require.Nil(t, found[0].Args)
	}
	a = t.move(t.remove(t.get(a.Key)), moving)
	equal(t, []lifecycle.StoredRecord{a, t.get(b.Key)}, t.list(query()), "the list")
}

// With States, List returns objects that are in one of the states now. A state may be
// named twice, and no object need be in it. Origin and target do not count.
func listByState(t *tester) {
	t.put("a", idle)
	t.put("b", moving)
	c := t.put("c", idle)
	t.put("d", broken)
	t.finds(query(), "a", "b", "c", "d")
	t.finds(query(idle), "a", "c")
	t.finds(query(moving, broken), "b", "d")
	t.finds(query(broken, idle, broken, "unused"), "a", "c", "d")
	t.finds(query("unused"))
	t.finds(query(""))
	c = t.move(c, moving)
	t.finds(query(idle), "a")
	t.finds(query(moving), "b", "c")
	t.remove(c)
	t.finds(query(moving), "b")
	ch := change(t.get(key("b")), "Stopping")
	ch.To.Origin, ch.To.Target = idle, broken
	t.write(ch)
	t.finds(query(idle), "a")
	t.finds(query(broken), "d")
	t.finds(query("Stopping"), "b")
}

// own moves an object to a state in which it has an owner.
func (t *tester) own(id, state, owner string, epoch uint64) {
	t.Helper()
	ch := change(t.get(key(id)), state)
	ch.To.Owner, ch.To.Epoch = owner, epoch
	t.write(ch)
}

// notOwnedBy selects all objects with an owner that is none of these.
func notOwnedBy(owners ...lifecycle.OwnerRef) lifecycle.Query {
	return lifecycle.Query{Machine: machine, NotOwnedBy: append([]lifecycle.OwnerRef{}, owners...)}
}

func owner(name string, epoch uint64) lifecycle.OwnerRef {
	return lifecycle.OwnerRef{Name: name, Epoch: epoch}
}

// With NotOwnedBy, List returns objects that have an owner which is none of these by
// name and epoch. An empty list selects all objects with an owner.
func listNotOwnedBy(t *tester) {
	t.own("a", moving, "one", 1)
	t.own("b", moving, "two", 1)
	t.own("c", moving, "one", 2)
	t.own("d", idle, "three", 1<<62)
	t.put("e", moving)
	t.finds(notOwnedBy(), "a", "b", "c", "d")
	t.finds(notOwnedBy(owner("one", 1)), "b", "c", "d")
	t.finds(notOwnedBy(owner("two", 1), owner("one", 1)), "c", "d")
	t.finds(notOwnedBy(owner("one", 2), owner("one", 1), owner("one", 2)), "b", "d")
	t.finds(notOwnedBy(owner("ONE", 1), owner("on", 1), owner("one ", 1), owner("one", 3), owner("", 0)), "a", "b", "c", "d")
	t.finds(notOwnedBy(owner("three", 1<<62), owner("two", 1), owner("one", 2), owner("one", 1)))
	many := []lifecycle.OwnerRef{owner("one", 1), owner("two", 1)} // engines limit the size of a statement
	for i := range 1000 {
		many = append(many, owner(fmt.Sprint("process ", i/2), uint64(1+i%2)))
	}
	t.finds(notOwnedBy(many...), "c", "d")
	q := notOwnedBy(owner("one", 1))
	q.States = []string{idle}
	t.finds(q, "d")
	q.States, q.After, q.Limit = nil, "b", 1
	t.finds(q, "c")
	t.own("c", moving, "", 0)
	t.own("b", moving, "one", 1)
	t.finds(notOwnedBy(owner("one", 1)), "d")
	t.remove(t.get(key("d")))
	t.finds(notOwnedBy(), "a", "b")
}

// With Unowned, List returns objects without an owner. With NoDeadline, List returns
// objects without a deadline.
func listUnownedAndNoDeadline(t *tester) {
	t.own("a", moving, "one", 1)
	t.due("b", moving, hour)
	t.put("c", moving)
	t.put("d", idle)
	unowned, noDeadline := query(), query()
	unowned.Unowned, noDeadline.NoDeadline = true, true
	t.finds(unowned, "b", "c", "d")
	t.finds(noDeadline, "a", "c", "d")
	both := query(moving)
	both.Unowned, both.NoDeadline = true, true
	t.finds(both, "c")
	contradiction := notOwnedBy()
	contradiction.Unowned = true
	t.finds(contradiction)
	t.finds(lifecycle.Query{Machine: machine, NoDeadline: true, Overdue: true})
	t.own("c", moving, "one", 1)
	t.due("d", idle, hour)
	t.put("a", moving)
	t.put("b", moving)
	t.finds(unowned, "a", "b", "d")
	t.finds(noDeadline, "a", "b", "c")
}

// Records are in order of the bytes of their ids. After excludes the id itself and all
// ids below, also if no object has that id.
func listOrderOfIDs(t *tester) {
	ids := []string{"b", "a", "B", "a ", "a/1", "ab", "a-b", "aa", "é", "e", "10", "9", "~", "日本", "e\u0301"}
	for _, id := range ids {
		t.put(id, idle)
	}
	slices.Sort(ids)
	t.finds(query(), ids...)
	t.finds(query(idle, moving), ids...)
	for _, after := range append([]string{"A", "C", "a!", "b ", "zz", "ê"}, ids...) {
		want := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id <= after })
		q := query()
		q.After = after
		t.finds(q, want...)
		q.States = []string{idle}
		t.finds(q, want...)
	}
}

// Pages of every size have every selected object once and in order. A page has Limit
// records while there are more, also if many objects are not selected.
func listPages(t *tester) {
	owners := []lifecycle.OwnerRef{owner("p", 1), owner("q", 1), owner("p", 2), owner("r", 9), {}}
	selected := map[string][]string{} // by query
	const objects = 35
	for i := range objects {
		n := i * 11 % objects // not in order of id
		id, state, o := fmt.Sprintf("o%02d", n), []string{idle, moving, broken, broken}[n/5%4], owners[n%5]
		t.own(id, state, o.Name, o.Epoch)
		selected[state] = append(selected[state], id)
		selected["all"] = append(selected["all"], id)
		if n%5 == 0 || n%5 == 3 {
			selected["owned"] = append(selected["owned"], id)
		}
		if state != broken {
			selected["not broken"] = append(selected["not broken"], id)
		}
	}
	for name, q := range map[string]lifecycle.Query{
		"all": query(), idle: query(idle), broken: query(broken), "not broken": query(idle, moving),
		"owned": notOwnedBy(owner("q", 1), owner("p", 2)),
	} {
		want := slices.Sorted(slices.Values(selected[name]))
		for q.Limit = 1; q.Limit <= len(want)+1; q.Limit++ {
			for from := 0; from < len(want); from += q.Limit {
				if q.After = ""; from > 0 {
					q.After = want[from-1]
				}
				t.finds(q, want[from:min(from+q.Limit, len(want))]...)
			}
			q.After = want[len(want)-1]
			t.finds(q)
		}
	}
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
