package storetest

import (
	"sync"
	"sync/atomic"
	"time"
)

func restartDemands() []demand {
	return []demand{
		{
			name: "Restart/keeps_what_was_acknowledged", run: restartKeeps, needs: needRestart,
			says: "What was acknowledged is there after the engine was killed and started again, and the same store goes on: records, numbers, tokens, history and messages.",
		},
		{
			name: "Restart/during_commits_is_exact", run: restartDuring, needs: needRestart | needHistory,
			says: "Where the engine is killed and started again while many goroutines commit, what they were told agrees on one order, and every commit in the history is one of theirs. What was read before its writer was told of it may be lost, but its revision is then never that of anything else.",
		},
	}
}

func restartKeeps(t *trial) {
	t.keeps("the engine was restarted", func() {
		t.h.Restart(t.TB, t.store)
		t.recovered()
	})
}

func restartDuring(t *trial) {
	const restarts = 3
	between := 10 * int64(t.attempts) // calls that are answered between two restarts
	t.exactUnder("restarts of the engine", true, func(calls func(more func() bool)) {
		var restarting atomic.Bool
		restarting.Store(true)
		var calling sync.WaitGroup
		calling.Go(func() { calls(restarting.Load) })
		defer calling.Wait()
		defer restarting.Store(false) // also if the harness fails the test
		for i := range int64(restarts) {
			t.progressed(i * between)
			t.h.Restart(t.TB, t.store)
		}
		t.progressed(restarts * between)
	})
}

// progressed waits until so many calls were answered.
func (t *trial) progressed(calls int64) {
	t.Helper()
	for end := time.Now().Add(t.patience); t.progress.Load() < calls && !t.Failed(); {
		if time.Now().After(end) {
			t.Fatalf("for %v no more than %d calls are answered after the engine was restarted", t.patience, t.progress.Load())
		}
		time.Sleep(time.Millisecond)
	}
}
