package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// attempt is the input of one call about an object in a history for porcupine. The
// output is the record that the call returned: the one that Get has read, the one that
// Commit has written, or the current one of a conflict.
type attempt struct {
	commits bool
	expect  lifecycle.Revision
}

type result struct {
	written  bool
	revision lifecycle.Revision
	sequence uint64
	state    string
}

func resultOf(written bool, r *lifecycle.StoredRecord) result {
	return result{written, r.Revision, r.Sequence, r.State}
}

// register is an object whose record is replaced by compare-and-set.
func register(first lifecycle.StoredRecord) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return resultOf(false, &first) },
		Step: func(state, input, output any) (bool, any) {
			now, in, out := state.(result), input.(attempt), output.(result)
			written := out.written
			out.written = false
			switch {
			case written:
				return in.expect == now.revision && out.sequence == now.sequence+1 && out.revision != now.revision, out
			case in.commits:
				return out == now && in.expect != now.revision, now
			}
			return out == now, now
		},
	}
}

// Reads, commits and the records in conflicts agree on one order of all calls that
// contradicts no time: porcupine searches for it.
func historyIsLinearizable(t *tester) {
	const callers, objects = 8, 3
	first := make([]lifecycle.StoredRecord, objects)
	for n := range first {
		first[n] = t.put(fmt.Sprint("object", n), idle)
	}
	var clock atomic.Int64
	var calls [callers][objects][]porcupine.Operation
	t.together(callers, func(i int) error {
		known := append([]lifecycle.StoredRecord(nil), first...)
		random := rand.New(rand.NewPCG(uint64(i), 0))
		for range 2 * t.attempts {
			n := random.IntN(objects)
			op := porcupine.Operation{ClientId: i, Call: clock.Add(1)}
			in, out, err := t.attempt(&known[n], random.IntN(3) > 0, fmt.Sprint("by ", i))
			if err != nil {
				return err
			}
			op.Input, op.Output, op.Return = in, out, clock.Add(1)
			calls[i][n] = append(calls[i][n], op)
		}
		return nil
	})
	for n := range objects {
		var history []porcupine.Operation
		for i := range calls {
			history = append(history, calls[i][n]...)
		}
		found := porcupine.CheckOperationsTimeout(register(first[n]), history, patience)
		require.Equal(t, porcupine.Ok, found, "%d calls about one object have no order", len(history))
	}
}

// attempt reads an object, or moves it from the record that the caller knows.
func (t *tester) attempt(known *lifecycle.StoredRecord, commits bool, state string) (in attempt, out result, err error) {
	if !commits {
		*known, err = t.store().Get(t.Context(), known.Key)
		return attempt{}, resultOf(false, known), err
	}
	c := commitOf(change(*known, state))
	in = attempt{commits: true, expect: known.Revision}
	err = t.send(c)
	if conflict, ok := errors.AsType[*lifecycle.ConflictError](err); ok {
		*known = conflict.Current
		return in, resultOf(false, known), nil
	}
	*known = c.Changes[0].To
	return in, resultOf(true, known), err
}

// race runs n commits at the same moment and returns how many were written. The others
// must return an error that matches refused.
func (t *tester) race(refused error, commits ...*lifecycle.Commit) (written int) {
	t.Helper()
	var wins atomic.Int64
	t.together(len(commits), func(i int) error {
		err := t.send(commits[i])
		if err == nil {
			wins.Add(1)
		} else if !errors.Is(err, refused) {
			return err
		}
		return nil
	})
	return int(wins.Load())
}

// Of many callers that create one object, one succeeds. Of those that remove it, one
// succeeds.
func oneCreationWins(t *tester) {
	raceOf := func(ch lifecycle.StoredChange) int {
		var commits []*lifecycle.Commit
		for range 16 {
			commits = append(commits, commitOf(ch))
		}
		return t.race(lifecycle.ErrConflict, commits...)
	}
	for range t.attempts / 5 {
		require.Equal(t, 1, raceOf(change(t.get(key("a")), idle)), "creations that succeeded")
		require.Equal(t, 1, raceOf(removal(t.get(key("a")))), "removals that succeeded")
	}
}

