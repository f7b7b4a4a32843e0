package aggregate_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/lifecycle"
)

// forgetful is a store that loses some commits, and the answers to other commits.
type forgetful struct {
	*lifecycle.MemoryStore
	loses float64 // probability of each
}

func (s *forgetful) Commit(ctx context.Context, c *lifecycle.Commit) error {
	luck := rand.Float64()
	if luck < s.loses {
		return fmt.Errorf("%w: the request was lost", lifecycle.ErrUnknownOutcome)
	}
	err := s.MemoryStore.Commit(ctx, c)
	if err == nil && luck > 1-s.loses {
		return fmt.Errorf("%w: the answer was lost", lifecycle.ErrUnknownOutcome)
	}
	return err
}

// Several managers on one store create, move, override and remove blades. The counts
// in the racks are those of the existing blades, and no change found them wrong.
func TestCountsInThePayload(t *testing.T) {
	for round := range 30 {
		synctest.Test(t, func(t *testing.T) {
			ctx := t.Context()
			store := &forgetful{MemoryStore: &lifecycle.MemoryStore{KeepHistory: -1}, loses: []float64{0, 0.1, 0.3}[round%3]}
			racks := []string{"r0", "r1", "no such rack"}
			blades, rackManager := newRacks(store.MemoryStore)
			for _, rack := range racks[:2] {
				_, err := rackManager.Add(ctx, rack, "There", user, rackSpec{}, nil)
				require.NoError(t, err)
			}
			var all errgroup.Group
			for range 6 {
				all.Go(func() error {
					blades, _ := newRacks(store)
					for range 30 {
						id, rack := fmt.Sprint("b", rand.IntN(4)), racks[rand.IntN(20)%3]
						if err := moveSomehow(ctx, blades, id, rack); errors.Is(err, errMiscount) {
							return err
						}
					}
					return nil
				})
			}
			require.NoError(t, all.Wait())
			time.Sleep(3 * time.Hour) // all timeouts expire
			synctest.Wait()
			there := map[string]map[state]int{"r0": {}, "r1": {}}
			for b, err := range blades.All(ctx, lifecycle.Select[state]{}) {
				require.NoError(t, err)
				there[b.Payload.Rack][b.State]++
			}
			for rack, want := range there {
				rec, err := rackManager.Get(ctx, rack)
				require.NoError(t, err)
				counted := rec.Payload.Blades
				maps.DeleteFunc(counted, func(s state, n int) bool { return n == 0 || s == "None" })
				if counted == nil {
					counted = map[state]int{}
				}
				require.Equal(t, want, counted, rack)
			}
		})
	}
}

// moveSomehow makes a random change of a blade.
func moveSomehow(ctx context.Context, blades *lifecycle.Manager[state, event, bladeSpec], id, rack string) error {
	var err error
	switch rand.IntN(9) {
	case 0, 1:
		_, err = blades.Create(ctx, id, "insert", user, bladeSpec{Rack: rack}, nil)
	case 2:
		_, err = blades.Fire(ctx, id, "done", agent, nil)
	case 3:
		_, err = blades.Fire(ctx, id, "fail", agent, nil)
	case 4:
		_, err = blades.Fire(ctx, id, "carry", user, &lifecycle.Change[bladeSpec]{
			Edit: func(b *bladeSpec) error { b.Rack = rack; return nil },
		})
	case 5:
		_, err = blades.Fire(ctx, id, "remove", user, nil)
	case 6:
		time.Sleep(30 * time.Second)
		_, err = blades.Sweep(ctx)
	case 7:
		to := []state{"Up", "Failed", "None", "Busy"}[rand.IntN(4)]
		_, err = blades.Override(ctx, id, to, "operator", "a test", nil)
	case 8:
		var work *lifecycle.Ticket[state, bladeSpec]
		work, err = blades.Do(ctx, id, "work", user, lifecycle.Func(func(context.Context) error {
			switch rand.IntN(4) {
			case 0:
				return errors.New("the work fails")
			case 1:
				time.Sleep(time.Hour)
			}
			return nil
		}), nil)
		if err == nil && rand.IntN(2) == 0 {
			_, err = work.Wait(ctx)
		}
	}
	return err
}
