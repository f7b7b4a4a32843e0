package storetest

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/interlock-go/interlock/lifecycle"
)

func concurrentDemands() []demand {
	return []demand{
		{
			name: "Concurrent/one_winner_per_revision", run: oneWinner,
			says: "Where 64 goroutines move one object, every revision has one winner, the sequence is dense, every loser gets a record that is newer than the one it expected.",
		},
		{
			name: "Concurrent/one_creation_wins", run: oneCreation,
			says: "Of goroutines that create one object, one does; and of those that remove it, one does.",
		},
		{
			name: "Concurrent/right_revision_never_conflicts", run: neverFalseConflict,
			says: "Who alone writes an object, knowing its revision, meets no conflict, whatever others do to other objects.",
		},
		{
			name: "Concurrent/reads_and_writes_are_linearizable", run: linearizable,
			says: "Reads, commits and the records in conflicts agree on one order that contradicts nobody's time.",
		},
		{
			name: "Concurrent/who_came_back_is_not_taken", run: cameBack,
			says: "Who moves what was listed in a state does not move an object that has left it and come back meanwhile, however often many do so at once.",
		},
		{
			name: "Concurrent/changes_in_any_order", run: anyOrder, changes: 2,
			says: "Commits of two objects, named in either order, do not block each other; the objects always move together.",
		},
		{
			name: "Concurrent/preconditions_hold_at_the_commit", run: noWriteSkew, changes: 2,
			says: "Of two commits each of which requires that the other has not happened, one happens.",
		},
		{
			name: "Concurrent/absence_holds_at_the_commit", run: noTwins, changes: 2,
			says: "So it is where each creates an object and requires that the other's does not exist: never, or no more. What was only required is listed by nobody.",
		},
	}
}

const writers = 64

func oneWinner(t *trial) {
	first := t.put(key("a"), idle)
	owner := make([]atomic.Int64, writers*t.attempts+1) // by sequence, who wrote it
	var wins atomic.Int64
	together(writers, func(w int) {
		r := first
		for range t.attempts {
			c := commitOf(change(r, []string{idle, moving}[w%2]))
			err := send(t.Context(), t.store, c)
			conflict, lost := errors.AsType[*lifecycle.ConflictError](err)
			switch {
			case err == nil:
				wins.Add(1)
				r = c.Changes[0].To
				at := r.Sequence - first.Sequence
				if at >= uint64(len(owner)) {
					t.Errorf("of at most %d commits one is #%d, after #%d", len(owner)-1, r.Sequence, first.Sequence)
					return
				}
				if before := owner[at].Swap(int64(w + 1)); before != 0 {
					t.Errorf("writers %d and %d both won #%d", before-1, w, r.Sequence)
					return
				}
			case !lost:
				t.Errorf("Commit: %v", err)
				return
			case conflict.Current.Sequence <= r.Sequence || conflict.Current.Revision == r.Revision:
				t.Errorf("a writer that expected #%d lost to #%d", r.Sequence, conflict.Current.Sequence)
				return
			default:
				r = conflict.Current
			}
		}
	})
	if t.Failed() {
		return
	}
	last := t.get(first.Key)
	if got := int64(last.Sequence - first.Sequence); got != wins.Load() {
		t.Fatalf("%d commits were acknowledged, the sequence has grown by %d", wins.Load(), got)
	}
	for i := range wins.Load() {
		if owner[i+1].Load() == 0 {
			t.Fatalf("nobody wrote #%d of %d", first.Sequence+uint64(i)+1, last.Sequence)
		}
	}
}

func oneCreation(t *trial) {
	const callers = 16
	race := func(what string, ch lifecycle.StoredChange) {
		var won, lost atomic.Int64
		together(callers, func(int) {
			switch err := send(t.Context(), t.store, commitOf(ch)); {
			case err == nil:
				won.Add(1)
			case errors.Is(err, lifecycle.ErrConflict):
				lost.Add(1)
			default:
				t.Errorf("%s: %v", what, err)
			}
		})
		if won.Load() != 1 || lost.Load() != callers-1 {
			t.Fatalf("of %d %ss %d won and %d were conflicts", callers, what, won.Load(), lost.Load())
		}
	}
	for range t.attempts / 5 {
		race("creation", change(t.get(key("a")), idle))
		race("removal", removal(t.get(key("a"))))
	}
}

func neverFalseConflict(t *trial) {
	const callers, objects = 16, 4
	together(callers, func(w int) {
		var records [objects]lifecycle.StoredRecord
		for i := range t.attempts {
			r := &records[i%objects]
			if !r.Exists() {
				var err error
				if *r, err = t.store.Get(t.Context(), key(fmt.Sprint(w, "/", i%objects))); err != nil {
					t.Errorf("Get: %v", err)
					return
				}
			}
			c := commitOf(change(*r, idle)) // some of them change nothing
			if err := send(t.Context(), t.store, c); err != nil {
				t.Errorf("the only writer of an object, at its revision: %v", err)
				return
			}
			*r = c.Changes[0].To
		}
	})
}

