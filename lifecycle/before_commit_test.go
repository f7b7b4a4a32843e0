package lifecycle_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lock"
)

// pair is a manager of VMs with a BeforeCommit that changes leases: a VM that is
// created adds a lease, one that is updated ends it, and a VM becomes Ready only if
// its lease permits that.
type pair struct {
	vms, leases *sizedManager
	store       *hooked
	asked       int
	allow       func(to string) error // of VMs that are to be Ready or Failed
}

func pairs(t *testing.T) *pair {
	store := &hooked{MemoryStore: &lifecycle.MemoryStore{KeepHistory: -1}}
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	p := &pair{store: store, leases: lifecycle.Must(lease, store, nil)}
	p.vms = lifecycle.Must(sizedVM, store, &lifecycle.Config[event]{
		WorkerActor: agent, Done: []event{"done"}, Failed: []event{"fail"},
		BeforeCommit: func(_ context.Context, ch *lifecycle.StoredChange) (*lifecycle.Tx, error) {
			p.asked++
			switch id := ch.To.ID; {
			case ch.From == "":
				return txOf(adding(p.leases, id, user, size{N: 5}, nil)), nil
			case ch.From == "Ready" && ch.To.State == "Updating":
				return txOf(firing(p.leases, id, "end", user, nil)), nil
			case p.allow != nil:
				return nil, p.allow(ch.To.State)
			default:
				return needing(p.leases.Require(id, "Starting", "Active", "Ending", "Over")), nil
			}
		},
	})
	return p
}

// up makes a VM that is Ready, with a lease that is Active.
func (p *pair) up(t *testing.T, id string) {
	t.Helper()
	p.allow = nil
	create(t, p.vms, id, "create", user, size{})
	fire(t, p.vms, id, "done", agent, nil)
	fire(t, p.leases, id, "start", agent, nil)
	p.asked = 0
	p.store.reset()
}

// last is the newest row of an object.
func last(t *testing.T, m *sizedManager, id string) lifecycle.HistoryRow {
	t.Helper()
	rows := rowsOf(t, m, id, 0, 0)
	return rows[len(rows)-1]
}

// The result of a change that BeforeCommit adds has the record as the commit has left it.
func TestBeforeCommitResult(t *testing.T) {
	store := lifecycle.NewMemoryStore()
	leases := lifecycle.Must(lease, store, nil)
	added := adding(leases, "v", user, size{N: 5}, nil)
	vms := lifecycle.Must(sizedVM, store, &lifecycle.Config[event]{
		BeforeCommit: func(context.Context, *lifecycle.StoredChange) (*lifecycle.Tx, error) { return txOf(added), nil },
	})
	create(t, vms, "v", "create", user, size{})
	require.Equal(t, get(t, leases, "v"), added.Record())
}

// The changes of BeforeCommit are in the same commit, for every verb.
func TestBeforeCommit(t *testing.T) {
	p := pairs(t)
	create(t, p.vms, "v", "create", user, size{})
	require.Equal(t, 5, get(t, p.leases, "v").Payload.N)
	require.Equal(t, last(t, p.vms, "v").Token, last(t, p.leases, "v").Token)

	p.up(t, "w")
	fire(t, p.vms, "w", "update", user, nil)
	require.Equal(t, state("Ending"), get(t, p.leases, "w").State)
	require.Equal(t, last(t, p.vms, "w").Token, last(t, p.leases, "w").Token)

	p.up(t, "x")
	require.NoError(t, commitAll(t.Context(),
		firing(p.vms, "x", "update", user, nil), firing(p.vms, "v", "done", agent, nil)))
	require.Equal(t, state("Ending"), get(t, p.leases, "x").State)
	require.Equal(t, last(t, p.vms, "v").Token, last(t, p.leases, "x").Token)
	require.Equal(t, 2, p.asked)
}

