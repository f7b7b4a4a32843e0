package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/interlock-go/interlock/lifecycle"
)

func listDemands() []demand {
	return []demand{
		{
			name: "List/returns_what_get_returns", run: listReturnsRecords,
			says: "A listed record is the present one, with all fields and payloads.",
		},
		{
			name: "List/of_one_machine", run: listOfOneMachine,
			says: "Only objects of the machine are listed, whatever their ids; of an unknown machine there are none.",
		},
		{
			name: "List/by_state", run: listByState,
			says: "With states, only objects that are in one of them now; a state may be named twice, and need not be anybody's.",
		},
		{
			name: "List/not_owned_by", run: listNotOwnedBy,
			says: "With NotOwnedBy, objects are listed that have an owner which is none of these, by name and epoch. An empty list selects all objects with an owner.",
		},
		{
			name: "List/not_owned_by_in_pages", run: listNotOwnedByInPages,
			says: "The pages of a query by NotOwnedBy, also with states, have every selected object once and in order of id.",
		},
		{
			name: "List/unowned", run: listUnowned,
			says: "With Unowned, only objects without an owner are listed.",
		},
		{
			name: "List/no_deadline", run: listNoDeadline,
			says: "With NoDeadline, only objects without a deadline are listed.",
		},
		{
			name: "List/without_payload", run: listWithoutPayload,
			says: "With WithoutPayload, Payload, Saved and Args of the records are nil, and all other fields are those of the object.",
		},
		{
			name: "List/in_order_of_id", run: listInOrder,
			says: "Records come in order of id, byte by byte, whatever the order of their creation.",
		},
		{
			name: "List/after_an_id", run: listAfter,
			says: "After excludes the id itself and what is below, also if no object has that id.",
		},
		{
			name: "List/pages_are_full", run: pagesAreFull,
			says: "A page has Limit records while there are more, also behind others that are not selected.",
		},
		{
			name: "List/every_object_once", run: everyObjectOnce,
			says: "The pages of any size have every selected object exactly once.",
		},
		{
			name: "List/every_object_once_while_others_change", run: listUnderChange,
			says: "So they do for objects that do not change while others come, move and go.",
		},
	}
}

func listReturnsRecords(t *trial) {
	never := t.get(key("a"))
	to := full(never.Key)
	to.Sequence = never.Sequence + 1
	a := t.write(lifecycle.StoredChange{Expect: never.Revision, To: to, Timeout: hour})
	b := t.move(t.put(key("b"), idle), moving)
	check := func(want ...lifecycle.StoredRecord) {
		found := t.list(lifecycle.Query{Machine: machine})
		if len(found) != len(want) {
			t.Fatalf("of %d objects %d are listed", len(want), len(found))
		}
		for i := range want {
			same(t, "listed record "+show(want[i].ID), found[i], want[i])
		}
	}
	check(a, b)
	b = t.move(b, broken)
	check(a, b)
	a = t.move(t.remove(a), moving)
	check(a, b)
}

// found demands the ids that a query selects.
func (t *trial) found(q lifecycle.Query, want ...string) {
	t.Helper()
	if got := t.ids(q); !slices.Equal(got, want) {
		t.Errorf("a query by %+v finds %q, not %q", q, got, want)
	}
}

func listOfOneMachine(t *trial) {
	for _, k := range []lifecycle.Key{
		{Machine: "crane", ID: "a"},
		{Machine: "crane", ID: "b"},
		{Machine: "cranes", ID: "a"},
		{Machine: "crane2", ID: "c"},
		{Machine: "Crane", ID: "d"},
		{Machine: "truck", ID: "b"},
	} {
		t.put(k, idle)
	}
	t.found(lifecycle.Query{Machine: "crane"}, "a", "b")
	t.found(lifecycle.Query{Machine: "cranes"}, "a")
	t.found(lifecycle.Query{Machine: "Crane"}, "d")
	t.found(lifecycle.Query{Machine: "truck"}, "b")
	for _, m := range []string{"cran", "crane%", "*", "CRANE"} {
		t.found(lifecycle.Query{Machine: m})
	}
	t.remove(t.get(lifecycle.Key{Machine: "truck", ID: "b"}))
	t.found(lifecycle.Query{Machine: "truck"})
	t.found(lifecycle.Query{Machine: "crane"}, "a", "b")
}