// anyOrder moves two objects together, named in one order and in the other.
func anyOrder(t *trial) {
	first := [2]lifecycle.StoredRecord{t.put(key("a"), idle), t.put(key("b"), idle)}
	var wins atomic.Int64
	together(8, func(w int) {
		for range t.attempts {
			var now [2]lifecycle.StoredRecord
			for i := range now {
				var err error
				if now[i], err = t.store.Get(t.Context(), first[i].Key); err != nil {
					t.Errorf("Get: %v", err)
					return
				}
			}
			c := commitOf(change(now[w%2], moving), change(now[1-w%2], moving))
			err := send(t.Context(), t.store, c)
			if err == nil {
				wins.Add(1)
			} else if !errors.Is(err, lifecycle.ErrConflict) {
				t.Errorf("Commit of two objects: %v", err)
				return
			}
		}
	})
	for i := range first {
		now := t.get(first[i].Key)
		if got := int64(now.Sequence - first[i].Sequence); got != wins.Load() {
			t.Errorf("%d commits of two objects were acknowledged, %q has %d of them", wins.Load(), now.ID, got)
		}
	}
}

func noWriteSkew(t *trial) {
	for range t.attempts / 5 {
		at := [2]lifecycle.StoredRecord{t.put(key("a"), idle), t.put(key("b"), idle)}
		var won atomic.Int64
		together(len(at), func(i int) {
			c := commitOf(change(at[i], moving))
			c.Require = []lifecycle.Precondition{{Key: at[1-i].Key, States: []string{idle}}}
			switch err := send(t.Context(), t.store, c); {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, lifecycle.ErrPrecondition):
				t.Errorf("a commit that requires another object to be idle: %v", err)
			}
		})
		if won.Load() != 1 {
			t.Fatalf("of two commits that exclude each other %d were written", won.Load())
		}
	}
}

// noTwins has what does not exist required while it is created: there may be no
// row that could be locked.
func noTwins(t *trial) {
	var made []string
	for round := range t.attempts / 2 {
		pair := [2]lifecycle.Key{key(fmt.Sprintf("%04d", round)), key(fmt.Sprintf("%04d twin", round))}
		for _, when := range []string{"never", "no more"} {
			at := [2]lifecycle.StoredRecord{t.get(pair[0]), t.get(pair[1])}
			var won [2]atomic.Bool
			together(len(at), func(i int) {
				c := commitOf(change(at[i], idle))
				c.Require = []lifecycle.Precondition{{Key: pair[1-i], States: []string{""}}}
				switch err := send(t.Context(), t.store, c); {
				case err == nil:
					won[i].Store(true)
				case !errors.Is(err, lifecycle.ErrPrecondition):
					t.Errorf("a creation that requires another object not to exist: %v", err)
				}
			})
			if t.Failed() {
				return
			}
			if won[0].Load() == won[1].Load() {
				t.Fatalf("two creations, each of which requires that the other's object does not exist (it did %s), were both written: %t", when, won[0].Load())
			}
			winner := pair[0]
			if won[1].Load() {
				winner = pair[1]
			}
			if when == "never" {
				t.remove(t.get(winner))
				continue
			}
			made = append(made, winner.ID)
		}
	}
	t.found(lifecycle.Query{Machine: machine}, made...)
}

// cameBack lets objects leave a state and come back to it, as one that is done
// and begun again, while sweeps of several goroutines move what they have listed
// there.
func cameBack(t *trial) {
	const objects, sweeps = 6, 4
	var moves [objects]atomic.Int64
	first := map[string]lifecycle.StoredRecord{}
	index := map[string]int{}
	for i := range objects {
		r := t.put(key(writerID(i)), moving)
		first[r.ID], index[r.ID] = r, i
	}
	var walking atomic.Int64
	walking.Store(objects)
	// advance commits, and counts what is acknowledged; a conflict is a fair answer.
	advance := func(r *lifecycle.StoredRecord, state string) bool {
		c := commitOf(change(*r, state))
		err := send(t.Context(), t.store, c)
		conflict, lost := errors.AsType[*lifecycle.ConflictError](err)
		switch {
		case err == nil:
			moves[index[r.ID]].Add(1)
			*r = c.Changes[0].To
		case lost:
			*r = conflict.Current
		default:
			t.Errorf("Commit: %v", err)
		}
		return err == nil || lost
	}
	together(objects+sweeps, func(i int) {
		if i < objects { // leaves and comes back, with the same content
			defer walking.Add(-1)
			r := first[writerID(i)]
			for range t.attempts {
				if !advance(&r, idle) || !advance(&r, moving) {
					return
				}
			}
			return
		}
		for walking.Load() > 0 && !t.Failed() {
			listed, err := t.store.List(t.Context(), lifecycle.Query{Machine: machine, States: []string{moving}, Limit: all})
			if err != nil {
				t.Errorf("List: %v", err)
				return
			}
			for k := range listed {
				if !advance(&listed[k], broken) {
					return
				}
			}
		}
	})
	for id, r := range first {
		now := t.get(r.Key)
		if got, want := now.Sequence-r.Sequence, moves[index[id]].Load(); got != uint64(want) {
			t.Errorf("%d moves of %q were acknowledged, it has made %d", want, id, got)
		}
	}
}