// If a change of BeforeCommit is refused, the object stays, and the error names the
// object that refused.
func TestBeforeCommitFails(t *testing.T) {
	p := pairs(t)
	p.up(t, "v")
	fire(t, p.leases, "v", "end", user, nil)
	for name, update := range map[string]func() error{
		"fire": func() error { _, err := p.vms.Fire(t.Context(), "v", "update", user, nil); return err },
		"together": func() error {
			return commitAll(t.Context(), firing(p.vms, "v", "update", user, nil))
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := update()
			require.ErrorIs(t, err, fsm.ErrWrongActor)
			require.ErrorContains(t, err, `lease "v"`)
			require.Equal(t, "done", last(t, p.vms, "v").Event)
		})
	}

	other := lifecycle.Must(lease, lifecycle.NewMemoryStore(), nil)
	strangers := lifecycle.Must(sizedVM, p.store, &lifecycle.Config[event]{
		BeforeCommit: func(context.Context, *lifecycle.StoredChange) (*lifecycle.Tx, error) {
			return txOf(adding(other, "v", user, size{}, nil)), nil
		},
	})
	_, err := strangers.Fire(t.Context(), "v", "touch", user, nil)
	require.ErrorIs(t, err, lifecycle.ErrInvalid)

	p.allow = func(string) error { return errBoom }
	_, err = p.vms.Fire(t.Context(), "v", "touch", user, nil)
	require.ErrorIs(t, err, errBoom)
}

// Another writer moves an object of BeforeCommit between the hook and the commit.
// The hook runs again, a bounded number of times.
func TestBeforeCommitRunsAgain(t *testing.T) {
	p := pairs(t)
	p.up(t, "v")
	others := lifecycle.Must(lease, p.store.MemoryStore, nil)
	p.store.onCommit = func(n int, _ *lifecycle.Commit, write func() error) error {
		if n == 1 {
			fire(t, others, "v", "touch", user, nil)
		}
		return write()
	}
	fire(t, p.vms, "v", "update", user, nil)
	require.Equal(t, 2, p.asked)
	require.Equal(t, last(t, p.vms, "v").Token, last(t, p.leases, "v").Token)

	p.up(t, "w")
	p.store.onCommit = func(_ int, _ *lifecycle.Commit, write func() error) error {
		fire(t, others, "w", "touch", user, nil)
		return write()
	}
	_, err := p.vms.Fire(t.Context(), "w", "update", user, nil)
	require.ErrorIs(t, err, lifecycle.ErrConflict)
	require.Equal(t, 16, p.asked)
	_, known := lifecycle.Current(p.vms, err)
	require.False(t, known, "the VM is where it was")

	// A condition that does not hold any more, too.
	p.up(t, "x")
	n := 0
	pinning := lifecycle.Must(sizedVM, p.store, &lifecycle.Config[event]{
		BeforeCommit: func(ctx context.Context, _ *lifecycle.StoredChange) (*lifecycle.Tx, error) {
			n++
			rec, err := p.leases.Get(ctx, "x")
			return needing(p.leases.Require("x", rec.State)), err
		},
	})
	p.store.onCommit = func(commit int, _ *lifecycle.Commit, write func() error) error {
		if commit == 1 {
			fire(t, others, "x", "end", user, nil)
		}
		return write()
	}
	fire(t, pinning, "x", "touch", user, nil)
	require.Equal(t, 2, n)
}

// If a change of BeforeCommit is refused, work that has succeeded counts as failed.
// If the failure cannot be written either, the sweeper finds the object.
func TestBeforeCommitOfOutcomes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pairs(t)
		p.up(t, "v")
		p.allow = func(to string) error {
			if to == "Ready" {
				return lifecycle.ErrPrecondition
			}
			return nil
		}
		op := do(t, p.vms, "v", "update", user, nothing, nil)
		_, err := op.Wait(t.Context())
		require.ErrorIs(t, err, lifecycle.ErrPrecondition)
		require.Equal(t, lifecycle.Failed, outcomeError(t, err).Outcome)
		require.Equal(t, state("Failed"), get(t, p.vms, "v").State)

		p.up(t, "w")
		p.allow = func(string) error { return errBoom }
		unwritten := do(t, p.vms, "w", "update", user, nothing, nil)
		require.ErrorIs(t, outcomeOf(t, unwritten).Unwritten, errBoom)

		time.Sleep(time.Hour + time.Second)
		cases := sweep(t, p.vms)
		require.Len(t, cases, 1)
		require.Equal(t, lifecycle.NotMoved, cases[0].Resolution)
		p.allow = nil
		cases = sweep(t, p.vms)
		require.Equal(t, lifecycle.Moved, cases[0].Resolution)
	})
}

