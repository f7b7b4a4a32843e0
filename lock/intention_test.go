package lock_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/lock"
)

func intentionOf(t require.TestingT, l *lock.Intention, m lock.Mode) *lock.Unlocker {
	u, err := l.TryLock(m)
	require.NoError(t, err)
	return u
}

func TestIntentionAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l lock.Intention
		var all []*lock.Unlocker
		held := map[*lock.Unlocker]lock.Mode{}
		t.Repeat(map[string]func(*rapid.T){
			"try": func(t *rapid.T) {
				m := rapid.SampledFrom([]lock.Mode{lock.IX, lock.IX, lock.X}).Draw(t, "mode")
				free := true
				for _, by := range held {
					free = free && m == lock.IX && by == lock.IX
				}
				u, err := l.TryLock(m)
				if !free {
					require.ErrorIs(t, err, lock.ErrConflict)
					require.Nil(t, u)
					return
				}
				require.NoError(t, err)
				all, held[u] = append(all, u), m
			},
			"unlock, once or again": func(t *rapid.T) {
				if len(all) > 0 {
					u := rapid.SampledFrom(all).Draw(t, "unlocker")
					_, holds := held[u]
					require.Equal(t, holds, u.Unlock())
					delete(held, u)
				}
			},
			"bad mode": func(t *rapid.T) {
				m := rapid.SampledFrom(append(badModes, lock.IS, lock.S, lock.SIX)).Draw(t, "mode")
				u, err := l.TryLock(m)
				require.ErrorIs(t, err, lock.ErrInvalid)
				require.Nil(t, u)
			},
		})
	})
}

// At its limit the count does not wrap: IX and X are refused, and both are granted
// again after the release.
func TestIntentionAtItsLimit(t *testing.T) {
	var l lock.Intention
	lock.SetIntentions(&l, lock.MaxIntentions-1)
	last := intentionOf(t, &l, lock.IX)
	for range 3 {
		for _, m := range []lock.Mode{lock.IX, lock.X} {
			u, err := l.TryLock(m)
			require.ErrorIs(t, err, lock.ErrConflict)
			require.Nil(t, u)
		}
	}
	require.True(t, last.Unlock())
	require.True(t, intentionOf(t, &l, lock.IX).Unlock())
}

func TestIntentionRefusesOtherModes(t *testing.T) {
	var l lock.Intention
	_, err := l.TryLock(lock.S)
	require.EqualError(t, err, `lock: mode "S" is neither IX nor X: an Intention has no other`)
	_, err = l.TryLock(0)
	require.EqualError(t, err, `lock: mode "Mode(0)" is neither IX nor X: an Intention has no other`)
}

// Of many concurrent Unlocks of one lock, one reports true, also while others lock.
func TestIntentionUnlockedConcurrently(t *testing.T) {
	var l lock.Intention
	for range 200 {
		for _, m := range []lock.Mode{lock.X, lock.IX} {
			u := intentionOf(t, &l, m)
			var won atomic.Int32
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					if u.Unlock() {
						won.Add(1)
					}
					if other, err := l.TryLock(m); err == nil {
						other.Unlock()
					}
				})
			}
			wg.Wait()
			require.EqualValues(t, 1, won.Load())
		}
	}
	require.True(t, intentionOf(t, &l, lock.X).Unlock(), "nothing is left behind")
}

type intentionCall struct {
	mode   lock.Mode
	unlock bool
}

// intentionModel: the state is the number of IX, -1 for X.
var intentionModel = porcupine.Model{
	Init: func() any { return 0 },
	Step: func(state, input, output any) (bool, any) {
		n, in, ok := state.(int), input.(intentionCall), output.(bool)
		switch {
		case in.unlock && in.mode == lock.X:
			return ok && n == -1, 0
		case in.unlock:
			return ok && n > 0, n - 1
		case in.mode == lock.X:
			return ok == (n == 0), map[bool]int{true: -1, false: n}[ok]
		default:
			return ok == (n >= 0), map[bool]int{true: n + 1, false: n}[ok]
		}
	},
}

func TestIntentionIsLinearizable(t *testing.T) {
	const histories, clients, calls = 150, 4, 30
	for seed := range histories {
		var l lock.Intention
		var wg sync.WaitGroup
		logs := make([][]porcupine.Operation, clients)
		var clock atomic.Int64 // the order of all calls and returns
		for client := range clients {
			wg.Go(func() {
				do := func(in intentionCall, f func() bool) bool {
					called := clock.Add(1)
					ok := f()
					logs[client] = append(logs[client], porcupine.Operation{
						ClientId: client, Input: in, Call: called, Output: ok, Return: clock.Add(1),
					})
					return ok
				}
				for i := range calls {
					m := lock.IX
					if (i*7+client*3+seed)%3 == 0 {
						m = lock.X
					}
					var u *lock.Unlocker
					if do(intentionCall{m, false}, func() bool { u, _ = l.TryLock(m); return u != nil }) {
						do(intentionCall{m, true}, u.Unlock)
					}
				}
			})
		}
		wg.Wait()
		var history []porcupine.Operation
		for _, log := range logs {
			history = append(history, log...)
		}
		require.True(t, porcupine.CheckOperations(intentionModel, history), "history %d", seed)
	}
}
