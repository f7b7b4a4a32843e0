package sqllocktest

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
	"github.com/interlock-go/interlock/lock"
)

var disk = fsm.Must[string](fsm.Spec[string, string]{
	Name: "disk", Initial: "none", Actors: []fsm.Actor{"user"},
	States: []fsm.State[string]{{Name: "none", Kind: fsm.Absent}, {Name: "ready"}},
	Rows: fsm.Rows(
		fsm.Move("none", "create", "ready").By("user"),
		fsm.Move("ready", "resize", "ready").By("user"),
		fsm.Move("ready", "delete", "none").By("user"),
	),
})

// newDisks returns a manager with the disk a, whose store is in a database.
func newDisks(t *testing.T, d *database) *lifecycle.Manager[string, string, string] {
	t.Helper()
	require.NoError(t, sqlstore.Migrate(t.Context(), d.db, sqlstore.Postgres, nil))
	store, err := sqlstore.Open(t.Context(), d.db, sqlstore.Postgres, nil)
	require.NoError(t, err)
	t.Cleanup(func() { store.Close() })
	disks := lifecycle.Must(disk, store, nil)
	_, err = disks.Create(t.Context(), "a", "create", "user", "", nil)
	require.NoError(t, err)
	return disks
}

// pausedDriver is a grant of a process that was stopped after its last Check.
type pausedDriver struct{ lock.GrantDriver }

func (pausedDriver) Check() error { return nil }

func (p pausedDriver) GuardStatement() (query string, args []any) {
	return p.GrantDriver.(guard).GuardStatement()
}

// paused returns the grant as a process has it that does not notice its loss.
func paused(g *lock.Grant) *lock.Grant {
	p, _ := lock.NewGrant(pausedDriver{g.Driver()})
	return p
}

// A commit of a record in the database of the lock is refused after the loss of the grant,
// also if its process has not noticed. The record refuses the token of an earlier holder.
func TestRecordsUnderALock(t *testing.T) {
	d, tree := newDatabase(t), newTree()
	disks := newDisks(t, d)
	resize := func(change *lifecycle.Change[string]) error {
		_, err := disks.Fire(t.Context(), "a", "resize", "user", change)
		return err
	}
	under := func(g *lock.Grant) error {
		return resize(&lifecycle.Change[string]{Require: []lifecycle.Precondition{{Grant: g}}})
	}
	a, b := d.open(t, tree, nil), d.open(t, tree, nil)
	for _, how := range []string{"break", "session"} {
		t.Run(how, func(t *testing.T) {
			held := take(t, a, at(lock.X, "/a"))
			late := paused(held)
			require.NoError(t, under(held))
			require.NoError(t, under(late))
			if how == "break" {
				require.NoError(t, b.Break(t.Context(), held.Token(), "stuck"))
			} else {
				require.NoError(t, d.expire(t.Context(), held.Token()))
			}
			next := take(t, b, at(lock.X, "/a"))
			for _, g := range []*lock.Grant{held, late} {
				err := under(g)
				require.ErrorIs(t, err, lock.ErrLost)
				require.ErrorIs(t, err, lifecycle.ErrPrecondition)
			}
			require.NoError(t, under(next))

			// Without the precondition, the token alone.
			require.NoError(t, resize(&lifecycle.Change[string]{Fence: held.Token()}), "no higher token has come yet")
			require.NoError(t, resize(&lifecycle.Change[string]{Fence: next.Token()}))
			require.ErrorIs(t, resize(&lifecycle.Change[string]{Fence: held.Token()}), lock.ErrStaleToken)
			require.NoError(t, next.Unlock(t.Context()))
		})
	}
}

// A commit under a lock that is held, whose other precondition does not hold, is refused with that
// one.
func TestPreconditionBesideALock(t *testing.T) {
	d := newDatabase(t)
	disks := newDisks(t, d)
	held := take(t, d.open(t, newTree(), nil), at(lock.X, "/a"))
	absent := lifecycle.Precondition{Key: lifecycle.Key{Machine: "disk", ID: "b"}, States: []string{"ready"}}
	_, err := disks.Fire(t.Context(), "a", "resize", "user", &lifecycle.Change[string]{Require: []lifecycle.Precondition{{Grant: held}, absent}})
	refused, is := errors.AsType[*lifecycle.PreconditionError](err)
	require.True(t, is, "%v", err)
	require.Equal(t, absent, refused.Precondition)
	require.NoError(t, held.Unlock(t.Context()))
}
