package lifecycle

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// check demands the invariant of ordered: no piece is empty or too long, and the
// ids ascend from piece to piece.
func (o *ordered) check(t require.TestingT) {
	last, first := "", true
	for i, piece := range o.pieces {
		require.NotEmpty(t, piece, "piece %d", i)
		require.LessOrEqual(t, len(piece), pieceSize, "piece %d", i)
		for _, e := range piece {
			if !first && e.record.ID <= last { // for speed not by require
				require.Fail(t, "not in order", "%q comes after %q", e.record.ID, last)
			}
			last, first = e.record.ID, false
		}
	}
}

// Pieces behave like one sorted slice, also when they are split and vanish.
func TestOrderedIsASortedSlice(t *testing.T) {
	id := rapid.StringMatching(`[a-c]{0,3}`)
	rapid.Check(t, func(t *rapid.T) {
		var o ordered
		var naive []*object // sorted
		find := func(id string) (int, bool) {
			return slices.BinarySearchFunc(naive, id, func(o *object, id string) int { return cmp.Compare(o.record.ID, id) })
		}
		insert := func(id string) {
			if at, there := find(id); !there {
				e := &object{record: StoredRecord{Key: Key{ID: id}}}
				naive = slices.Insert(naive, at, e)
				o.insert(e)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"insert": func(t *rapid.T) { insert(id.Draw(t, "id")) },
			"insert many": func(t *rapid.T) { // in order, in reverse, or scattered
				if len(naive) > 2*pieceSize {
					return
				}
				prefix, step := id.Draw(t, "prefix"), rapid.SampledFrom([]int{1, 696, 389}).Draw(t, "step")
				for i := range 697 {
					insert(fmt.Sprintf("%s%03d", prefix, i*step%697))
				}
			},
			"remove": func(t *rapid.T) {
				if at, there := find(id.Draw(t, "id")); there {
					o.remove(naive[at])
					naive = slices.Delete(naive, at, at+1)
				}
			},
			"remove many": func(t *rapid.T) {
				from := rapid.IntRange(0, len(naive)).Draw(t, "from")
				to := rapid.IntRange(from, len(naive)).Draw(t, "to")
				for _, e := range naive[from:to] {
					o.remove(e)
				}
				naive = slices.Delete(naive, from, to)
			},
			"from": func(t *rapid.T) {
				after := id.Draw(t, "after")
				at, there := find(after)
				if there {
					at++
				}
				want := slices.Clone(naive[at:])
				most := rapid.IntRange(1, len(naive)+1).Draw(t, "most")
				want = want[:min(most, len(want))]
				got := []*object{}
				for e := range o.after(after) {
					if got = append(got, e); len(got) == most {
						break
					}
				}
				require.Equal(t, len(want), len(got))
				require.True(t, slices.Equal(want, got))
			},
			"": func(t *rapid.T) {
				o.check(t)
				total := 0
				for _, piece := range o.pieces {
					total += len(piece)
				}
				require.Equal(t, len(naive), total)
			},
		})
	})
}

// Queries over more objects than a piece holds, by either way through them, are
// what a walk over all records gives.
func TestListIsAFilter(t *testing.T) {
	ctx := t.Context()
	rapid.Check(t, func(t *rapid.T) {
		var s MemoryStore
		states := []string{"rare", "some", "most"}
		state := func(i int) string { // 1 in 50 is rare, 1 in 5 is some
			switch {
			case i%50 == 0:
				return states[0]
			case i%5 == 0:
				return states[1]
			}
			return states[2]
		}
		owner := func(i int) string {
			switch {
			case i%30 == 1:
				return "p"
			case i%100 == 2:
				return "q"
			}
			return ""
		}
		var all []StoredRecord
		total := rapid.SampledFrom([]int{0, 10, pieceSize, 3 * pieceSize}).Draw(t, "objects")
		scatter := rapid.SampledFrom([]int{1, 389, 7919}).Draw(t, "scatter")
		for i := range total {
			key := Key{Machine: "m", ID: fmt.Sprintf("%05d", i*scatter%7933)}
			to := StoredRecord{Key: key, State: state(i), Sequence: 1, Operation: 1, Owner: owner(i)}
			if to.Owner != "" {
				to.Epoch = uint64(1 + i%2)
			}
			absent, err := s.Get(ctx, key)
			require.NoError(t, err)
			c := &Commit{Token: NewToken(), Changes: []StoredChange{{Expect: absent.Revision, To: to}}}
			if i%3 == 0 {
				c.Changes[0].Timeout = time.Hour
			}
			require.NoError(t, s.Commit(ctx, c))
			all = append(all, c.Changes[0].To)
		}
		slices.SortFunc(all, func(a, b StoredRecord) int { return strings.Compare(a.ID, b.ID) })

		for range 5 {
			q := Query{
				Machine: "m", Limit: rapid.SampledFrom([]int{1, 3, 100, 10_000}).Draw(t, "limit"),
				States:     rapid.SliceOfN(rapid.SampledFrom(append(states, "unowned")), 0, 3).Draw(t, "states"),
				Unowned:    rapid.Bool().Draw(t, "unowned"),
				NoDeadline: rapid.Bool().Draw(t, "no deadline"),
				NotOwnedBy: rapid.SampledFrom([][]OwnerRef{nil, {}, {{"p", 1}}, {{"p", 2}, {"q", 1}}}).Draw(t, "not owned by"),
				After:      rapid.SampledFrom([]string{"", "00000", "00500", "03966+", "9"}).Draw(t, "after"),
			}
			var want []string
			for _, r := range all {
				if r.ID > q.After && (len(q.States) == 0 || slices.Contains(q.States, r.State)) &&
					(!q.Unowned || r.Owner == "") && (!q.NoDeadline || r.Deadline.IsZero()) &&
					(q.NotOwnedBy == nil || r.Owner != "" && !slices.Contains(q.NotOwnedBy, OwnerRef{r.Owner, r.Epoch})) &&
					len(want) < q.Limit {
					want = append(want, r.ID)
				}
			}
			found, err := s.List(ctx, q)
			require.NoError(t, err)
			var got []string
			for _, r := range found {
				got = append(got, r.ID)
			}
			require.Equal(t, want, got, "%+v", q)
		}
	})
}

