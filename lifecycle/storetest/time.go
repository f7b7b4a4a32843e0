package storetest

import (
	"errors"
	"math"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// pass lets time pass on the clock of the store, which the test can move.
func (t *tester) pass(d time.Duration) {
	if t.config.Synctest {
		time.Sleep(d)
	} else {
		t.config.Age(t.TB, t.stores[0], d)
	}
}

// due moves an object to a state with a deadline.
func (t *tester) due(id, state string, timeout time.Duration) lifecycle.StoredRecord {
	ch := change(t.get(key(id)), state)
	ch.Timeout = timeout
	return t.write(ch)
}

func unchangedFor(d time.Duration, states ...string) lifecycle.Query {
	return lifecycle.Query{Machine: machine, UnchangedFor: d, States: states}
}

func overdue(states ...string) lifecycle.Query {
	return lifecycle.Query{Machine: machine, Overdue: true, States: states}
}

// With UnchangedFor, List returns objects whose last change is at least this long ago. With
// Overdue, it returns objects whose deadline has passed, and none without a deadline. List
// returns an object only if all conditions hold, and pages are full nevertheless. The longest
// duration has not passed for any object. The deadline of a MetadataOnly change counts from
// the present time of the store, and the change does not make the object younger.
//
// Recent finds a change if it is at most so old, and no MetadataOnly change. No duration is
// rounded to seconds.
func conditionsCombine(t *tester) {
	t.needsConfig("Age", t.config.Synctest || t.config.Age != nil)
	t.due("a", moving, hour)
	t.due("b", broken, hour)
	t.due("c", moving, 5*hour)
	t.put("d", moving)
	t.pass(2 * hour)
	t.due("e", moving, hour)
	t.due("f", broken, 5*hour)
	t.put("g", moving)
	t.pass(2*hour + 10*time.Second)
	// a, b, c and d are four hours old, the others two; a, b and e are overdue.
	t.finds(unchangedFor(4*hour+10*time.Second), "a", "b", "c", "d")
	t.finds(unchangedFor(5 * hour))
	t.recent(2*hour+59*time.Second, "e", "f", "g")
	t.recent(2*hour + 9*time.Second)
	t.recent(3*hour, "e", "f", "g")
	t.recent(hour)
	t.finds(overdue(broken), "b")
	t.finds(unchangedFor(hour, broken), "b", "f")
	q := overdue(moving)
	q.Limit = 2 // c and d are between a and e
	t.finds(q, "a", "e")
	q.After = "a"
	t.finds(q, "e")
	q.After, q.UnchangedFor = "", 3*hour
	t.finds(q, "a")
	q = unchangedFor(hour, moving)
	q.After, q.Limit = "c", 2
	t.finds(q, "d", "e")

	t.due("a", moving, hour) // a new deadline
	t.put("b", broken)       // no deadline
	t.move(t.remove(t.get(key("e"))), moving)
	t.put("f", broken)
	t.finds(overdue())
	t.finds(unchangedFor(hour), "c", "d", "g")
	t.pass(2 * hour)
	t.finds(overdue(), "a", "c")

	c := t.write(takeOver(t.get(key("c")), "another", 1))
	t.unchanged("a MetadataOnly change", c)
	t.recent(hour)
	t.finds(overdue(), "a")
	t.pass(2 * hour)
	t.finds(overdue(), "a", "c")
	t.write(takeOver(t.get(key("d")), "another", 1))
	q = overdue()
	q.NotOwnedBy = []lifecycle.OwnerRef{} // a has no owner, and d is not overdue
	t.finds(q, "c")

	t.due("h", moving, math.MaxInt64)
	t.finds(overdue(), "a", "c")
	t.finds(unchangedFor(math.MaxInt64))
}

// follows reports whether the store finds recent changes.
func (t *tester) follows() bool {
	store, ok := t.stores[0].(lifecycle.Follower)
	if !ok {
		return false
	}
	_, err := store.Recent(t.Context(), machine, hour, "", all)
	return !errors.Is(err, errors.ErrUnsupported)
}

// recent requires that the objects with these ids have changed within a duration.
func (t *tester) recent(within time.Duration, ids ...string) {
	if !t.follows() {
		return
	}
	changes, err := t.store().(lifecycle.Follower).Recent(t.Context(), machine, within, "", all)
	require.NoError(t, err)
	var got []string
	for _, o := range changes {
		got = append(got, o.ID)
	}
	require.Equal(t, ids, got, "the changes within %v", within)
}

// An object that has just changed is not an hour old, and its deadline comes neither early nor
// never. With OwnClock, ages, deadlines and ChangedAt are of the clock of the store. With
// Config.WrongClock, the clock of this process stands still in the year 2000. A Config that has
// nothing about time runs this demand by the real clock.
func clockOfTheStore(t *tester) {
	wrongClock := t.config.WrongClock && t.has.OwnClock
	t.needsConfig("WrongClock", wrongClock || !t.config.WrongClock && !t.config.Synctest && t.config.Age == nil)
	a := t.due("a", moving, hour)
	if wrongClock {
		require.Greater(t, time.Since(a.ChangedAt).Abs(), hour, "ChangedAt is of the clock of this process")
	}
	t.unchanged("a change with a timeout", a)
	t.finds(unchangedFor(hour))
	t.finds(overdue())
	b := t.due("b", moving, time.Millisecond)
	require.WithinRange(t, b.ChangedAt, a.ChangedAt, a.ChangedAt.Add(hour))
	// The real time passes while the store answers.
	for tries := 0; len(t.list(overdue())) == 0 || len(t.list(unchangedFor(time.Millisecond))) < 2; tries++ {
		require.Less(t, tries, 20_000, "no time passes: List does not find the deadline or the age of a millisecond")
	}
	t.finds(overdue(), "b")
	t.finds(unchangedFor(hour))
}
