package lifecycle_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// A change of BeforeCommit that expects the revision it has read runs again if that
// revision is gone.
func TestBeforeCommitExpectsWhatItSaw(t *testing.T) {
	ctx := t.Context()
	for name, update := range map[string]func(*testing.T, *sizedManager) error{
		"fire": func(_ *testing.T, vms *sizedManager) error {
			_, err := vms.Fire(ctx, "v", "update", user, nil)
			return err
		},
		"together": func(_ *testing.T, vms *sizedManager) error {
			return commitAll(ctx, firing(vms, "v", "update", user, nil))
		},
		"do": func(t *testing.T, vms *sizedManager) error {
			op := do(t, vms, "v", "update", user, nothing, nil)
			_, err := op.Wait(ctx)
			return err
		},
		"do together": func(t *testing.T, vms *sizedManager) error {
			got, err := doWith(ctx, vms, "v", "update", user, nothing, nil, firing(vms, "w", "update", user, nil))
			require.NoError(t, err)
			_, err = got.Wait(ctx)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := pairs(t)
			p.up(t, "v")
			p.up(t, "w")
			asked, touched := map[uint64]int{}, 0
			vms := lifecycle.Must(sizedVM, p.store, &lifecycle.Config[event]{
				WorkerActor: agent, Done: []event{"done"}, Failed: []event{"fail"},
				BeforeCommit: func(ctx context.Context, ch *lifecycle.StoredChange) (*lifecycle.Tx, error) {
					if ch.To.ID == "w" {
						return nil, nil
					}
					rec, err := p.leases.Get(ctx, "v")
					require.NoError(t, err)
					if asked[ch.To.Sequence]++; asked[ch.To.Sequence] == 1 {
						_, err := p.leases.Fire(ctx, "v", "touch", user, nil)
						require.NoError(t, err)
					}
					touched++
					return txOf(
						firing(p.leases, "v", "touch", user, &lifecycle.Change[size]{Expect: rec.Revision}),
					), nil
				},
			})
			require.NoError(t, update(t, vms))
			require.Equal(t, 2*len(asked), touched)
			require.Equal(t, last(t, p.vms, "v").Token, last(t, p.leases, "v").Token)
		})
	}
}

// afterGet is a store that runs a function after it has read an object a second time.
type afterGet struct {
	*lifecycle.MemoryStore
	id    string
	reads int
	run   func()
}

func (s *afterGet) Get(ctx context.Context, key lifecycle.Key) (lifecycle.StoredRecord, error) {
	r, err := s.MemoryStore.Get(ctx, key)
	if key.ID == s.id {
		if s.reads++; s.reads == 2 {
			s.run()
		}
	}
	return r, err
}

// BeforeCommit of a creation meets a conflict, and before it runs again, another caller creates
// the object. The event, which that object permits too, was to create one.
func TestBeforeCommitOfACreation(t *testing.T) {
	ctx, store := t.Context(), &afterGet{MemoryStore: lifecycle.NewMemoryStore(), id: "v"}
	table := fsm.Must[size](fsm.Spec[state, event]{
		Name: "restarted", Initial: "gone", Actors: []fsm.Actor{user, agent},
		States: []fsm.State[state]{{Name: "gone", Kind: fsm.Absent}, {Name: "up"}, {Name: "starting", Kind: fsm.Transitional}},
		Rows: fsm.Rows(
			fsm.Move[state, event]("gone", "start", "starting").AlsoFrom("up").By(user),
			fsm.Move[state, event]("starting", "done", "up").By(agent),
			fsm.Move[state, event]("starting", "fail", "gone").By(agent).After(time.Hour),
			fsm.Move[state, event]("up", "touch", "up").By(user),
		),
	})
	others, runs := lifecycle.Must(table, store, nil), 0
	add := func(id string) {
		_, err := others.Add(ctx, id, "up", user, size{}, nil)
		require.NoError(t, err)
	}
	add("counter")
	store.run = func() { add("v") }
	m := lifecycle.Must(table, store, &lifecycle.Config[event]{
		WorkerActor: agent, Done: []event{"done"}, Failed: []event{"fail"},
		BeforeCommit: func(ctx context.Context, ch *lifecycle.StoredChange) (*lifecycle.Tx, error) {
			rec, err := others.Get(ctx, "counter")
			require.NoError(t, err)
			if runs++; runs == 1 {
				_, err := others.Fire(ctx, "counter", "touch", user, nil)
				require.NoError(t, err)
			}
			return txOf(firing(others, "counter", "touch", user, &lifecycle.Change[size]{Expect: rec.Revision})), nil
		},
	})
	_, err := m.Do(ctx, "v", "start", user, nothing, nil)
	require.ErrorIs(t, err, lifecycle.ErrExists)
	require.Equal(t, 1, runs)
	rec := get(t, others, "v")
	require.Equal(t, state("up"), rec.State)
	require.EqualValues(t, 1, rec.Sequence)
}

