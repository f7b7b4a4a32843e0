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
			name: "List/by_owner", run: listByOwner,
			says: "With Owner, those objects are listed that this one owns, of whatever epoch.",
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
	a := t.write(lifecycle.StoredChange{Expect: never.Revision, To: to, Within: hour})
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

func listByOwner(t *trial) {
	own := func(id, owner string, epoch uint64) {
		ch := change(t.get(key(id)), moving)
		ch.To.Owner, ch.To.Epoch = owner, epoch
		t.write(ch)
	}
	own("a", "one", 1)
	own("b", "two", 1)
	own("c", "one", 2)
	own("d", "", 0)
	t.put(key("e"), idle)
	t.found(lifecycle.Query{Machine: machine, Owner: "one"}, "a", "c")
	t.found(lifecycle.Query{Machine: machine, Owner: "two"}, "b")
	t.found(lifecycle.Query{Machine: machine, Owner: "on"})
	t.found(lifecycle.Query{Machine: machine, Owner: "ONE"})
	t.found(lifecycle.Query{Machine: machine}, "a", "b", "c", "d", "e")
	own("c", "", 0)
	t.found(lifecycle.Query{Machine: machine, Owner: "one"}, "a")
	t.found(lifecycle.Query{Machine: machine, Owner: "one", States: []string{idle}})
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
