package lifecycle_test

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/tumblebug"
)

func vmRow(id string, sequence uint64, from, to tumblebug.State) lifecycle.HistoryRow {
	return lifecycle.HistoryRow{
		Key: lifecycle.Key{Machine: "vm", ID: id}, Sequence: sequence, From: string(from), To: string(to),
	}
}

// noteCounts is a rule over notes, which can be thrown away and written anew.
var noteCounts = lifecycle.MustAggregate(lifecycle.AggregateSpec[state, string]{
	Name: "notes", Children: note, Empty: "empty",
	Classes: []lifecycle.Class[state, string]{{State: "full", States: []state{"Draft"}}},
})

// History comes in any order, rows come twice or never: all there are make the
// roster right, and some of them with a list.
func TestRosterModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var rows []lifecycle.HistoryRow
		store := &lifecycle.MemoryStore{KeepHistory: -1}
		defer store.Close()
		m := lifecycle.New(note, store, &lifecycle.Config[event]{
			Observer: lifecycle.Observer{Changed: func(row lifecycle.HistoryRow) { rows = append(rows, row) }},
		})
		ctx := t.Context()
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			id := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "id")
			switch rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				_, _ = m.Create(ctx, id, "write", user, size{})
			case 1:
				_, _ = m.Fire(ctx, id, "edit", user, nil)
			case 2:
				_, _ = m.Fire(ctx, id, "throw", user, nil)
			}
		}
		there, err := m.List(ctx, lifecycle.Select[state]{})
		require.NoError(t, err)
		check := func(r *lifecycle.Roster[state, string]) {
			counts := r.Counts()
			require.Equal(t, len(there), counts.Len())
			require.Equal(t, len(there), r.Now().Count)
		}

		twice := append(slices.Clone(rows), rows...)
		shuffled := rapid.Permutation(twice).Draw(t, "order")
		whole := lifecycle.NewRoster(noteCounts)
		news := 0
		for _, row := range shuffled {
			applied, err := whole.Apply(row)
			require.NoError(t, err)
			if applied {
				news++
			}
		}
		require.LessOrEqual(t, news, len(rows))
		check(whole)

		lossy := lifecycle.NewRoster(noteCounts)
		recounts := rapid.SliceOfN(rapid.IntRange(0, 3), len(shuffled), len(shuffled)).Draw(t, "luck")
		for i, row := range shuffled {
			switch recounts[i] {
			case 0: // lost
			case 1:
				require.NoError(t, lifecycle.Recount(lossy, m.All(ctx, lifecycle.Select[state]{})))
				check(lossy)
			default:
				_, err := lossy.Apply(row)
				require.NoError(t, err)
			}
		}
		require.NoError(t, lifecycle.Recount(lossy, m.All(ctx, lifecycle.Select[state]{})))
		check(lossy)
	})
}

func vmRecord(id string, sequence uint64, s tumblebug.State) lifecycle.Record[tumblebug.State, size] {
	return lifecycle.Record[tumblebug.State, size]{
		ID: id, Sequence: sequence, Status: fsm.Status[tumblebug.State]{State: s, Origin: s},
	}
}

// sequence yields records and runs something after each.
func yielding[R any](after func(i int), records ...R) iter.Seq2[R, error] {
	return func(yield func(R, error) bool) {
		for i, r := range records {
			if !yield(r, nil) {
				return
			}
			if after != nil {
				after(i)
			}
		}
	}
}