// A change that BeforeCommit adds has a precondition of its own. If that fails, BeforeCommit
// runs again. If it fails in every attempt, the work has not succeeded.
func TestBeforeCommitAddsAPrecondition(t *testing.T) {
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
					if ch.To.State != "Ready" {
						return nil, nil
					}
					rec, err := p.leases.Get(ctx, "v")
					return txOf(firing(p.leases, "w", "touch", user, &lifecycle.Change[size]{
						Require: []lifecycle.Precondition{p.leases.Require("v", c.pin(rec.State))},
					})), err
				},
			})
			ticket := do(t, vms, "v", "update", user, lifecycle.Func(func(context.Context) error {
				p.store.reset()
				p.store.onCommit = func(n int, _ *lifecycle.Commit, write func() error) error {
					if n == 1 {
						fire(t, others, "v", "end", user, nil)
					}
					return write()
				}
				return nil
			}), nil)
			_, err := ticket.Wait(t.Context())
			require.Equal(t, c.ends, get(t, vms, "v").State)
			if c.ends == "Ready" {
				require.NoError(t, err)
				return
			}
			require.Equal(t, lifecycle.Failed, outcomeError(t, err).Outcome)
			require.ErrorIs(t, err, lifecycle.ErrPrecondition)
			require.Equal(t, 1, strings.Count(err.Error(), "precondition failed"), "%v", err)
		})
	}
}

// A change that BeforeCommit has added meets a conflict, and before the next attempt another
// writer moves the object itself. The request of the caller may be wrong for its new state.
func TestObjectMovesBetweenAttempts(t *testing.T) {
	for name, change := range map[string]*lifecycle.Change[size]{"any": nil, "any ETag": {IfMatch: "*"}} {
		t.Run(name, func(t *testing.T) {
			p := pairs(t)
			p.up(t, "v")
			others, leases := p.store.others(), lifecycle.Must(lease, p.store.MemoryStore, nil)
			vms := lifecycle.Must(sizedVM, p.store, &lifecycle.Config[event]{
				BeforeCommit: func(ctx context.Context, _ *lifecycle.StoredChange) (*lifecycle.Tx, error) {
					rec, err := leases.Get(ctx, "v")
					return txOf(firing(p.leases, "v", "touch", user, &lifecycle.Change[size]{Expect: rec.Revision})), err
				},
			})
			p.store.reset()
			p.store.onCommit = func(n int, _ *lifecycle.Commit, write func() error) error {
				if n > 1 {
					return write()
				}
				fire(t, leases, "v", "touch", user, nil)
				err := write()
				fire(t, others, "v", "touch", user, nil)
				return err
			}
			_, err := vms.Fire(t.Context(), "v", "touch", user, change)
			require.ErrorIs(t, err, lifecycle.ErrConflict)
			require.Equal(t, 1, p.store.commits)
		})
	}
}