func listByState(t *trial) {
	t.put(key("a"), idle)
	t.put(key("b"), moving)
	c := t.put(key("c"), idle)
	t.put(key("d"), broken)
	in := func(states ...string) lifecycle.Query { return lifecycle.Query{Machine: machine, States: states} }
	t.found(in(), "a", "b", "c", "d")
	t.found(in(idle), "a", "c")
	t.found(in(moving, broken), "b", "d")
	t.found(in(broken, idle, broken, "nobody's"), "a", "c", "d")
	t.found(in("nobody's"))
	t.found(in(""))
	t.found(in("Idl"))

	c = t.move(c, moving)
	t.found(in(idle), "a")
	t.found(in(moving), "b", "c")
	t.remove(c)
	t.found(in(moving), "b")
	// Origin and target are not the state.
	ch := change(t.get(key("b")), "Stopping")
	ch.To.Origin, ch.To.Target = idle, broken
	t.write(ch)
	t.found(in(idle), "a")
	t.found(in(broken), "d")
	t.found(in("Stopping"), "b")
}

// own moves an object to a state in which it has an owner.
func (t *trial) own(id, state, owner string, epoch uint64) lifecycle.StoredRecord {
	t.Helper()
	ch := change(t.get(key(id)), state)
	ch.To.Owner, ch.To.Epoch = owner, epoch
	return t.write(ch)
}

// notOwnedBy is a query by owners. Without owners, it selects all owned objects.
func notOwnedBy(owners ...lifecycle.OwnerRef) lifecycle.Query {
	return lifecycle.Query{Machine: machine, NotOwnedBy: append([]lifecycle.OwnerRef{}, owners...)}
}

func ref(name string, epoch uint64) lifecycle.OwnerRef {
	return lifecycle.OwnerRef{Name: name, Epoch: epoch}
}

func listNotOwnedBy(t *trial) {
	t.own("a", moving, "one", 1)
	t.own("b", moving, "two", 1)
	t.own("c", moving, "one", 2)
	t.own("d", idle, "three", 1<<62)
	t.put(key("e"), moving)
	t.found(lifecycle.Query{Machine: machine}, "a", "b", "c", "d", "e")
	t.found(notOwnedBy(), "a", "b", "c", "d")
	t.found(notOwnedBy(ref("one", 1)), "b", "c", "d")
	t.found(notOwnedBy(ref("one", 2)), "a", "b", "d")
	t.found(notOwnedBy(ref("two", 1), ref("one", 1)), "c", "d")
	t.found(notOwnedBy(ref("one", 2), ref("one", 1), ref("one", 2)), "b", "d")
	t.found(notOwnedBy(ref("ONE", 1), ref("on", 1), ref("one ", 1), ref("one", 3), ref("", 0)), "a", "b", "c", "d")
	t.found(notOwnedBy(ref("three", 1<<62), ref("two", 1), ref("one", 2), ref("one", 1)))
	t.found(notOwnedBy(manyOwners(ref("one", 1), ref("two", 1))...), "c", "d")
	q := notOwnedBy(ref("one", 1))
	q.States = []string{idle}
	t.found(q, "d")
	q.States, q.After, q.Limit = nil, "b", 1
	t.found(q, "c")

	t.own("c", moving, "", 0)
	t.own("b", moving, "one", 1)
	t.found(notOwnedBy(ref("one", 1)), "d")
	t.remove(t.get(key("d")))
	t.found(notOwnedBy(), "a", "b")
}

// manyOwners returns these owners among 1,000 others: engines limit the size of a
// statement.
func manyOwners(owners ...lifecycle.OwnerRef) []lifecycle.OwnerRef {
	for i := range 1000 {
		owners = append(owners, ref(fmt.Sprintf("process %d", i/2), uint64(1+i%2)))
	}
	return owners
}

func listNotOwnedByInPages(t *trial) {
	owners := []lifecycle.OwnerRef{ref("p", 1), ref("q", 1), ref("p", 2), ref("r", 9), {}}
	var ids, inMoving []string // of the objects that none of the two alive owners has
	for i := range 35 {
		id, state, owner := fmt.Sprintf("o%02d", i), []string{idle, moving}[i/5%2], owners[i%5]
		t.own(id, state, owner.Name, owner.Epoch)
		if i%5 == 0 || i%5 == 3 {
			ids = append(ids, id)
			if state == moving {
				inMoving = append(inMoving, id)
			}
		}
	}
	for limit := 1; limit <= len(ids)+1; limit++ {
		for _, want := range [][]string{ids, inMoving} {
			q := notOwnedBy(ref("q", 1), ref("p", 2))
			q.Limit = limit
			if len(want) < len(ids) {
				q.States = []string{moving}
			}
			var got []string
			t.pages(q, func(page []lifecycle.StoredRecord) {
				for i := range page {
					got = append(got, page[i].ID)
				}
			})
			if !slices.Equal(got, want) {
				t.Fatalf("the pages of %d of a query by %+v have %q, not %q", limit, q, got, want)
			}
		}
	}
}