// Rows that come while a list is read are newer than the list.
func TestRecountMeanwhile(t *testing.T) {
	rule := lifecycle.MustAggregate(mciStatus())
	roster := lifecycle.NewRoster(rule)
	apply := func(id string, sequence uint64, to tumblebug.State) bool {
		return must(roster.Apply(vmRow(id, sequence, "", to)))(t)
	}
	running := func() map[string]int {
		counts := roster.Counts()
		m := map[string]int{}
		for s, n := range counts.All() {
			m[s] = n
		}
		return m
	}
	apply("gone", 4, tumblebug.Running)  // its removal was lost
	apply("late", 4, tumblebug.Running)  // and so was this one's, of which an old row comes late
	apply("moved", 4, tumblebug.Running) // moves while the list is read
	require.NoError(t, lifecycle.Recount(roster, yielding(func(i int) {
		if i == 0 {
			require.True(t, apply("before", 1, tumblebug.Creating), "new, where the list has passed already")
			require.True(t, apply("moved", 5, tumblebug.Failed))
			require.True(t, apply("removed", 8, tumblebug.Removed))
			require.False(t, apply("late", 3, tumblebug.Creating))
		}
	}, vmRecord("listed", 2, tumblebug.Running), vmRecord("moved", 4, tumblebug.Running), vmRecord("removed", 7, tumblebug.Running))))
	require.Equal(t, map[string]int{"Running": 1, "Creating": 1, "Failed": 1}, running())

	// Who is gone stays gone, whatever comes late.
	require.False(t, apply("gone", 3, tumblebug.Creating))
	require.False(t, apply("removed", 7, tumblebug.Running))
	require.True(t, apply("gone", 5, tumblebug.Removed))
	require.True(t, apply("gone", 6, tumblebug.Creating), "made anew")
	require.Equal(t, map[string]int{"Running": 1, "Creating": 2, "Failed": 1}, running())
}

// A child that is carried from one parent to another counts there and not here,
// also if the word about it comes late, or twice, or beside a list.
func TestRosterOfAChildThatChangesParents(t *testing.T) {
	rule := lifecycle.MustAggregate(mciStatus())
	here, there := lifecycle.NewRoster(rule), lifecycle.NewRoster(rule)
	must(here.Apply(vmRow("a", 1, "", tumblebug.Running)))(t)
	carried := vmRow("a", 3, tumblebug.Running, tumblebug.Running)
	require.True(t, must(there.Apply(carried))(t))
	carried.To = ""
	require.NoError(t, lifecycle.Recount(here, yielding(func(int) {
		require.True(t, must(here.Apply(carried))(t))
	}, vmRecord("a", 2, tumblebug.Running))))
	require.Zero(t, here.Now().Total)
	require.False(t, must(here.Apply(carried))(t))
	require.False(t, must(here.Apply(vmRow("a", 2, "", tumblebug.Failed)))(t))
	require.Zero(t, here.Now().Total)
	require.Equal(t, 1, there.Now().Total)
	require.True(t, must(here.Apply(vmRow("a", 4, "", tumblebug.Failed)))(t), "and back")
	require.Equal(t, 1, here.Now().Total)
}

// A Recount that ends while another one is under way must not forget the
// removals which that one has yet to find out about.
func TestRecountBesideAnother(t *testing.T) {
	roster := lifecycle.NewRoster(lifecycle.MustAggregate(mciStatus()))
	page := []lifecycle.Record[tumblebug.State, size]{vmRecord("a", 1, tumblebug.Running), vmRecord("b", 1, tumblebug.Running)}
	require.NoError(t, lifecycle.Recount(roster, yielding(func(i int) {
		if i == 0 {
			must(roster.Apply(vmRow("b", 2, tumblebug.Running, tumblebug.Removed)))(t)
			require.NoError(t, lifecycle.Recount(roster, yielding(nil, page[0])))
		}
	}, page...)))
	require.Equal(t, 1, roster.Now().Total)
}

// A page that was read before a child was removed says nothing to a Recount that
// began after that, whether the child was known or not.
func TestRecountBesideAnOlderOne(t *testing.T) {
	for _, known := range []bool{true, false} {
		roster := lifecycle.NewRoster(lifecycle.MustAggregate(mciStatus()))
		if known {
			must(roster.Apply(vmRow("b", 1, "", tumblebug.Running)))(t)
		}
		type record = lifecycle.Record[tumblebug.State, size]
		require.NoError(t, lifecycle.Recount(roster, func(older func(record, error) bool) {
			// Here b is removed, and nobody tells.
			require.NoError(t, lifecycle.Recount(roster, func(func(record, error) bool) {
				require.True(t, older(vmRecord("b", 1, tumblebug.Running), nil))
				require.Equal(t, 1, roster.Now().Total)
			}))
			require.Zero(t, roster.Now().Total, "known: %v", known)
		}))
		require.Zero(t, roster.Now().Total, "known: %v", known)
	}
}