// A grant that BeforeCommit requires is lost between the hook and the commit. The hook runs
// again. If it has no other grant, the work counts as failed.
func TestBeforeCommitRequiresAGrant(t *testing.T) {
	for name, c := range map[string]struct {
		again bool // the hook acquires the lock again
		ends  state
	}{
		"another grant":  {true, "Ready"},
		"the same grant": {false, "Failed"},
	} {
		t.Run(name, func(t *testing.T) {
			var tree lock.Tree
			var grant *lock.Grant
			acquire := func() (err error) {
				grant, err = tree.TryLock(t.Context(), lock.Request{Path: lock.MustParse("/vm/v"), Mode: lock.X}, nil)
				return err
			}
			require.NoError(t, acquire())
			vm, store := vms(t)
			ready(t, vm, "v")
			asked := 0
			m := lifecycle.Must(sizedVM, store, &lifecycle.Config[event]{
				WorkerActor: agent, Done: []event{"done"}, Failed: []event{"fail"},
				BeforeCommit: func(_ context.Context, ch *lifecycle.StoredChange) (*lifecycle.Tx, error) {
					if ch.To.State != "Ready" {
						return nil, nil
					}
					if asked++; asked == 2 && c.again {
						require.NoError(t, acquire())
					}
					return needing(lifecycle.Precondition{Grant: grant}), nil
				},
			})
			_, err := do(t, m, "v", "update", user, lifecycle.Func(func(context.Context) error {
				store.reset()
				store.onCommit = func(n int, _ *lifecycle.Commit, write func() error) error {
					if n == 1 {
						require.NoError(t, tree.Break(t.Context(), grant.Token(), "in between"))
					}
					return write()
				}
				return nil
			}), nil).Wait(t.Context())
			require.Equal(t, c.ends, get(t, m, "v").State)
			require.Equal(t, 2, asked)
			if c.again {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, lock.ErrLost)
			require.Equal(t, lifecycle.Failed, outcomeError(t, err).Outcome)
			require.NoError(t, outcomeError(t, err).Unwritten)
		})
	}
}

// The changes of BeforeCommit for every object of one operation are in the two
// commits of the operation.
func TestBeforeCommitOfWorkWith(t *testing.T) {
	for name, c := range map[string]struct {
		allow func(to string) error
		ends  state
	}{
		"allowed": {nil, "Ready"},
		"refused": {func(to string) error {
			if to == "Ready" {
				return lifecycle.ErrPrecondition
			}
			return nil
		}, "Failed"},
	} {
		t.Run(name, func(t *testing.T) {
			p := pairs(t)
			p.up(t, "v")
			p.up(t, "w")
			ticket := doParts(t, p.vms, "v", "update", user, lifecycle.Func(func(context.Context) error {
				require.Equal(t, state("Ending"), get(t, p.leases, "v").State)
				require.Equal(t, state("Ending"), get(t, p.leases, "w").State)
				require.Equal(t, last(t, p.vms, "v").Token, last(t, p.leases, "w").Token)
				p.allow = c.allow
				return nil
			}), nil, firing(p.vms, "w", "update", user, nil))
			_, err := ticket.Wait(t.Context())
			require.Equal(t, c.allow == nil, err == nil, "%v", err)
			require.Equal(t, c.ends, get(t, p.vms, "v").State)
			require.Equal(t, c.ends, get(t, p.vms, "w").State)
			require.Equal(t, last(t, p.vms, "v").Token, last(t, p.vms, "w").Token)
		})
	}
}

