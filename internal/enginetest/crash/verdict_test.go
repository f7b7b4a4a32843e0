//go:build unix

package crash

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/crashtest"
)

// verdict is what the history of a disk says.
type verdict struct {
	rows  []lifecycle.HistoryRow
	done  int // operations that work has ended well
	swept int // operations that the sweeper has ended, or begun again
}

// judge demands of one disk that its record, its history, the world outside,
// what clients were told and the number of messages about it agree.
func judge(ctx context.Context, store lifecycle.Store, world outside, id string, answers []answer, messages int) (v verdict, err error) {
	if v.rows, err = crashtest.Audit(ctx, store, disk.Table(), id); err != nil {
		return v, err
	}
	deeds, err := world.done(id)
	if err != nil {
		return v, err
	}
	times := map[lifecycle.OpID]int{}
	for _, d := range deeds {
		if times[d.operation]++; times[d.operation] > 1 {
			return v, fmt.Errorf("operation %d of %s was done again, by %s in epoch %d", d.operation, id, d.owner, d.epoch)
		}
	}
	size, asked := 0, 0
	for _, row := range v.rows {
		switch {
		case row.Event == "make":
			size = 0
		case row.Event == "done" && row.From == "growing":
			size++
		}
		switch {
		case row.Actor == worker && row.Event == "done" && times[row.Operation] == 0:
			return v, fmt.Errorf("it is said to be done, and was not: %v", row)
		case row.Actor == worker && row.Event == "done":
			v.done++
		case row.Actor == fsm.Sweeper:
			v.swept++
		case row.Actor == user && row.Event != "delete":
			asked++ // and told it, in the same commit
		}
	}
	if asked != messages {
		return v, fmt.Errorf("%d messages about %s, not %d", messages, id, asked)
	}
	for _, a := range answers {
		if !slices.ContainsFunc(v.rows, a.is) {
			return v, fmt.Errorf("a client was told of %+v, and it is not there", a)
		}
	}
	rec, err := lifecycle.New(disk, store, nil).Get(ctx, id)
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
		return v, nil
	case err != nil:
		return v, err
	case !disk.Kind(rec.State).Resting():
		return v, fmt.Errorf("%s is still %s", id, rec.State)
	case rec.Payload != size:
		return v, fmt.Errorf("%s has the size %d, and was grown %d times", id, rec.Payload, size)
	}
	return v, nil
}

// answer is a change that a client was told of.
type answer struct {
	ID        string
	Sequence  uint64
	Operation lifecycle.OpID
	State     state
}

func (a answer) is(row lifecycle.HistoryRow) bool {
	return row.Sequence == a.Sequence && row.Operation == a.Operation && row.To == string(a.State)
}

// What is wrong is seen.
func TestJudge(t *testing.T) {
	for name, test := range map[string]struct {
		plant func(t *testing.T, m disks, world outside)
		told  answer
		says  string
	}{
		"nothing wrong": {told: answer{"d", 4, 2, "free"}},
		"done again": {
			plant: func(t *testing.T, m disks, world outside) { require.NoError(t, world.note("d", deed{2, "beta", 7})) },
			says:  "operation 2 of d was done again, by beta in epoch 7",
		},
		"not done": {
			plant: func(t *testing.T, m disks, _ outside) {
				grow, err := m.Fire(t.Context(), "d", "grow", user, nil)
				require.NoError(t, err)
				_, err = m.Report(t.Context(), "d", grow.Operation, "done", worker, "")
				require.NoError(t, err)
			},
			says: "it is said to be done, and was not",
		},
		"not told": {
			plant: func(t *testing.T, m disks, _ outside) {
				_, err := m.Fire(t.Context(), "d", "attach", user, nil)
				require.NoError(t, err)
			},
			says: "2 messages about d, not 3",
		},
		"forgotten": {told: answer{"d", 5, 3, "growing"}, says: "a client was told of {ID:d Sequence:5"},
		"on the way": {
			plant: func(t *testing.T, m disks, _ outside) {
				_, err := m.Override(t.Context(), "d", "copying", "person", "on purpose", nil)
				require.NoError(t, err)
			},
			says: "d is still copying",
		},
		"of another size": {
			plant: func(t *testing.T, m disks, _ outside) {
				_, err := m.Override(t.Context(), "d", "used", "person", "on purpose", &lifecycle.Change[int]{
					Edit: func(size *int) error { *size = 7; return nil },
				})
				require.NoError(t, err)
			},
			says: "d has the size 7, and was grown 1 times",
		},
	} {
		t.Run(name, func(t *testing.T) {
			store, world := lifecycle.NewMemoryStore(), outside(t.TempDir())
			m := lifecycle.New(disk, store, config(world.apply, 0))
			require.NoError(t, do("d", "make", "work", nil)(t.Context(), m))
			require.NoError(t, do("d", "grow", "grow", nil)(t.Context(), m))
			if test.plant != nil {
				test.plant(t, m, world)
			}
			var answers []answer
			if test.told.ID != "" {
				answers = append(answers, test.told)
			}
			v, err := judge(t.Context(), store, world, "d", answers, 2)
			if test.says != "" {
				require.ErrorContains(t, err, test.says)
				return
			}
			require.NoError(t, err)
			require.Equal(t, 2, v.done)
		})
	}
}
