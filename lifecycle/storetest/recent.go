package storetest

import (
	"errors"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

var recentDemands = []demand{
	{name: "Recent/has_the_newest_change", check: recentHasTheNewest},
	{name: "Recent/ends_with_age", check: recentEndsWithAge, clock: fakeClock},
	{name: "Recent/pages", check: recentPages},
}

// needsRecent skips a demand if the store finds no recent changes.
func (t *tester) needsRecent() {
	t.Helper()
	store, ok := t.stores[0].(lifecycle.Follower)
	if !ok {
		t.Skip("skipped: the store is no Follower")
	}
	if _, err := store.Recent(t.Context(), machine, hour, "", all); errors.Is(err, errors.ErrUnsupported) {
		t.Skip("skipped: the store finds no recent changes")
	}
}

// recent requires the result of Recent for one machine.
func (t *tester) recent(within time.Duration, after string, limit int, want ...lifecycle.ChangedObject) {
	t.Helper()
	got, err := t.store.(lifecycle.Follower).Recent(t.Context(), machine, within, after, limit)
	require.NoError(t, err)
	equal(t, want, got, "the recent changes")
}

func latest(r lifecycle.StoredRecord) lifecycle.ChangedObject {
	return lifecycle.ChangedObject{ID: r.ID, Sequence: r.Sequence}
}

// An object is found as soon as its commit is acknowledged, once, with the sequence
// number of its last change: after a creation, moves, a removal, and another creation. A
// change of lease fields is none, and objects of other machines are not found.
func recentHasTheNewest(t *tester) {
	t.needsRecent()
	t.recent(hour, "", all)
	a := t.put("a", idle)
	t.recent(hour, "", all, latest(a))
	b := t.put("b", idle)
	a = t.move(t.move(a, moving), broken)
	t.write(takeOver(b, "p", 1))
	t.recent(hour, "", all, latest(a), latest(b))
	if t.has.Changes >= 2 {
		t.commit(commitOf(change(t.get(lifecycle.Key{Machine: "truck", ID: "c"}), idle)))
		t.recent(hour, "", all, latest(a), latest(b))
	}
	t.conflict(commitOf(removal(b)), "an outdated revision")
	a = t.remove(a)
	t.recent(hour, "", all, latest(a), latest(b))
	a = t.move(a, idle)
	t.recent(hour, "", all, latest(a), latest(b))
}

// A change is found if it is at most so old by the store's clock.
func recentEndsWithAge(t *tester) {
	t.needsRecent()
	t.needsConfig("Age", t.movesTime())
	a, b := t.put("a", idle), t.put("b", idle)
	t.pass(hour)
	t.recent(2*hour, "", all, latest(a), latest(b))
	t.recent(hour/2, "", all)
	b = t.move(t.get(b.Key), moving)
	t.recent(hour/2, "", all, latest(b))
	t.recent(2*hour, "", all, latest(a), latest(b))
	t.pass(hour)
	t.recent(hour/2, "", all)
	t.recent(hour+hour/2, "", all, latest(b))
}

// Pages are in order of id, bytewise, after an id, and at most as long as requested.
func recentPages(t *tester) {
	t.needsRecent()
	var want []lifecycle.ChangedObject
	for _, id := range []string{"B", "a", "a1", "b", "ä"} {
		want = append(want, latest(t.put(id, idle)))
	}
	t.move(t.get(key("a")), moving)
	want[1].Sequence++
	t.recent(hour, "", 0)
	for i := range want {
		t.recent(hour, want[i].ID, all, want[i+1:]...)
		t.recent(hour, "", i+1, want[:i+1]...)
	}
	t.recent(hour, "a", 2, want[2:4]...)
	t.recent(hour, "a0", 2, want[2:4]...)
}
