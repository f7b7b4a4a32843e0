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
	"github.com/interlock-go/interlock/internal/crashtest"
	"github.com/interlock-go/interlock/lifecycle"
)

// verdict is a summary of the history of a disk.
type verdict struct {
	rows  []lifecycle.HistoryRow
	done  int // operations whose work has succeeded
	swept int // operations that the sweeper has ended or started again
}

// judge checks that the record of a disk, its history, the world outside, the answers
// that clients have received and the number of messages agree.
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
	accepted := map[string]bool{}
	for _, row := range v.rows {
		if row.Request != "" && accepted[row.Request] {
			return v, fmt.Errorf("request %q was accepted again: %v", row.Request, row)
		}
		accepted[row.Request] = true
		switch {
		case row.Event == "make":
			size = 0
		case row.Event == "done" && row.From == "growing":
			size++
		}
		switch {
		case row.Actor == worker && row.Event == "done" && times[row.Operation] == 0:
			return v, fmt.Errorf("reported as done without its effect: %v", row)
		case row.Actor == worker && row.Event == "done":
			v.done++
		case row.Actor == fsm.Sweeper:
			v.swept++
		case row.Actor == user && row.Event != "delete":
			asked++ // each has a message in the same commit
		}
	}
	if asked != messages {
		return v, fmt.Errorf("%d messages about %s, not %d", messages, id, asked)
	}
	for _, a := range answers {
		if !slices.ContainsFunc(v.rows, a.is) {
			return v, fmt.Errorf("a client has received %+v, which is not in the history", a)
		}
	}
	rec, err := lifecycle.Must(disk, store, nil).Get(ctx, id)
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

// answer is a change that a client has received as a result.
type answer struct {
	Request   string // its id; empty: the answer is the outcome of work
	ID        string
	Sequence  uint64
	Operation lifecycle.OpID
	State     state
}

func (a answer) is(row lifecycle.HistoryRow) bool {
	return (a.Request == "" || row.Request == a.Request) && row.Sequence == a.Sequence && row.Operation == a.Operation && row.To == string(a.State)
}

// TestJudge checks that judge detects every fault.
func TestJudge(t *testing.T) {
	for name, test := range map[string]struct {
		plant  func(t *testing.T, m disks, world outside)
		answer answer
		err    string
	}{
		"nothing wrong": {answer: answer{"", "d", 4, 2, "free"}},
		"done again": {
			plant: func(t *testing.T, m disks, world outside) { require.NoError(t, world.note("d", deed{2, "beta", 7})) },
			err:   "operation 2 of d was done again, by beta in epoch 7",
		},
		"not done": {
			plant: func(t *testing.T, m disks, _ outside) {
				grow, err := m.Fire(t.Context(), "d", "grow", user, nil)
				require.NoError(t, err)
				_, err = m.Report(t.Context(), "d", grow.Operation, "done", worker, nil)
				require.NoError(t, err)
			},
			err: "reported as done without its effect",
		},
		"without message": {
			plant: func(t *testing.T, m disks, _ outside) {
				_, err := m.Fire(t.Context(), "d", "attach", user, nil)
				require.NoError(t, err)
			},
			err: "2 messages about d, not 3",
		},
		"answer lost":               {answer: answer{"", "d", 5, 3, "growing"}, err: "a client has received {Request: ID:d Sequence:5"},
		"answer of another request": {answer: answer{"r", "d", 4, 2, "free"}, err: "a client has received {Request:r ID:d Sequence:4"},
		"not at rest": {
			plant: func(t *testing.T, m disks, _ outside) {
				_, err := m.Override(t.Context(), "d", "copying", "person", "on purpose", nil)
				require.NoError(t, err)
			},
			err: "d is still copying",
		},
		"of another size": {
			plant: func(t *testing.T, m disks, _ outside) {
				_, err := m.Override(t.Context(), "d", "used", "person", "on purpose", &lifecycle.Change[int]{
					Edit: func(size *int) error { *size = 7; return nil },
				})
				require.NoError(t, err)
			},
			err: "d has the size 7, and was grown 1 times",
		},
	} {
		t.Run(name, func(t *testing.T) {
			store, world := lifecycle.NewMemoryStore(), outside(t.TempDir())
			m := lifecycle.Must(disk, store, config(world.apply, 0))
			require.NoError(t, do("d", "make", "work", nil)(t.Context(), m))
			require.NoError(t, do("d", "grow", "grow", nil)(t.Context(), m))
			if test.plant != nil {
				test.plant(t, m, world)
			}
			var answers []answer
			if test.answer.ID != "" {
				answers = append(answers, test.answer)
			}
			v, err := judge(t.Context(), store, world, "d", answers, 2)
			if test.err != "" {
				require.ErrorContains(t, err, test.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, 2, v.done)
		})
	}
}
