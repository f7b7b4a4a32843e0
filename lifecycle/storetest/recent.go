package storetest

import (
	"errors"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

var recentDemands = []demand{
	{name: "Recent/ends_with_age", check: recentEndsWithAge, clock: fakeClock},
}

// follows reports whether the store finds recent changes.
func (t *tester) follows() bool {
	store, ok := t.stores[0].(lifecycle.Follower)
	if ok {
		_, err := store.Recent(t.Context(), machine, hour, "", all)
		ok = !errors.Is(err, errors.ErrUnsupported)
	}
	return ok
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

// A change is found if it is at most so old by the store's clock.
func recentEndsWithAge(t *tester) {
	t.needs(t.follows(), "the store finds no recent changes")
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
