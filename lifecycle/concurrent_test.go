package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// together runs n functions at once and waits for them.
func together(n int, f func(i int)) {
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	wg.Wait()
}

// TestOneWinner: of many calls of Fire on one object at once, exactly one moves it.
// The others get ErrBusy or a conflict with the record that won.
func TestOneWinner(t *testing.T) {
	m, _ := vms(t)
	for round := range 200 {
		id := fmt.Sprint(round)
		create(t, m, id, "import", user, size{})
		var records [4]lifecycle.Record[state, size]
		var errs [4]error
		together(len(errs), func(i int) {
			records[i], errs[i] = m.Fire(t.Context(), id, "update", user, resize(i+1))
		})
		won := slices.IndexFunc(errs[:], func(err error) bool { return err == nil })
		require.GreaterOrEqual(t, won, 0, "no call has won: %v", errs)
		require.Equal(t, records[won], get(t, m, id))
		for i, err := range errs {
			switch {
			case i == won:
			case errors.Is(err, lifecycle.ErrBusy):
			default:
				require.ErrorIs(t, err, lifecycle.ErrConflict, "a second winner, or an error of another kind")
				require.Equal(t, records[won], winnerOf(t, m, err))
			}
		}
		require.Len(t, rowsOf(t, m, id, 0, 0), 2)
	}
}

// TestOneSelfTransition: a self transition has one winner too, so that no edit
// is ever lost: the payload is the sum of all accepted edits.
func TestOneSelfTransition(t *testing.T) {
	m, _ := vms(t)
	create(t, m, "a", "import", user, size{})
	var accepted [8]int
	together(len(accepted), func(i int) {
		for range 50 {
			_, err := m.Fire(t.Context(), "a", "touch", user, &lifecycle.Change[size]{Edit: func(p *size) error {
				p.N++
				return nil
			}})
			switch {
			case err == nil:
				accepted[i]++
			case !errors.Is(err, lifecycle.ErrConflict):
				t.Error(err)
			}
		}
	})
	sum := 0
	for _, n := range accepted {
		sum += n
	}
	rec := get(t, m, "a")
	require.Equal(t, sum, rec.Payload.N)
	require.EqualValues(t, sum+1, rec.Sequence)
}

// TestOneCreator: of many that create one object, one does, and the others get
// its record.
func TestOneCreator(t *testing.T) {
	m, _ := vms(t)
	for round := range 100 {
		id := fmt.Sprint(round)
		var records [4]lifecycle.Record[state, size]
		var errs [4]error
		together(len(errs), func(i int) {
			records[i], errs[i] = m.Create(t.Context(), id, "create", user, size{N: i + 1}, nil)
		})
		won := slices.IndexFunc(errs[:], func(err error) bool { return err == nil })
		require.GreaterOrEqual(t, won, 0)
		for i, err := range errs {
			if i == won {
				continue
			}
			require.ErrorIs(t, err, lifecycle.ErrExists)
			require.Equal(t, records[won], winnerOf(t, m, err))
		}
	}
}

// TestOneReport: of many copies of a report, one is applied, and all others are
// repeated. No copy is refused, whatever the race.
func TestOneReport(t *testing.T) {
	m, _ := vms(t)
	for round := range 100 {
		id := fmt.Sprint(round)
		updating(t, m, id)
		var verdicts [lifecycle.Refused + 1]atomic.Int32
		together(4, func(int) {
			verdict, err := m.Report(t.Context(), id, 2, "done", agent, nil)
			if err != nil {
				t.Error(err)
			}
			verdicts[verdict].Add(1)
		})
		require.EqualValues(t, 1, verdicts[lifecycle.Applied].Load())
		require.EqualValues(t, 3, verdicts[lifecycle.Repeated].Load())
	}
}

// acceptedReport is a report whose verdict was Applied.
type acceptedReport struct {
	id, reason string
	operation  lifecycle.OpID
	event      event
}

// TestCrowd lets many users and agents loose on few objects, on two managers of
// one store. Whatever they do, the history of every object is a gapless path of
// the table, and every report that was applied is in it exactly once, in the
// operation that it was about.
func TestCrowd(t *testing.T) {
	for _, keepRemoved := range []int{0, -1} {
		t.Run(fmt.Sprintf("KeepRemoved %d", keepRemoved), func(t *testing.T) {
			crowd(t, (&lifecycle.MemoryStore{KeepHistory: -1}).KeepRemoved(keepRemoved), keepRemoved == 0)
		})
	}
}

