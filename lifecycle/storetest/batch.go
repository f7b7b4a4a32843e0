package storetest

import (
	"errors"

	"github.com/interlock-go/interlock/lifecycle"
)

func batchDemands() []demand {
	return []demand{
		{
			name: "Batch/changes_all", run: changesAll, changes: 4,
			says: "One commit creates, moves and removes several objects, also of different machines.",
		},
		{
			name: "Batch/all_or_nothing", run: allOrNothing, changes: 3,
			says: "If one change is a conflict, none is written, wherever it stands.",
		},
		{
			name: "Batch/conflict_names_the_change", run: conflictNamesTheChange, changes: 3,
			says: "A conflict has the index of the first change whose expectation fails, and the record of that object.",
		},
		{
			name: "Batch/precondition_holds_or_nothing", run: preconditionHolds, changes: 3,
			says: "A change is written only if every object that it requires is in one of the states; otherwise it is a *PreconditionError with that condition and the record that is there.",
		},
		{
			name: "Batch/absence_can_be_required", run: absenceRequired, changes: 3,
			says: "The empty state in a precondition means that the object does not exist, never or no more.",
		},
		{
			name: "Batch/precondition_is_of_the_moment_before", run: preconditionBefore, changes: 3,
			says: "A precondition on an object that the same commit changes is of its state before.",
		},
	}
}

func changesAll(t *trial) {
	moved, removed := t.put(key("moved"), idle), t.put(key("removed"), idle)
	made := t.get(key("made"))
	foreign := t.get(lifecycle.Key{Machine: "truck", ID: "made"})
	c := commitOf(change(made, idle), change(moved, moving), removal(removed), change(foreign, broken))
	t.commit(c)
	for _, i := range []int{0, 1, 3} {
		to := c.Changes[i].To
		same(t, "a record written with others", t.get(to.Key), to)
	}
	if left := t.get(removed.Key); left.Exists() {
		t.Errorf("the object that the commit removed is %s", in(&left))
	}
}

func allOrNothing(t *trial) {
	a, old := t.put(key("a"), idle), t.put(key("b"), idle)
	b, never := t.move(old, idle), t.get(key("c"))
	good, bad, made := change(a, moving), change(old, moving), change(never, moving)
	for _, c := range []*lifecycle.Commit{
		commitOf(good, bad, made), commitOf(bad, good, made), commitOf(made, good, bad),
		commitOf(removal(a), bad), commitOf(good, removal(old)),
	} {
		t.refused(c, "an outdated revision among others")
		t.stays("a refused commit of several changes", a, b, never)
	}
}

func conflictNamesTheChange(t *trial) {
	olds, nows := map[string]lifecycle.StoredRecord{}, map[string]lifecycle.StoredRecord{}
	for _, id := range []string{"a", "b", "c"} {
		olds[id] = t.put(key(id), idle)
		nows[id] = t.move(olds[id], idle)
	}
	a, b, c := change(nows["a"], moving), change(nows["b"], moving), change(nows["c"], moving)
	badA, badB, badC := change(olds["a"], moving), change(olds["b"], moving), change(olds["c"], moving)
	for _, try := range []struct {
		changes []lifecycle.StoredChange
		first   int
	}{
		{[]lifecycle.StoredChange{badA, b, c}, 0},
		{[]lifecycle.StoredChange{a, badB, c}, 1},
		{[]lifecycle.StoredChange{a, b, badC}, 2},
		{[]lifecycle.StoredChange{c, b, badA}, 2}, // not in the order of ids
		{[]lifecycle.StoredChange{c, badB, badA}, 1},
		{[]lifecycle.StoredChange{badC, badB, badA}, 0},
	} {
		conflict := t.refused(commitOf(try.changes...), "outdated revisions among others")
		if conflict.Change != try.first {
			t.Errorf("the first conflict is change %d, the error says %d", try.first, conflict.Change)
			continue
		}
		want := try.changes[try.first]
		if conflict.Expect != want.Expect || conflict.From != want.From {
			t.Errorf("change %d expected %q at %q, the error says %q at %q",
				try.first, want.From, want.Expect, conflict.From, conflict.Expect)
		}
		same(t, "the record in the conflict", conflict.Current, nows[want.To.ID])
	}
}

// requires sends a change of a with preconditions.
func (t *trial) requires(a lifecycle.StoredRecord, conditions ...lifecycle.Precondition) error {
	c := commitOf(change(a, moving))
	c.Require = conditions
	return t.store.Commit(t.Context(), c)
}

// unmet demands that an error is that of a precondition.
func (t *trial) unmet(err error, p lifecycle.Precondition, current lifecycle.StoredRecord) {
	t.Helper()
	unmet, ok := errors.AsType[*lifecycle.PreconditionError](err)
	if !ok || !errors.Is(err, lifecycle.ErrPrecondition) {
		t.Errorf("a commit that requires %+v of %s is to be a *PreconditionError, it is: %v", p, in(&current), err)
		return
	}
	same(t, "the condition in the error", unmet.Precondition, p)
	same(t, "the record in the error", unmet.Current, current)
}

func preconditionHolds(t *trial) {
	a, other, third := t.put(key("a"), idle), t.put(key("other"), idle), t.put(lifecycle.Key{Machine: "truck", ID: "other"}, broken)
	holds := lifecycle.Precondition{Key: third.Key, States: []string{idle, broken}}
	for _, states := range [][]string{{moving}, {moving, broken}, {"idle"}, {""}, {}} {
		p := lifecycle.Precondition{Key: other.Key, States: states}
		t.unmet(t.requires(a, p, holds), p, other)
		t.unmet(t.requires(a, holds, p), p, other)
		t.stays("a precondition that does not hold", a, other, third)
	}
	p := lifecycle.Precondition{Key: other.Key, States: []string{moving, idle}}
	if err := t.requires(a, p, holds); err != nil {
		t.Errorf("a commit whose preconditions hold: %v", err)
	}
	t.stays("a commit that required them", other, third)
}

func absenceRequired(t *trial) {
	a, never := t.put(key("a"), idle), t.get(key("never"))
	left := t.remove(t.put(key("removed"), idle))
	for _, absent := range []lifecycle.StoredRecord{never, left} {
		p := lifecycle.Precondition{Key: absent.Key, States: []string{idle}}
		t.unmet(t.requires(a, p), p, absent)
		p.States = []string{idle, ""}
		if err := t.requires(a, p); err != nil {
			t.Errorf("a commit that requires %s to be idle or absent: %v", in(&absent), err)
		}
		a = t.get(a.Key)
	}
	p := lifecycle.Precondition{Key: a.Key, States: []string{""}}
	b := t.put(key("b"), idle)
	t.unmet(t.requires(b, p), p, a)
}

func preconditionBefore(t *trial) {
	a, b := t.put(key("a"), idle), t.put(key("b"), idle)
	p := lifecycle.Precondition{Key: a.Key, States: []string{moving}} // where the commit takes it
	t.unmet(t.requires(a, p), p, a)

	c := commitOf(change(a, moving), change(b, moving))
	c.Require = []lifecycle.Precondition{{Key: b.Key, States: []string{idle}}}
	if err := t.store.Commit(t.Context(), c); err != nil {
		t.Errorf("a commit that requires the state which its second object is to leave: %v", err)
	}
}
