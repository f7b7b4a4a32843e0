package scripttest

import (
	"testing"

	"github.com/interlock-go/interlock/lifecycle"
)

// Plant commits a change of a record that no manager makes: of the record that the store
// has, or of a new one.
func Plant(t testing.TB, store lifecycle.Store, key lifecycle.Key, edit func(*lifecycle.StoredChange)) {
	t.Helper()
	at, err := store.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	change := lifecycle.StoredChange{Expect: at.Revision, From: at.State, FromOrigin: at.Origin, To: at}
	change.To.Key, change.To.Sequence = key, at.Sequence+1
	edit(&change)
	err = store.Commit(t.Context(), &lifecycle.Commit{Token: lifecycle.NewToken(), Changes: []lifecycle.StoredChange{change}})
	if err != nil {
		t.Fatal(err)
	}
}

// MakeForeign replaces the payload of a record by one that cannot be read.
func MakeForeign(t testing.TB, store lifecycle.Store, key lifecycle.Key) {
	t.Helper()
	Plant(t, store, key, func(change *lifecycle.StoredChange) { change.To.Payload = []byte(`"of another version"`) })
}