// BeforeCommit of an outcome of several objects runs again after a conflict. If the
// conflicts do not end, the work has not succeeded.
func TestBeforeCommitOfWorkWithRunsAgain(t *testing.T) {
	for name, c := range map[string]struct {
		pin  func(lease state) state
		ends state
	}{
		"once":   {func(lease state) state { return lease }, "Ready"},
		"always": {func(state) state { return "Starting" }, "Failed"},
	} {
		t.Run(name, func(t *testing.T) {
			p := pairs(t)
			p.up(t, "v")
			p.up(t, "w")
			others := lifecycle.Must(lease, p.store.MemoryStore, nil)
			vms := lifecycle.Must(sizedVM, p.store, &lifecycle.Config[event]{
				WorkerActor: agent, Done: []event{"done"}, Failed: []event{"fail"},
				BeforeCommit: func(ctx context.Context, ch *lifecycle.StoredChange) (*lifecycle.Tx, error) {
					if ch.To.ID != "w" || ch.To.State != "Ready" {
						return nil, nil
					}
					rec, err := p.leases.Get(ctx, "w")
					return needing(p.leases.Require("w", c.pin(rec.State))), err
				},
			})
			ticket := doParts(t, vms, "v", "update", user, lifecycle.Func(func(context.Context) error {
				p.store.reset()
				p.store.onCommit = func(n int, _ *lifecycle.Commit, write func() error) error {
					if n == 1 {
						fire(t, others, "w", "end", user, nil)
					}
					return write()
				}
				return nil
			}), nil, firing(vms, "w", "update", user, nil))
			_, err := ticket.Wait(t.Context())
			require.Equal(t, c.ends == "Ready", err == nil, "%v", err)
			require.Equal(t, c.ends, get(t, vms, "v").State)
			require.Equal(t, c.ends, get(t, vms, "w").State)
			require.Equal(t, last(t, vms, "v").Token, last(t, vms, "w").Token)
		})
	}
}

// oddStore cannot be compared with another store.
type oddStore struct {
	*lifecycle.MemoryStore
	_ []int
}

// TestLostGrantOfASecondChange: the error names the change whose grant is lost.
func TestLostGrantOfASecondChange(t *testing.T) {
	var tree lock.Tree
	m, store := vms(t)
	grants := map[string]*lock.Grant{}
	var changes []part
	for _, id := range []string{"a", "b"} {
		grant, err := tree.TryLock(t.Context(), lock.Request{Path: lock.MustParse("/" + id), Mode: lock.X}, nil)
		require.NoError(t, err)
		grants[id] = grant
		ready(t, m, id)
		changes = append(changes, firing(m, id, "touch", user, &lifecycle.Change[size]{
			Require: []lifecycle.Precondition{{Grant: grant}},
		}))
	}
	store.reset()
	store.onCommit = func(_ int, _ *lifecycle.Commit, write func() error) error {
		require.NoError(t, tree.Break(t.Context(), grants["b"].Token(), "in between"))
		return write()
	}
	err := commitAll(t.Context(), changes...)
	require.ErrorIs(t, err, lifecycle.ErrPrecondition)
	var failed *lifecycle.Error
	require.ErrorAs(t, err, &failed)
	require.Equal(t, "b", failed.ID)
}

// TestErrorOfASecondChange: the error of a caller's change stays, also if another object of the
// transaction has moved meanwhile.
func TestErrorOfASecondChange(t *testing.T) {
	m, store := vms(t)
	ready(t, m, "a")
	ready(t, m, "b")
	err := commitAll(t.Context(), firing(m, "a", "touch", user, nil), firing(m, "b", "touch", user, &lifecycle.Change[size]{
		Edit: func(*size) error {
			fire(t, store.others(), "a", "touch", user, nil)
			return errBoom
		},
	}))
	require.ErrorIs(t, err, errBoom)
	require.NotErrorIs(t, err, lifecycle.ErrConflict)
}

// TestBeforeCommitFailsWithoutStore: if the store cannot show whether the object has moved, the
// error of BeforeCommit stays.
func TestBeforeCommitFailsWithoutStore(t *testing.T) {
	vm, store := vms(t)
	ready(t, vm, "v")
	m := lifecycle.Must(sizedVM, store, &lifecycle.Config[event]{
		BeforeCommit: func(context.Context, *lifecycle.StoredChange) (*lifecycle.Tx, error) {
			require.NoError(t, store.Close())
			return nil, errBoom
		},
	})
	_, err := m.Fire(t.Context(), "v", "touch", user, nil)
	require.ErrorIs(t, err, errBoom)
	require.NotErrorIs(t, err, lifecycle.ErrConflict)
}

// TestConflictBeyondTheCommit: a store that names a change which the commit does not have gets an
// error about the first change.
func TestConflictBeyondTheCommit(t *testing.T) {
	m, store := vms(t)
	ready(t, m, "v")
	store.reset()
	store.onCommit = func(int, *lifecycle.Commit, func() error) error {
		return &lifecycle.ConflictError{Change: 1, From: "Ready"}
	}
	_, err := m.Fire(t.Context(), "v", "touch", user, nil)
	require.ErrorIs(t, err, lifecycle.ErrConflict)
	require.ErrorContains(t, err, `fire vm "v"`)
}