// The numbers of those who are gone are kept for one whole list more, and those
// of children that are there and count as none for as long as they are listed.
func TestRosterForgets(t *testing.T) {
	spec := mciStatus()
	spec.Classes = slices.DeleteFunc(spec.Classes, func(c lifecycle.Class[tumblebug.State, tumblebug.State]) bool {
		return c.State == tumblebug.Terminated
	})
	spec.Uncounted = []tumblebug.State{tumblebug.Terminated}
	roster := lifecycle.NewRoster(lifecycle.MustAggregate(spec))
	recount := func() {
		require.NoError(t, lifecycle.Recount(roster, yielding(nil, vmRecord("ended", 3, tumblebug.Terminated))))
	}
	late := func(id string) bool { return must(roster.Apply(vmRow(id, 2, "", tumblebug.Running)))(t) }
	require.True(t, must(roster.Apply(vmRow("removed", 3, "", tumblebug.Removed)))(t))
	require.True(t, must(roster.Apply(vmRow("lost", 3, "", tumblebug.Running)))(t))
	require.False(t, late("removed"))
	recount()
	require.True(t, late("removed"), "a row from before its removal, a whole list later")
	require.False(t, late("lost"))
	require.False(t, late("ended"))
	require.Equal(t, 1, roster.Now().Total)
	for range 3 {
		recount()
		require.Zero(t, roster.Now().Total)
		require.False(t, late("ended"))
	}
	require.True(t, late("lost"))
}

func TestRosterRefuses(t *testing.T) {
	rule := lifecycle.MustAggregate(mciStatus())
	roster := lifecycle.NewRoster(rule)
	must(roster.Apply(vmRow("a", 1, "", tumblebug.Running)))(t)

	_, err := roster.Apply(vmRow("a", 2, "", "Asleep"))
	require.ErrorIs(t, err, lifecycle.ErrForeign)
	row := vmRow("a", 2, "", tumblebug.Failed)
	row.Machine = "mci"
	_, err = roster.Apply(row)
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	require.ErrorIs(t, lifecycle.Recount(roster, yielding(nil, vmRecord("a", 2, "Asleep"))), fsm.ErrUnknownState)
	broken := errors.New("the list is cut short")
	require.ErrorIs(t, lifecycle.Recount(roster, func(yield func(lifecycle.Record[tumblebug.State, size], error) bool) {
		_ = yield(vmRecord("b", 1, tumblebug.Running), nil) && yield(lifecycle.Record[tumblebug.State, size]{}, broken)
	}), broken)
	require.ErrorIs(t, roster.Expect(-1), lifecycle.ErrInvalid)
	require.NoError(t, roster.Expect(3))
	require.Equal(t, lifecycle.Aggregated[tumblebug.State]{State: tumblebug.Running, Count: 2, Total: 3, Partial: true}, roster.Now())
	require.Panics(t, func() { lifecycle.NewRoster[state, state](nil) })
}

// Many writers, each with an old result in its hand: the last one is right.
func TestRosterSettle(t *testing.T) {
	roster := lifecycle.NewRoster(lifecycle.MustAggregate(mciStatus()))
	var mu sync.Mutex
	var parent lifecycle.Aggregated[tumblebug.State]
	write := func(now lifecycle.Aggregated[tumblebug.State]) error {
		for range rand.IntN(50) {
			runtime.Gosched() // others go first
		}
		mu.Lock()
		defer mu.Unlock()
		parent = now
		return nil
	}
	states := []tumblebug.State{tumblebug.Running, tumblebug.Suspended, tumblebug.Failed}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 200 {
				news, err := roster.Apply(vmRow(fmt.Sprint(g), uint64(i+1), "", states[(g+i)%3]))
				if err != nil || !news {
					t.Errorf("%v %v", news, err)
				}
				if err := roster.Settle(write); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, roster.Now(), parent)
}

func TestRosterSettleOverAndOver(t *testing.T) {
	roster := lifecycle.NewRoster(lifecycle.MustAggregate(mciStatus()))
	var written []int
	require.NoError(t, roster.Settle(func(now lifecycle.Aggregated[tumblebug.State]) error {
		written = append(written, now.Total)
		if n := len(written); n < 4 {
			must(roster.Apply(vmRow(fmt.Sprint(n), 1, "", tumblebug.Running)))(t)
		}
		return nil
	}))
	require.Equal(t, []int{0, 1, 2, 3}, written)
	broken := errors.New("the parent cannot be written")
	require.ErrorIs(t, roster.Settle(func(lifecycle.Aggregated[tumblebug.State]) error { return broken }), broken)
}