func crowd(t *testing.T, store *lifecycle.MemoryStore, remembered bool) {
	const people, requests = 8, 600
	ids := []string{"a", "b", "c"}
	var mu sync.Mutex
	observed := map[string][]lifecycle.HistoryRow{}
	config := &lifecycle.Config[event]{Observer: lifecycle.Observer{Changed: func(_ context.Context, row lifecycle.CommittedChange) {
		mu.Lock()
		defer mu.Unlock()
		observed[row.ID] = append(observed[row.ID], row.HistoryRow)
	}}}
	managers := []*sizedManager{lifecycle.Must(sizedVM, store, config), lifecycle.Must(sizedVM, store, config)}
	var accepted, others []acceptedReport
	together(people, func(i int) {
		m, rng := managers[i%2], rand.New(rand.NewPCG(1, uint64(i)))
		for n := range requests {
			id := ids[rng.IntN(len(ids))]
			switch rng.IntN(8) {
			case 0:
				_, err := m.Create(t.Context(), id, pick[event](rng, "create", "import"), user, size{}, nil)
				expected(t, err, lifecycle.ErrExists, lifecycle.ErrConflict)
			case 1, 2, 3:
				e := pick[event](rng, "update", "delete", "retry", "undo", "touch", "late", "progress")
				_, err := m.Fire(t.Context(), id, e, pick(rng, user, agent, fsm.Sweeper), nil)
				expected(t, err, lifecycle.ErrConflict, lifecycle.ErrBusy, lifecycle.ErrNotFound, fsm.ErrNotAllowed, fsm.ErrWrongActor)
			default:
				rec, err := m.Get(t.Context(), id)
				expected(t, err, lifecycle.ErrNotFound)
				r := acceptedReport{
					id: id, reason: fmt.Sprintf("%d of %d", n, i),
					operation: max(rec.Operation, 2) - lifecycle.OpID(rng.IntN(3)),
					event:     pick[event](rng, "progress", "done", "done", "fail", "move"),
				}
				verdict, err := m.Report(t.Context(), id, r.operation, r.event, agent, &lifecycle.Change[size]{Reason: r.reason})
				expected(t, err, lifecycle.ErrConflict)
				mu.Lock()
				if verdict == lifecycle.Applied {
					accepted = append(accepted, r)
				} else {
					others = append(others, r)
				}
				mu.Unlock()
			}
		}
	})
	require.NotEmpty(t, accepted)
	require.NotEmpty(t, others)

	byReason := map[string]lifecycle.HistoryRow{}
	for _, id := range ids {
		rows := observed[id]
		slices.SortFunc(rows, func(a, b lifecycle.HistoryRow) int { return int(a.Sequence) - int(b.Sequence) })
		require.NotEmpty(t, rows)
		if remembered {
			path(t, sizedVM, "None", rows)
			kept, err := store.History(t.Context(), lifecycle.Key{Machine: "vm", ID: id}, 0, 1<<20)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(kept, rows), "the observers received the history")
		}
		for i, row := range rows {
			require.False(t, i > 0 && row.Operation < rows[i-1].Operation, "operation ids decrease: %v", row)
			require.False(t, i > 0 && row.Sequence == rows[i-1].Sequence, "two commits of one number: %v", row)
			if row.Reason != "" {
				_, twice := byReason[row.Reason]
				require.False(t, twice, "a report was applied twice: %v", row)
				byReason[row.Reason] = row
			}
		}
	}
	require.Len(t, byReason, len(accepted))
	for _, r := range accepted {
		row := byReason[r.reason]
		require.Equal(t, r, acceptedReport{row.ID, row.Reason, row.Operation, event(row.Event)})
	}
	for _, r := range others {
		require.NotContains(t, byReason, r.reason, "a report that was not applied has changed something")
	}
}

func pick[V any](rng *rand.Rand, of ...V) V { return of[rng.IntN(len(of))] }

// expected complains of an error that is none of the sentinels.
func expected(t *testing.T, err error, sentinels ...error) {
	t.Helper()
	if err != nil && !slices.ContainsFunc(sentinels, func(s error) bool { return errors.Is(err, s) }) {
		t.Errorf("unexpected: %v", err)
	}
}
