package storetest

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
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
	has := t.store.Capabilities()
	a := t.get(key("a"))
	c := commitOf(lifecycle.StoredChange{Expect: a.Revision, To: full(a.Key), Within: hour})
	c.Changes[0].To.Sequence = a.Sequence + 1
	if has.Messages {
		c.Messages = []lifecycle.Message{message("one"), message("two")}
	}
	sent, filled := t.sent(c)
	a = filled.Changes[0].To
	left := t.remove(t.move(t.put(key("b"), idle), moving))
	outdated := t.put(key("c"), idle)
	now := t.move(outdated, moving)
	for range 2 {
		t.h.Restart(t.TB, t.store)
		t.recovered()
		t.stays("the engine was restarted", a, now, left)
		t.found(lifecycle.Query{Machine: machine}, "a", "c")
		t.refused(commitOf(change(outdated, broken)), "an outdated revision, after the engine was restarted")
		if has.History {
			t.repeat(sent, filled, "after the engine was restarted")
			t.newest(t.history(a.Key, 0, all), []lifecycle.HistoryRow{filled.Changes[0].Row(filled.Token)}, 1)
		}
		if has.Messages {
			t.told(t.messages(all), c.Messages)
		}
		again := t.move(now, moving) // under a revision of its own
		if again.Revision == now.Revision || again.Revision == outdated.Revision {
			t.Errorf("revision %q is repeated after the engine was restarted", again.Revision)
		}
		outdated, now = now, again
	}
	made := t.move(left, idle)
	t.isAbove(made, left)
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
