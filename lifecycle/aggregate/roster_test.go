package aggregate_test

import (
	"context"
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
	"github.com/interlock-go/interlock/lifecycle/aggregate"
	"github.com/interlock-go/interlock/lifecycle/tumblebug"
)

func vmRow(id string, sequence uint64, to tumblebug.State) lifecycle.HistoryRow {
	return lifecycle.HistoryRow{
		Key: lifecycle.Key{Machine: "vm", ID: id}, Sequence: sequence, To: string(to),
	}
}

type (
	state string
	event string
)

const (
	user  fsm.Actor = "user"
	agent fsm.Actor = "agent"
)

// note is a machine of objects that can be removed and created again.
var note = fsm.Must[struct{}](fsm.Spec[state, event]{
	Name: "note", Initial: "Draft", Actors: []fsm.Actor{user},
	States: []fsm.State[state]{{Name: "Draft"}, {Name: "Gone", Kind: fsm.Absent}},
	Rows: fsm.Rows(
		fsm.Move[state, event]("Draft", "edit", "Draft"),
		fsm.Move[state, event]("Draft", "throw", "Gone").By(user),
		fsm.Move[state, event]("Gone", "write", "Draft").By(user),
	),
})

var noteCounts = aggregate.Must(aggregate.Spec[state, string]{
	Name: "notes", Children: note, Empty: "empty",
	Classes: []aggregate.Class[state, string]{{State: "full", States: []state{"Draft"}}},
})

// Rows arrive in any order, twice or never. All rows make a roster correct, and so
// do some rows with a list.
func TestRosterModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var rows []lifecycle.HistoryRow
		store := &lifecycle.MemoryStore{KeepHistory: -1}
		defer store.Close()
		m := lifecycle.Must(note, store, &lifecycle.Config[event]{
			Observer: lifecycle.Observer{Changed: func(_ context.Context, row lifecycle.Changed) { rows = append(rows, row.HistoryRow) }},
		})
		ctx := t.Context()
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			id := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "id")
			switch rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				_, _ = m.Create(ctx, id, "write", user, struct{}{}, nil)
			case 1:
				_, _ = m.Fire(ctx, id, "edit", user, nil)
			case 2:
				_, _ = m.Fire(ctx, id, "throw", user, nil)
			}
		}
		there, err := m.List(ctx, lifecycle.Select[state]{})
		require.NoError(t, err)
		check := func(r *aggregate.Roster[state, string]) {
			require.Equal(t, len(there), r.Now().Total)
		}

		twice := append(slices.Clone(rows), rows...)
		shuffled := rapid.Permutation(twice).Draw(t, "order")
		whole := aggregate.NewRoster(noteCounts)
		newer := 0
		for _, row := range shuffled {
			applied, err := whole.Apply(row)
			require.NoError(t, err)
			if applied {
				newer++
			}
		}
		require.LessOrEqual(t, newer, len(rows))
		check(whole)

		lossy := aggregate.NewRoster(noteCounts)
		recounts := rapid.SliceOfN(rapid.IntRange(0, 3), len(shuffled), len(shuffled)).Draw(t, "luck")
		for i, row := range shuffled {
			switch recounts[i] {
			case 0: // lost
			case 1:
				require.NoError(t, aggregate.Recount(lossy, m.All(ctx, lifecycle.Select[state]{})))
				check(lossy)
			default:
				_, err := lossy.Apply(row)
				require.NoError(t, err)
			}
		}
		require.NoError(t, aggregate.Recount(lossy, m.All(ctx, lifecycle.Select[state]{})))
		check(lossy)
	})
}

func vmRecord(id string, sequence uint64, s tumblebug.State) lifecycle.Record[tumblebug.State, struct{}] {
	return lifecycle.Record[tumblebug.State, struct{}]{
		ID: id, Sequence: sequence, Status: fsm.Status[tumblebug.State]{State: s, Origin: s},
	}
}

// yielding yields records and calls after behind each.
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

// Rows that are applied while a list is read are newer than the list.
func TestRecountMeanwhile(t *testing.T) {
	rule := aggregate.Must(mciStatus())
	roster := aggregate.NewRoster(rule)
	apply := func(id string, sequence uint64, to tumblebug.State) bool {
		got, err := roster.Apply(vmRow(id, sequence, to))
		require.NoError(t, err)
		return got
	}
	apply("gone", 4, tumblebug.Running)  // the row of its removal was lost
	apply("late", 4, tumblebug.Running)  // as gone, and an old row arrives late
	apply("moved", 4, tumblebug.Running) // moves while the list is read
	require.NoError(t, aggregate.Recount(roster, yielding(func(i int) {
		if i == 0 {
			require.True(t, apply("before", 1, tumblebug.Creating), "added behind the position of the list")
			require.True(t, apply("moved", 5, tumblebug.Failed))
			require.True(t, apply("removed", 8, tumblebug.Removed))
			require.False(t, apply("late", 3, tumblebug.Creating))
		}
	}, vmRecord("listed", 2, tumblebug.Running), vmRecord("moved", 4, tumblebug.Running), vmRecord("removed", 7, tumblebug.Running))))
	total := func() int { return roster.Now().Total }
	require.Equal(t, 3, total(), "listed, before and moved")
	require.Equal(t, tumblebug.Failed, roster.Now().State, "the first of equals: moved has failed")

	// A removed child stays removed until a newer row arrives.
	require.False(t, apply("gone", 3, tumblebug.Creating))
	require.False(t, apply("removed", 7, tumblebug.Running))
	require.True(t, apply("gone", 5, tumblebug.Removed))
	require.True(t, apply("gone", 6, tumblebug.Creating), "created again")
	require.Equal(t, 4, total())
	require.Equal(t, aggregate.Result[tumblebug.State]{State: tumblebug.Creating, Count: 2, Total: 4, Partial: true}, roster.Now())
}