// A page of a state with many objects costs as the page, also where most objects
// are in another state: nothing is made of what the page does not have.
func TestListPageAllocations(t *testing.T) {
	var s MemoryStore
	for i := range 5000 {
		to := StoredRecord{Key: Key{Machine: "m", ID: fmt.Sprintf("%04d", i)}, State: "idle", Sequence: 1}
		if i%10 == 0 {
			to.State = "moving"
		}
		absent, err := s.Get(t.Context(), to.Key)
		require.NoError(t, err)
		require.NoError(t, s.Commit(t.Context(), &Commit{Token: NewToken(), Changes: []StoredChange{{Expect: absent.Revision, To: to}}}))
	}
	require.LessOrEqual(t, testing.AllocsPerRun(10, func() {
		page, err := s.List(context.Background(), Query{Machine: "m", States: []string{"moving"}, After: "2000", Limit: 1})
		if err != nil || page[0].ID != "2010" {
			t.Error(page, err)
		}
	}), 10.0)
}

// The store keeps in memory what KeepHistory and keepRemoved permit, however many
// objects are created and removed.
func TestMemoryStoreIsBounded(t *testing.T) {
	const keep, rounds = 16, 20_000
	s := MemoryStore{KeepHistory: 2, keepRemoved: keep}
	commit := func(id, state string) {
		t.Helper()
		before, err := s.Get(context.Background(), Key{Machine: "m", ID: id})
		require.NoError(t, err)
		to := StoredRecord{Key: before.Key, State: state, Sequence: before.Sequence + 1, Operation: before.Operation + 1}
		require.NoError(t, s.Commit(context.Background(), &Commit{
			Token: NewToken(), Messages: []Message{{Topic: "t"}},
			Changes: []StoredChange{{Expect: before.Revision, From: before.State, To: to, Remove: state == "gone"}},
		}))
	}
	for i := range rounds {
		id := fmt.Sprint(i)
		if i%10 == 0 {
			id = "the same every time"
		}
		for _, state := range []string{"idle", "moving", "gone"} {
			commit(id, state)
		}
		require.NoError(t, s.Discard(context.Background(), s.messages-1, s.messages-2, s.messages-3))
	}
	sh := s.shelves["m"]
	require.LessOrEqual(t, len(sh.objects), keep)
	require.Empty(t, sh.order.pieces)
	require.Len(t, sh.states, 2)
	for state, g := range sh.states {
		require.Empty(t, g.objects, state)
		require.LessOrEqual(t, cap(g.objects), 8, state)
	}
	require.LessOrEqual(t, s.removed.Len(), keep)
	require.Len(t, s.outbox, 1)
	require.LessOrEqual(t, cap(s.outbox), 8)
	require.Len(t, s.shelves, 1)
	for _, o := range sh.objects {
		require.LessOrEqual(t, cap(o.rows), 2)
	}
}