func listUnowned(t *trial) {
	t.own("a", moving, "one", 1)
	t.put(key("b"), moving)
	t.put(key("c"), idle)
	t.found(lifecycle.Query{Machine: machine, Unowned: true}, "b", "c")
	t.found(lifecycle.Query{Machine: machine, Unowned: true, States: []string{moving}}, "b")
	t.own("a", moving, "", 0)
	t.own("b", moving, "one", 1)
	t.found(lifecycle.Query{Machine: machine, Unowned: true}, "a", "c")
	q := notOwnedBy()
	q.Unowned = true
	t.found(q)
}

func listNoDeadline(t *trial) {
	t.due(key("a"), moving, hour)
	t.put(key("b"), moving)
	t.put(key("c"), idle)
	t.own("d", moving, "one", 1)
	t.found(lifecycle.Query{Machine: machine, NoDeadline: true}, "b", "c", "d")
	q := lifecycle.Query{Machine: machine, NoDeadline: true, Unowned: true, States: []string{moving, broken}}
	t.found(q, "b")
	t.due(key("b"), moving, hour)
	t.put(key("a"), broken)
	t.found(q, "a")
	q.NoDeadline = false
	t.found(q, "a", "b")
	t.found(lifecycle.Query{Machine: machine, NoDeadline: true, Overdue: true})
}

func listWithoutPayload(t *trial) {
	ch := change(t.get(key("a")), moving)
	to := full(ch.To.Key)
	to.Sequence, to.Operation = ch.To.Sequence, ch.To.Operation
	ch.To, ch.Timeout = to, hour
	want := t.write(ch)
	want.Payload, want.Saved, want.Args = nil, nil, nil
	for _, q := range []lifecycle.Query{{Machine: machine}, notOwnedBy(), {Machine: machine, States: []string{to.State}}} {
		q.WithoutPayload = true
		found := t.list(q)
		if len(found) != 1 {
			t.Fatalf("a query by %+v finds %d records, not 1", q, len(found))
		}
		same(t, "a record listed without its payload", found[0], want)
	}
}

func listInOrder(t *trial) {
	ids := []string{
		"b", "a", "B", "A", "a ", "a b", "ab", "a-b", "a_b", "aa", "é", "e", "z", "zé", "10", "9", "1", "~", "!", "日本", "e\u0301",
	}
	for _, id := range ids {
		t.put(key(id), idle)
	}
	slices.Sort(ids)
	t.found(lifecycle.Query{Machine: machine}, ids...)
	t.found(lifecycle.Query{Machine: machine, States: []string{idle, moving}}, ids...)
}

func listAfter(t *trial) {
	ids := []string{"B", "a", "a ", "a/1", "b", "é"}
	for _, id := range ids {
		t.put(key(id), idle)
	}
	for _, after := range append([]string{"A", "C", "a!", "b ", "zz", "ê"}, ids...) {
		var want []string
		for _, id := range ids {
			if id > after {
				want = append(want, id)
			}
		}
		t.found(lifecycle.Query{Machine: machine, After: after}, want...)
		t.found(lifecycle.Query{Machine: machine, After: after, States: []string{idle}}, want...)
	}
}

// fleet makes objects whose states take turns, and returns the ids by state. They
// are not made in order of id; n must not be a multiple of 7.
func (t *trial) fleet(n int, states ...string) map[string][]string {
	t.Helper()
	ids := map[string][]string{}
	for i := range n {
		id, state := fmt.Sprintf("o%03d", i*7%n), states[i*7%n%len(states)]
		t.put(key(id), state)
		ids[state] = append(ids[state], id)
	}
	for _, list := range ids {
		slices.Sort(list)
	}
	return ids
}

// pages reads all pages of a query.
func (t *trial) pages(q lifecycle.Query, visit func(page []lifecycle.StoredRecord)) {
	t.Helper()
	for {
		page := t.list(q)
		visit(page)
		if len(page) < q.Limit {
			return
		}
		last := page[len(page)-1].ID
		if last <= q.After {
			t.Fatalf("a page after %q ends with %q", q.After, last)
		}
		q.After = last
	}
}