// Of simultaneous commits with one request, about different objects, one is written.
func oneRequestWins(t *tester) {
	t.needs(t.keepsRequests(), "the store keeps no requests")
	for round := range 5 {
		var commits []*lifecycle.Commit
		for i := range 8 {
			ch := change(t.get(key(fmt.Sprint("object ", round, i))), idle)
			ch.Request = fmt.Sprint("r", round)
			commits = append(commits, commitOf(ch))
		}
		require.Equal(t, 1, t.race(lifecycle.ErrRepeated, commits...), "commits that were written")
	}
}

// A caller that is the only writer of an object meets no conflict, whatever others do
// to other objects. Heartbeats of the owner of the commits are such changes.
func singleWriterNeverConflicts(t *tester) {
	o := owner("process", 1)
	first := t.join(o, alive)
	const callers = 16
	var writing atomic.Int64
	writing.Store(callers)
	t.together(callers+1, func(i int) error {
		if i == callers {
			for beat := first; writing.Load() > 0; {
				c := commitOf(takeOver(beat, "", 0))
				if err := t.send(c); err != nil {
					return err
				}
				beat = c.Changes[0].To
			}
			return nil
		}
		defer writing.Add(-1)
		for object := range 4 {
			r, err := t.store().Get(t.Context(), key(fmt.Sprint(i, "/", object)))
			for n := 0; n < t.attempts/4 && err == nil; n++ {
				c := commitOf(change(r, idle))
				c.Owner = o
				err = t.send(c)
				r = c.Changes[0].To
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Commits of two objects, named in either order, do not block each other. The objects
// always change together.
func transactionsInAnyOrder(t *tester) {
	t.needsChanges(2)
	first := [2]lifecycle.StoredRecord{t.put("a", idle), t.put("b", idle)}
	var wins atomic.Int64
	t.together(8, func(i int) error {
		for range t.attempts {
			var now [2]lifecycle.StoredRecord
			for k := range now {
				var err error
				if now[k], err = t.store().Get(t.Context(), first[k].Key); err != nil {
					return err
				}
			}
			err := t.send(commitOf(change(now[i%2], moving), change(now[1-i%2], moving)))
			if err == nil {
				wins.Add(1)
			} else if !errors.Is(err, lifecycle.ErrConflict) {
				return err
			}
		}
		return nil
	})
	for _, r := range first {
		require.EqualValues(t, wins.Load(), t.get(r.Key).Sequence-r.Sequence, "changes of %s", r.ID)
	}
}

// Of two commits, each of which requires that the other was not written, one is written.
// They move two objects, or create two objects that never existed or were removed.
func preconditionsHoldAtTheCommit(t *tester) {
	t.needsChanges(2)
	for range t.attempts / 5 {
		t.oneOfTwo(moving, idle, t.put("a", idle), t.put("b", idle))
	}
	for round := range t.attempts / 2 {
		a, b := key(fmt.Sprint("a of round ", round)), key(fmt.Sprint("b of round ", round))
		for range 2 {
			t.oneOfTwo(idle, "", t.get(a), t.get(b))
			for _, r := range []lifecycle.StoredRecord{t.get(a), t.get(b)} {
				if r.Exists() {
					t.remove(r)
				}
			}
		}
	}
}

// oneOfTwo moves two objects to a state at the same moment. Each commit requires that
// the other object is still in another state.
func (t *tester) oneOfTwo(to, other string, records ...lifecycle.StoredRecord) {
	t.Helper()
	var commits []*lifecycle.Commit
	for i, r := range records {
		c := commitOf(change(r, to))
		c.Require = []lifecycle.Precondition{{Key: records[1-i].Key, States: []string{other}}}
		commits = append(commits, c)
	}
	require.Equal(t, 1, t.race(lifecycle.ErrPrecondition, commits...), "commits that exclude each other")
}
