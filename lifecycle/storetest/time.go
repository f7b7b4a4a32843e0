package storetest

import (
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

func timeDemands() []demand {
	return []demand{
		{
			name: "Time/list_by_age", run: listByAge, timed: true,
			says: "With UnchangedFor, objects are listed whose last change is at least this long ago; any change counts.",
		},
		{
			name: "Time/list_overdue", run: listOverdue, timed: true,
			says: "With Overdue, objects are listed that have a deadline which is over, and no other.",
		},
		{
			name: "Time/filters_combine", run: filtersCombine, timed: true,
			says: "An object is listed only if every filter of the query selects it, and pages are full nevertheless.",
		},
		{
			name: "Time/by_the_clock_of_the_store", run: storesClock, needs: needOwnClock, wrong: true,
			says: "With OwnClock, ages, deadlines and ChangedAt are by the clock of the store, also where the clock of this process is wrong by years.",
		},
	}
}

const hour = time.Hour

// exact reports whether the test can move the store's clock.
func (t *trial) exact() bool { return t.bubble || t.h.Age != nil }

// pass lets time pass on the store's clock, if the test can move it.
func (t *trial) pass(d time.Duration) {
	t.Helper()
	switch {
	case t.bubble:
		time.Sleep(d)
	case t.h.Age != nil:
		t.h.Age(t.TB, t.store, d)
	}
}

// sooner asks again and again until a query finds an id: how the real time is
// waited for, of which nothing else can be said. It gives up after a minute, and
// at once where the test has failed already.
func (t *trial) sooner(q lifecycle.Query, id string) {
	t.Helper()
	if t.Failed() {
		return
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if got := t.ids(q); len(got) == 1 && got[0] == id {
			return
		}
	}
	t.Errorf("a query by %+v has not found %q for a minute, but %q", q, id, t.ids(q))
}

func unchangedFor(d time.Duration, states ...string) lifecycle.Query {
	return lifecycle.Query{Machine: machine, UnchangedFor: d, States: states}
}

func listByAge(t *trial) {
	a := t.put(key("a"), idle)
	t.found(unchangedFor(0), "a")
	t.found(unchangedFor(hour))
	if !t.exact() {
		t.Log("the store's clock cannot be moved: ages are tested with milliseconds and an hour only")
		t.sooner(unchangedFor(20*time.Millisecond), "a")
		t.found(unchangedFor(hour))
		return
	}
	t.pass(hour)
	b := t.put(key("b"), idle)
	t.found(unchangedFor(hour), "a")
	t.found(unchangedFor(2 * hour))
	t.pass(hour)
	t.found(unchangedFor(hour), "a", "b")
	t.found(unchangedFor(2*hour), "a")
	if t.bubble { // no time passes but by Sleep
		t.found(unchangedFor(2*hour + 1))
	}
	// Whatever changes begins anew, also without leaving its state.
	a = t.move(t.get(a.Key), idle)
	t.found(unchangedFor(hour), "b")
	t.pass(hour)
	t.found(unchangedFor(hour), "a", "b")
	t.remove(t.get(b.Key))
	t.put(b.Key, idle)
	t.found(unchangedFor(hour), "a")
	t.refused(commitOf(removal(b)), "an outdated revision")
	t.found(unchangedFor(hour), "a")
}

func overdue(states ...string) lifecycle.Query {
	return lifecycle.Query{Machine: machine, Overdue: true, States: states}
}

// due moves an object to a state with a deadline.
func (t *trial) due(k lifecycle.Key, state string, within time.Duration) lifecycle.StoredRecord {
	t.Helper()
	ch := change(t.get(k), state)
	ch.Timeout = within
	return t.write(ch)
}

func listOverdue(t *trial) {
	t.put(key("never"), moving)
	t.due(key("late"), moving, 100*hour)
	if !t.exact() {
		t.Log("the store's clock cannot be moved: deadlines are tested with milliseconds and hours only")
		t.found(overdue())
		t.due(key("soon"), moving, time.Millisecond)
		t.sooner(overdue(), "soon")
		t.put(key("soon"), moving)
		t.found(overdue())
		return
	}
	t.due(key("a"), moving, 2*hour)
	t.due(key("b"), moving, 4*hour)
	t.found(overdue())
	t.pass(hour)
	t.found(overdue())
	t.pass(2 * hour)
	t.found(overdue(), "a")
	t.pass(2 * hour)
	t.found(overdue(), "a", "b")
	t.due(key("a"), moving, hour) // counts from now
	t.found(overdue(), "b")
	t.put(key("b"), moving) // has none any more
	t.found(overdue())
	t.pass(2 * hour)
	t.found(overdue(), "a")
	t.remove(t.get(key("a")))
	t.found(overdue())
	t.put(key("a"), moving)
	t.found(overdue())
}

func filtersCombine(t *trial) {
	if !t.exact() {
		t.Skip("skipped: the store's clock cannot be moved")
	}
	t.due(key("a"), moving, hour)
	t.due(key("b"), broken, hour)
	t.due(key("c"), moving, 5*hour)
	t.put(key("d"), moving)
	t.pass(2 * hour)
	t.due(key("e"), moving, hour)
	t.due(key("f"), broken, 5*hour)
	t.put(key("g"), moving)
	t.pass(2 * hour)
	// a, b, c and d are four hours old, the others two; a, b and e are overdue.
	t.found(overdue(), "a", "b", "e")
	t.found(overdue(moving), "a", "e")
	t.found(overdue(broken), "b")
	t.found(unchangedFor(3*hour, moving), "a", "c", "d")
	t.found(unchangedFor(hour, broken), "b", "f")
	q := overdue(moving)
	q.UnchangedFor = 3 * hour
	t.found(q, "a")
	q.UnchangedFor, q.After = hour, "a"
	t.found(q, "e")
	q.After, q.Limit = "", 1
	t.found(q, "a")
	q.Limit = 2 // c and d are between
	t.found(q, "a", "e")
	q = unchangedFor(hour, moving)
	q.Limit = 3
	t.found(q, "a", "c", "d")
	q.After = "d"
	t.found(q, "e", "g")
}

// storesClock runs where the clock of this process stands still at the beginning
// of the year 2000: whatever is reckoned by it is years off.
func storesClock(t *trial) {
	a := t.due(key("a"), moving, hour)
	if d := time.Since(a.ChangedAt); d.Abs() < hour {
		t.Errorf("ChangedAt is %v from the clock of this process, which is wrong by years", -d)
	}
	same(t, "a record with a deadline", t.get(a.Key), a)
	t.found(unchangedFor(hour))
	t.found(overdue())
	b := t.due(key("b"), moving, time.Millisecond)
	if d := b.ChangedAt.Sub(a.ChangedAt); d < 0 || d > hour {
		t.Errorf("between two commits one after the other the clock of the store goes %v", d)
	}
	// The real time passes while the store is asked, but no clock here tells it.
	const most = 5_000
	for tries := 0; ; tries++ {
		if got := t.ids(overdue()); len(got) == 1 && got[0] == "b" {
			break
		}
		if tries == most {
			t.Fatalf("a deadline of a millisecond is not over after %d queries", most)
		}
	}
	for tries := 0; len(t.ids(unchangedFor(time.Millisecond))) < 2; tries++ {
		if tries == most {
			t.Fatalf("two objects are not a millisecond old after %d queries", most)
		}
	}
	t.found(unchangedFor(hour))
}