// A Recount that ends while another one runs keeps the sequence numbers of removed
// children: the other one may still list these.
func TestRecountBesideAnother(t *testing.T) {
	roster := aggregate.NewRoster(aggregate.Must(mciStatus()))
	page := []lifecycle.Record[tumblebug.State, struct{}]{vmRecord("a", 1, tumblebug.Running), vmRecord("b", 1, tumblebug.Running)}
	require.NoError(t, aggregate.Recount(roster, yielding(func(i int) {
		if i == 0 {
			_, err := roster.Apply(vmRow("b", 2, tumblebug.Removed))
			require.NoError(t, err)
			require.NoError(t, aggregate.Recount(roster, yielding(nil, page[0])))
		}
	}, page...)))
	require.Equal(t, 1, roster.Now().Total)
}

// A page that was read before a child was removed does not count for a Recount that
// started after the removal, whether the roster had the child or not.
func TestRecountBesideAnOlderOne(t *testing.T) {
	for _, known := range []bool{true, false} {
		roster := aggregate.NewRoster(aggregate.Must(mciStatus()))
		if known {
			_, err := roster.Apply(vmRow("b", 1, tumblebug.Running))
			require.NoError(t, err)
		}
		type record = lifecycle.Record[tumblebug.State, struct{}]
		require.NoError(t, aggregate.Recount(roster, func(older func(record, error) bool) {
			// Here b is removed, and its row is lost.
			require.NoError(t, aggregate.Recount(roster, func(func(record, error) bool) {
				require.True(t, older(vmRecord("b", 1, tumblebug.Running), nil))
				require.Equal(t, 1, roster.Now().Total)
			}))
			require.Zero(t, roster.Now().Total, "known: %v", known)
		}))
		require.Zero(t, roster.Now().Total, "known: %v", known)
	}
}

// The sequence number of a removed child stays for one more whole list.
func TestRosterForgets(t *testing.T) {
	roster := aggregate.NewRoster(aggregate.Must(mciStatus()))
	recount := func() {
		require.NoError(t, aggregate.Recount(roster, yielding[lifecycle.Record[tumblebug.State, struct{}]](nil)))
	}
	late := func(id string) bool {
		got, err := roster.Apply(vmRow(id, 2, tumblebug.Running))
		require.NoError(t, err)
		return got
	}
	got2, err := roster.Apply(vmRow("removed", 3, tumblebug.Removed))
	require.NoError(t, err)
	require.True(t, got2)
	got3, err := roster.Apply(vmRow("lost", 3, tumblebug.Running))
	require.NoError(t, err)
	require.True(t, got3)
	require.False(t, late("removed"))
	recount()
	require.True(t, late("removed"), "a row from before its removal, a whole list later")
	require.False(t, late("lost"))
	require.Equal(t, 1, roster.Now().Total)
	for range 3 {
		recount()
		require.Zero(t, roster.Now().Total)
	}
	require.True(t, late("lost"))
}

func TestRosterRefuses(t *testing.T) {
	rule := aggregate.Must(mciStatus())
	roster := aggregate.NewRoster(rule)
	_, err := roster.Apply(vmRow("a", 1, tumblebug.Running))
	require.NoError(t, err)

	_, err = roster.Apply(vmRow("a", 2, "Asleep"))
	require.ErrorIs(t, err, lifecycle.ErrForeign)
	row := vmRow("a", 2, tumblebug.Failed)
	row.Machine = "mci"
	_, err = roster.Apply(row)
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	require.ErrorIs(t, aggregate.Recount(roster, yielding(nil, vmRecord("a", 2, "Asleep"))), fsm.ErrUnknownState)
	broken := errors.New("the list ends early")
	require.ErrorIs(t, aggregate.Recount(roster, func(yield func(lifecycle.Record[tumblebug.State, struct{}], error) bool) {
		_ = yield(vmRecord("b", 1, tumblebug.Running), nil) && yield(lifecycle.Record[tumblebug.State, struct{}]{}, broken)
	}), broken)
	require.Equal(t, aggregate.Result[tumblebug.State]{State: tumblebug.Running, Count: 2, Total: 2}, roster.Now())
	require.Panics(t, func() { aggregate.NewRoster[state, state](nil) })
}

// The last of many writers with old results writes the present one.
func TestRosterSettle(t *testing.T) {
	roster := aggregate.NewRoster(aggregate.Must(mciStatus()))
	var mu sync.Mutex
	var parent aggregate.Result[tumblebug.State]
	write := func(now aggregate.Result[tumblebug.State]) error {
		for range rand.IntN(50) {
			runtime.Gosched() // another writer runs first
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
				newer, err := roster.Apply(vmRow(fmt.Sprint(g), uint64(i+1), states[(g+i)%3]))
				if err != nil || !newer {
					t.Errorf("%v %v", newer, err)
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
	roster := aggregate.NewRoster(aggregate.Must(mciStatus()))
	var written []int
	require.NoError(t, roster.Settle(func(now aggregate.Result[tumblebug.State]) error {
		written = append(written, now.Total)
		if n := len(written); n < 4 {
			_, err := roster.Apply(vmRow(fmt.Sprint(n), 1, tumblebug.Running))
			require.NoError(t, err)
		}
		return nil
	}))
	require.Equal(t, []int{0, 1, 2, 3}, written)
	broken := errors.New("the parent cannot be written")
	require.ErrorIs(t, roster.Settle(func(aggregate.Result[tumblebug.State]) error { return broken }), broken)
}
