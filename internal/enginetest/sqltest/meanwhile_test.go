package sqltest

import (
	"database/sql"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/enginetest/proxy"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
	"github.com/interlock-go/interlock/lifecycle/storetest"
)

var (
	orderC = lifecycle.Key{Machine: "order", ID: "c"}
	crateB = lifecycle.Key{Machine: "crate", ID: "b"}
)

// labelled is a table of orders whose reasons are unique, and whose states have a type.
func labelled(t *testing.T, e engine, db *sql.DB, status sqlstore.Type) sqlstore.ExistingTable {
	t.Helper()
	blob, _ := types(e)
	table := fourColumns(t, db, "labelled", ", label varchar(20) UNIQUE, token "+blob)
	table.Columns.Reason, table.Columns.Token = "label", "token"
	table.Types = map[string]sqlstore.Type{"state": status}
	return table
}

// word is the type of a state that is kept as text. Its function looks at each state that is read.
func word(look func()) sqlstore.Type {
	return sqlstore.Type{
		Write: func(text string) (any, error) { return text, nil },
		Read:  func(text string) (string, error) { look(); return text, nil },
	}
}

// whileLooking returns two stores over one table. Once a function is stored in hook, the first
// store calls it when it reads the state of an order next.
func whileLooking(t *testing.T, e engine) (store, other *sqlstore.Store, hook *atomic.Pointer[func()]) {
	t.Helper()
	db := pool(t, e.open(t))
	hook = new(atomic.Pointer[func()])
	table := labelled(t, e, db, word(func() {
		if run := hook.Swap(nil); run != nil {
			(*run)()
		}
	}))
	store = existing(t, db, e, table)
	table.Types = map[string]sqlstore.Type{"state": word(func() {})}
	return store, existing(t, db, e, table), hook
}

func moveTo(t testing.TB, store lifecycle.Store, key lifecycle.Key, state, reason string) {
	t.Helper()
	require.NoError(t, store.Commit(t.Context(), to(get(t, store, key), state, reason)))
}

func to(r lifecycle.StoredRecord, state, reason string) *lifecycle.Commit {
	c := next(r, 0)
	c.Changes[0].To.State, c.Changes[0].To.Origin, c.Changes[0].To.Reason = state, state, reason
	return c
}

// A precondition that did not hold, and holds when the store looks for the reason, is no reason
// to refuse the commit.
func TestPreconditionThatHoldsMeanwhile(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		store, other, hook := whileLooking(t, e)
		moveTo(t, store, orderA, "open", "one")
		moveTo(t, store, crateB, "open", "")
		c := to(get(t, store, orderA), "closed", "one")
		c.Require = []lifecycle.Precondition{{Key: crateB, States: []string{"full"}}}
		run := func() { moveTo(t, other, crateB, "full", "") }
		hook.Store(&run)
		require.NoError(t, store.Commit(t.Context(), c))
		require.Equal(t, "closed", get(t, other, orderA).State)
		require.Equal(t, "full", get(t, other, crateB).State)
	})
}

// A commit that a unique index refuses, and whose object moves while the store looks for the
// reason, is a conflict. It is no restore of the history without the records.
func TestObjectThatMovesMeanwhile(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		store, other, hook := whileLooking(t, e)
		moveTo(t, store, orderA, "open", "one")
		c := to(get(t, store, orderA), "closed", "one")
		c.Changes = append(c.Changes, to(get(t, store, orderC), "open", "one").Changes...)
		run := func() { moveTo(t, other, orderA, "paid", "one") }
		hook.Store(&run)
		err := store.Commit(t.Context(), c)
		conflict, ok := errors.AsType[*lifecycle.ConflictError](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, orderA, conflict.Current.Key)
		require.Equal(t, "paid", conflict.Current.State)
	})
}

// A change of metadata has no place in the history that another commit could have taken.
func TestMetadataBesideARefusedRow(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		store, _, _ := whileLooking(t, e)
		moveTo(t, store, orderA, "open", "one")
		moveTo(t, store, crateB, "open", "")
		before := get(t, store, crateB)
		c := to(get(t, store, orderC), "open", "one")
		c.Changes = append(c.Changes, lifecycle.StoredChange{Expect: before.Revision, From: "open", MetadataOnly: true, To: before})
		err := store.Commit(t.Context(), c)
		require.ErrorIs(t, err, lifecycle.ErrPrecondition)
		require.NotErrorIs(t, err, sqlstore.ErrHistory)
		require.Equal(t, before, get(t, store, crateB))
	})
}

// The answer is lost of a commit that changes metadata of one object and the state of another
// one. If it is found, its results are those that were written.
func TestLostAnswerOfMetadataAndState(t *testing.T) {
	onNetworks(t, func(t *testing.T, p *proxy.Proxy, through, direct *sqlstore.Store) {
		moveTo(t, direct, orderA, "open", "")
		moveTo(t, direct, crateB, "open", "")
		found := 0
		for n := 1; ; n++ {
			metadata := lifecycle.StoredChange{MetadataOnly: true, To: get(t, direct, orderA), Timeout: time.Duration(n) * time.Hour}
			metadata.Expect, metadata.From = metadata.To.Revision, metadata.To.State
			c := to(get(t, direct, crateB), "open", "")
			c.Changes = append(c.Changes, metadata)
			struck := p.Cut(storetest.AfterRequest, n)
			require.NoError(t, through.Commit(t.Context(), c))
			if !struck() {
				break
			}
			found++
			for _, ch := range c.Changes {
				require.Equal(t, get(t, direct, ch.To.Key), ch.To)
			}
		}
		require.Positive(t, found)
	})
}