// The queries of a sweep read the objects that they may select, however many
// objects are at rest.
func TestSweepQueriesReadFewObjects(t *testing.T) {
	var s MemoryStore
	for i := range 100 {
		ch := StoredChange{To: StoredRecord{Key: Key{Machine: "m", ID: fmt.Sprint(i)}, State: "idle", Sequence: 1}}
		switch i {
		case 50:
			ch.To.State, ch.To.Owner, ch.To.Epoch = "moving", "p", 1
		case 60:
			ch.To.State, ch.Timeout = "moving", time.Hour
		case 70:
			ch.To.State = "moving"
		}
		ch.Expect = s.current(ch.To.Key).Revision
		require.NoError(t, s.Commit(t.Context(), &Commit{Token: NewToken(), Changes: []StoredChange{ch}}))
	}
	for _, c := range []struct {
		name string
		q    Query
		n    int
	}{
		{"overdue", Query{Overdue: true}, 1},
		{"no living owner", Query{NotOwnedBy: []OwnerRef{}}, 1},
		{"neither deadline nor owner", Query{States: []string{"moving", "moving"}, NoDeadline: true, Unowned: true}, 3},
		{"overdue in a state", Query{States: []string{"moving"}, Overdue: true}, 1},
		{"all", Query{}, 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, n := s.shelves["m"].candidates(&c.q)
			require.Equal(t, c.n, n)
		})
	}
}

// Every object is in the groups of its record, and in no other.
func TestObjectsAreInTheirGroups(t *testing.T) {
	ctx := t.Context()
	rapid.Check(t, func(t *rapid.T) {
		s := MemoryStore{keepRemoved: 2}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			key := Key{Machine: "m", ID: rapid.StringMatching(`[a-h]`).Draw(t, "id")}
			before, err := s.Get(ctx, key)
			require.NoError(t, err)
			state := rapid.SampledFrom([]string{"idle", "moving", "gone"}).Draw(t, "state")
			to := StoredRecord{Key: key, State: state, Sequence: before.Sequence + 1}
			if to.Owner = rapid.SampledFrom([]string{"", "p", "q"}).Draw(t, "owner"); to.Owner != "" {
				to.Epoch = 1
			}
			ch := StoredChange{Expect: before.Revision, From: before.State, To: to, Remove: state == "gone" && before.Exists()}
			if before.Exists() && rapid.Bool().Draw(t, "metadata only") {
				ch.To, ch.MetadataOnly, ch.Remove = before, true, false
				ch.To.Owner, ch.To.Epoch = to.Owner, to.Epoch
			}
			ch.Timeout = rapid.SampledFrom([]time.Duration{0, time.Hour}).Draw(t, "timeout")
			require.NoError(t, s.Commit(ctx, &Commit{Token: NewToken(), Changes: []StoredChange{ch}}))

			sh := s.shelves["m"]
			all := []*group{&sh.owned, &sh.timed}
			for _, g := range sh.states {
				all = append(all, g)
			}
			members := 0
			for _, g := range all {
				members += len(g.objects)
			}
			for _, o := range sh.objects {
				if !o.record.Exists() {
					require.Zero(t, o.place)
					continue
				}
				for kind, g := range map[int]*group{inState: sh.states[o.record.State], inOwned: &sh.owned, inTimed: &sh.timed} {
					if kind == inOwned && o.record.Owner == "" || kind == inTimed && o.record.Deadline.IsZero() {
						require.Zero(t, o.place[kind])
						continue
					}
					require.Same(t, o, g.objects[o.place[kind]-1])
					members--
				}
			}
			require.Zero(t, members)
			sh.order.check(t)
		}
	})
}

// A call moves or copies no more of what the store keeps than it has to, however much that is.
func TestMemoryStoreTouchesLittle(t *testing.T) {
	s := MemoryStore{KeepHistory: -1}
	key := Key{Machine: "m", ID: "a"}
	for i := range 1000 {
		before := s.current(key)
		to := StoredRecord{Key: key, State: "idle", Sequence: uint64(i + 1)}
		require.NoError(t, s.Commit(t.Context(), &Commit{
			Token: NewToken(), Messages: []Message{{Topic: "t"}},
			Changes: []StoredChange{{Expect: before.Revision, From: before.State, To: to}},
		}))
	}
	rows, err := s.History(t.Context(), key, 500, 3)
	require.NoError(t, err)
	require.Len(t, rows, 3)
	require.EqualValues(t, 501, rows[0].Sequence)
	require.LessOrEqual(t, cap(rows), 8)

	third, last := &s.outbox[2], &s.outbox[999]
	require.NoError(t, s.Discard(t.Context(), 1, 3))
	require.EqualValues(t, 2, s.outbox[0].Number)
	require.Same(t, third, &s.outbox[0])
	require.Same(t, last, &s.outbox[997])
}
