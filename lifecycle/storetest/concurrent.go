package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// result is the output of a call about an object: the text of the record that Get has read, that
// Commit has written, or that a conflict has. The input of a commit is that of the record that it
// expects.
type result struct {
	record  string
	written bool
}

func textOf(r lifecycle.StoredRecord) string {
	return fmt.Sprint(r.Revision, " #", r.Sequence, " ", r.State)
}

// register is an object whose record is replaced by compare-and-set.
func register(first lifecycle.StoredRecord) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return textOf(first) },
		Step: func(now, input, output any) (bool, any) {
			out := output.(result)
			if out.written {
				return input == now && out.record != now, out.record
			}
			return out.record == now && input != now, now
		},
	}
}

// Reads, commits and the records in conflicts agree on one order of all calls about an object
// that contradicts no time: porcupine searches for it.
func historyIsLinearizable(t *tester) {
	first := t.put("a", idle)
	var clock atomic.Int64
	var calls [8][]porcupine.Operation
	t.together(len(calls), func(t *tester, i int) {
		known := first
		for range 2 * t.attempts {
			op := porcupine.Operation{ClientId: i, Call: clock.Add(1)}
			if rand.IntN(3) == 0 {
				known = t.get(first.Key)
				op.Output = result{record: textOf(known)}
			} else {
				op.Input = textOf(known)
				c := commitOf(change(known, fmt.Sprint("by ", i)))
				err := t.send(c)
				known = c.Changes[0].To
				if conflict, ok := errors.AsType[*lifecycle.ConflictError](err); ok {
					known = conflict.Current
				} else {
					require.NoError(t, err)
				}
				op.Output = result{textOf(known), err == nil}
			}
			op.Return = clock.Add(1)
			calls[i] = append(calls[i], op)
		}
	})
	found := porcupine.CheckOperationsTimeout(register(first), slices.Concat(calls[:]...), patience)
	require.Equal(t, porcupine.Ok, found, "no order of the calls explains their results: a read was stale, or two commits replaced one revision")
}

// oneWins requires that one of these commits, which start at the same moment, is written. The
// others must return an error that matches refused.
func (t *tester) oneWins(refused error, commits ...*lifecycle.Commit) {
	var wins atomic.Int64
	t.together(len(commits), func(t *tester, i int) {
		if t.written(commits[i], refused) {
			wins.Add(1)
		}
	})
	require.EqualValues(t, 1, wins.Load(), "commits that were written")
}

// written sends a commit and reports whether it is written. Otherwise it must return an error
// that matches refused.
func (t *tester) written(c *lifecycle.Commit, refused error) bool {
	err := t.send(c)
	if err != nil {
		require.ErrorIs(t, err, refused, "the error of a commit that another one has overtaken")
	}
	return err == nil
}

// Of many callers that create one object, one succeeds. Of those that remove it, one
// succeeds.
func oneCreationWins(t *tester) {
	for range 2 * (t.attempts / 5) {
		now := t.get(key("a"))
		var commits []*lifecycle.Commit
		for range 16 {
			ch := change(now, idle)
			if now.Exists() {
				ch = removal(now)
			}
			commits = append(commits, commitOf(ch))
		}
		t.oneWins(lifecycle.ErrConflict, commits...)
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
		t.oneWins(lifecycle.ErrRepeated, commits...)
	}
}

// A caller that is the only writer of an object meets no conflict, whatever others do
// to other objects. Heartbeats of the owner of the commits are such changes.
func singleWriterNeverConflicts(t *tester) {
	o := owner("process", 1)
	rec := t.join(o, alive)
	t.together(16, func(t *tester, i int) {
		t.writeAlone(fmt.Sprint(i), t.attempts, func(_ int, c *lifecycle.Commit) { c.Owner = o })
	}, func(t *tester) { rec = t.write(takeOver(rec, "", 0)) })
}

// writeAlone moves an object, which has no other writer, n times. edit completes each commit.
func (t *tester) writeAlone(id string, n int, edit func(i int, c *lifecycle.Commit)) {
	r := t.get(key(id))
	for i := range n {
		c := commitOf(change(r, idle))
		edit(i, c)
		t.commit(c)
		r = c.Changes[0].To
	}
}

// Commits of two objects, named in either order, do not block each other. The objects
// always change together.
func transactionsInAnyOrder(t *tester) {
	t.needsTwoChanges()
	first := [2]lifecycle.StoredRecord{t.put("a", idle), t.put("b", idle)}
	var wins atomic.Int64
	t.together(8, func(t *tester, i int) {
		for range t.attempts {
			now := [2]lifecycle.StoredRecord{t.get(first[0].Key), t.get(first[1].Key)}
			if t.written(commitOf(change(now[i%2], moving), change(now[1-i%2], moving)), lifecycle.ErrConflict) {
				wins.Add(1)
			}
		}
	})
	for _, r := range first {
		changes := int64(t.get(r.Key).Sequence - r.Sequence)
		require.Equal(t, wins.Load(), changes, "the commits of both objects that returned nil, and the changes of %s", r.ID)
	}
}

// Of two commits, each of which requires that the other was not written, one is written.
// They create two objects that never existed, move them, and create them after their removal.
func preconditionsHoldAtTheCommit(t *tester) {
	t.needsTwoChanges()
	for round := range t.attempts / 2 {
		a, b := fmt.Sprint("a of round ", round), fmt.Sprint("b of round ", round)
		t.oneOfTwo(idle, t.get(key(a)), t.get(key(b)))
		t.oneOfTwo(moving, t.put(a, idle), t.put(b, idle))
		t.oneOfTwo(idle, t.remove(t.get(key(a))), t.remove(t.get(key(b))))
	}
}

// oneOfTwo moves two objects to a state at the same moment. Each commit requires that
// the other object still has its state.
func (t *tester) oneOfTwo(to string, records ...lifecycle.StoredRecord) {
	var commits []*lifecycle.Commit
	for i, r := range records {
		other := records[1-i]
		c := commitOf(change(r, to))
		c.Require = []lifecycle.Precondition{{Key: other.Key, States: []string{other.State}}}
		commits = append(commits, c)
	}
	t.oneWins(lifecycle.ErrPrecondition, commits...)
}