// A precondition of the caller fails, and BeforeCommit requires other states of the same object,
// and the same state of another object. No second run of it would help.
func TestPreconditionOfTheCaller(t *testing.T) {
	p := pairs(t)
	p.up(t, "v")
	asked := 0
	vms := lifecycle.Must(sizedVM, p.store, &lifecycle.Config[event]{
		BeforeCommit: func(context.Context, *lifecycle.StoredChange) (*lifecycle.Tx, error) {
			asked++
			return needing(p.leases.Require("v", "Active"), p.leases.Require("w", "Ending")), nil
		},
	})
	_, err := vms.Fire(t.Context(), "v", "touch", user, &lifecycle.Change[size]{
		Require: []lifecycle.Precondition{p.leases.Require("v", "Ending")},
	})
	require.ErrorIs(t, err, lifecycle.ErrPrecondition)
	require.Equal(t, 1, asked)
}

// BeforeCommit reads other objects later than the object itself. If the object has
// moved meanwhile, the error is a conflict and not the error of the hook.
func TestBeforeCommitAfterTheObjectHasMoved(t *testing.T) {
	ctx := t.Context()
	p := pairs(t)
	p.up(t, "v")
	p.up(t, "w")
	others := lifecycle.Must(sizedVM, p.store, nil)
	var meanwhile func()
	fails := false
	vms := lifecycle.Must(sizedVM, p.store, &lifecycle.Config[event]{
		BeforeCommit: func(_ context.Context, ch *lifecycle.StoredChange) (*lifecycle.Tx, error) {
			if ch.To.ID == "w" {
				return nil, nil
			}
			if meanwhile != nil {
				meanwhile()
				meanwhile = nil
			}
			if fails {
				return nil, errBoom
			}
			return txOf(firing(p.leases, "v", "start", user, nil)), nil // it is Active
		},
	})
	touch := func() {
		fire(t, others, "v", "touch", user, nil)
	}
	for range 2 { // by a part, and by itself
		meanwhile = touch
		_, err := vms.Fire(ctx, "v", "touch", user, nil)
		require.ErrorIs(t, err, lifecycle.ErrConflict)
		winner := winnerOf(t, vms, err)
		rec := get(t, vms, "v")
		require.Equal(t, rec.Revision, winner.Revision)

		meanwhile = touch
		err = commitAll(ctx, firing(vms, "w", "touch", user, nil), firing(vms, "v", "touch", user, nil))
		require.ErrorIs(t, err, lifecycle.ErrConflict)
		require.ErrorContains(t, err, `vm "v"`)

		updating := fire(t, others, "v", "update", user, nil)
		meanwhile = func() {
			fire(t, others, "v", "done", agent, nil)
		}
		verdict, err := vms.Report(ctx, "v", updating.Operation, "done", agent, nil)
		require.NoError(t, err)
		require.Equal(t, lifecycle.Repeated, verdict)

		_, err = vms.Fire(ctx, "v", "touch", user, nil)
		require.Error(t, err)
		require.NotErrorIs(t, err, lifecycle.ErrConflict, "no writer has moved it")
		fails = true
	}
}

// A precondition that no store can check is refused, and BeforeCommit does not run
// again.
func TestBeforeCommitRequiresNonsense(t *testing.T) {
	asked := 0
	for _, pin := range []lifecycle.Precondition{
		{Key: lifecycle.Key{Machine: "lease"}, States: []string{"Active"}},
		{Key: lifecycle.Key{Machine: "lease", ID: "v"}},
	} {
		vms := lifecycle.Must(sizedVM, lifecycle.NewMemoryStore(), &lifecycle.Config[event]{
			BeforeCommit: func(context.Context, *lifecycle.StoredChange) (*lifecycle.Tx, error) {
				asked++
				return needing(pin), nil
			},
		})
		_, err := vms.Create(t.Context(), "v", "create", user, size{}, nil)
		require.ErrorIs(t, err, lifecycle.ErrInvalid)
	}
	require.Equal(t, 2, asked)
}