func pagesAreFull(t *trial) {
	const objects = 64
	ids := t.fleet(objects, append([]string{idle, moving}, slices.Repeat([]string{broken}, 14)...)...)
	for _, states := range [][]string{{idle}, {idle, moving}, {broken}, nil} {
		total := 0
		for state, list := range ids {
			if states == nil || slices.Contains(states, state) {
				total += len(list)
			}
		}
		for _, limit := range []int{1, 2, 3, 5, objects - 1, objects, objects + 1} {
			left := total
			t.pages(lifecycle.Query{Machine: machine, States: states, Limit: limit}, func(page []lifecycle.StoredRecord) {
				if want := min(limit, left); len(page) != want {
					t.Fatalf("a page of %d in states %q has %d records, not %d", limit, states, len(page), want)
				}
				left -= len(page)
			})
		}
	}
}

func everyObjectOnce(t *trial) {
	ids := t.fleet(23, idle, moving)
	for _, states := range [][]string{{idle}, {idle, moving}, nil} {
		want := slices.Sorted(slices.Values(append(slices.Clone(ids[idle]), ids[moving]...)))
		if len(states) == 1 {
			want = ids[idle]
		}
		for limit := 1; limit <= 24; limit++ {
			var got []string
			t.pages(lifecycle.Query{Machine: machine, States: states, Limit: limit}, func(page []lifecycle.StoredRecord) {
				for i := range page {
					got = append(got, page[i].ID)
				}
			})
			if !slices.Equal(got, want) {
				t.Fatalf("the pages of %d in states %q have %q, not %q", limit, states, got, want)
			}
		}
	}
}

func listUnderChange(t *trial) {
	const still, moved = 24, 8
	var want, others []string
	for i := range still {
		want = append(want, fmt.Sprintf("%02d still", i))
		t.put(key(want[i]), idle)
		others = append(others, fmt.Sprintf("%02d a", i), fmt.Sprintf("%02d z", i))
	}
	query := func(round int) lifecycle.Query {
		q := lifecycle.Query{Machine: machine, Limit: 1 + round%7}
		if round%2 == 0 {
			q.States = []string{idle}
		}
		return q
	}
	// Changes between the pages, at their borders too.
	random := rand.New(rand.NewPCG(1, 1))
	for round := range 14 {
		if !t.walk(query(round), want, func() {
			for range 3 {
				t.churn(others[random.IntN(len(others))], random.IntN(3))
			}
		}) {
			return
		}
	}
	// And while a page is read.
	var done atomic.Bool
	together(moved+1, func(i int) {
		for n := 0; i < moved && !done.Load(); n++ {
			if !t.churn(others[i*len(others)/moved], n) {
				return
			}
		}
		for round := 0; i == moved && round < t.attempts/4 && t.walk(query(round), want, func() {}); round++ {
		}
		if i == moved {
			done.Store(true)
		}
	})
}

// walk reads all pages and reports whether those that stand still are there
// once, and nothing out of order.
func (t *trial) walk(q lifecycle.Query, still []string, between func()) bool {
	var got []string
	for full := true; full; between() {
		page, err := t.store.List(t.Context(), q)
		if err != nil {
			t.Errorf("List of %+v: %v", q, err)
			return false
		}
		for i := range page {
			if page[i].ID <= q.After {
				t.Errorf("after %q comes %q", q.After, page[i].ID)
				return false
			}
			q.After = page[i].ID
			if strings.HasSuffix(q.After, "still") {
				got = append(got, q.After)
			}
		}
		full = len(page) == q.Limit
	}
	if !slices.Equal(got, still) {
		t.Errorf("pages of %d in states %q have of those that stand still %q, not %q", q.Limit, q.States, got, still)
		return false
	}
	return true
}

// churn moves an object that nobody else writes, or removes it, or makes it, and
// reports whether that went well.
func (t *trial) churn(id string, n int) bool {
	r, err := t.store.Get(t.Context(), key(id))
	if err == nil {
		ch := change(r, []string{idle, moving}[n%2])
		if n%3 == 2 && r.Exists() {
			ch = removal(r)
		}
		err = send(t.Context(), t.store, commitOf(ch))
	}
	// The numbers of an absent object may move on when others are forgotten.
	if err != nil && (r.Exists() || !errors.Is(err, lifecycle.ErrConflict)) {
		t.Errorf("an object that nobody else writes: %v", err)
		return false
	}
	return true
}
