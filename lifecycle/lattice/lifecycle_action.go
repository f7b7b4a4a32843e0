package lattice

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/interlock-go/interlock/lock"
)

// LifecycleActionManager decides which deploys and teardowns may run at once. A
// deploy holds the part of its system at and below its path: it is refused while
// another one holds that path, a path above it or a path below it. A teardown
// holds the whole system. Systems are independent of each other.
//
// It never waits. Acquiring is idempotent: a repeated request of a holder returns
// nil. Releasing is idempotent too, and releases only the lock of this deploy or
// teardown.
//
// The zero value is ready for use. It is safe for concurrent use and must not be
// copied. It keeps nothing about a system in which nothing runs, and nothing
// survives its process; see [Start].
type LifecycleActionManager struct {
	// FirstToken is the least fencing token of its locks, see
	// [lock.Config].FirstToken; it must not be changed after the first call. 0: 1.
	// A process that follows another one sets a token that is greater than all
	// before, such as its epoch as an owner << 32.
	FirstToken lock.Token

	// mu keeps trees and maps consistent. Nothing under it waits, does I/O or calls
	// user code.
	mu      sync.Mutex
	last    lock.Token // the greatest one of all trees that are gone
	systems map[SystemID]*systemLocks
}

// systemLocks are the locks of one system.
//
// Invariant: held has exactly the grants of the tree, and is not empty.
type systemLocks struct {
	tree *lock.Tree
	held map[string]*lock.Grant // by the name of the action
}

// The kinds of actions.
const (
	deployKind   = "deploy"
	teardownKind = "teardown"
)

// actionName is the name of an action in refusals, and the id of its acquisition.
func actionName(kind, id string) string { return kind + " " + id }

// maxNamed is how many holders a conflict names.
const maxNamed = 1000

// AcquireDeploy acquires the lock of a deploy: exclusive at its path, and
// intention-exclusive at every node above it; all of them or none.
//
// Errors, with nothing changed: [*ConflictingLifecycleActionError], which matches
// [lock.ErrConflict]; [lock.ErrIDInUse] if the deploy holds another path; and
// [lock.ErrInvalid] for an empty id and for the zero path.
func (m *LifecycleActionManager) AcquireDeploy(system SystemID, deploy DeployID, path lock.Path) error {
	_, err := m.acquire(system, deployKind, string(deploy), path)
	return err
}

// AcquireTeardown acquires the lock of a teardown: the whole system.
//
// Errors, with nothing changed: those of AcquireDeploy, except those of the path.
func (m *LifecycleActionManager) AcquireTeardown(system SystemID, teardown TeardownID) error {
	_, err := m.acquire(system, teardownKind, string(teardown), lock.Root())
	return err
}

// ReleaseDeploy releases the lock of a deploy, and reports whether it held one.
func (m *LifecycleActionManager) ReleaseDeploy(system SystemID, deploy DeployID) bool {
	return m.release(system, deployKind, string(deploy))
}

// ReleaseTeardown releases the lock of a teardown, and reports whether it held one.
func (m *LifecycleActionManager) ReleaseTeardown(system SystemID, teardown TeardownID) bool {
	return m.release(system, teardownKind, string(teardown))
}

// InProgressActions returns the actions that hold a lock in a system: the deploys in
// the order of their grants, or the teardown, never both. An empty TeardownID means
// that there is none.
func (m *LifecycleActionManager) InProgressActions(system SystemID) ([]DeployID, TeardownID) {
	holders, _ := m.Holders(context.Background(), system, lock.Root()) // in process it cannot fail
	return actionsOf(holders)
}

// actionsOf returns the deploys and the teardown of holders.
func actionsOf(holders []lock.Holder) (deploys []DeployID, teardown TeardownID) {
	for _, h := range holders {
		kind, id, _ := strings.Cut(h.ID, " ")
		if kind == teardownKind {
			teardown = TeardownID(id)
		} else {
			deploys = append(deploys, DeployID(id))
		}
	}
	return deploys, teardown
}

// Holders returns the locks of a system at a path, above and below it, with path,
// mode and time, in the order of their grants. Holders of "/" returns all of them.
// The error is [lock.ErrInvalid] for the zero path.
func (m *LifecycleActionManager) Holders(ctx context.Context, system SystemID, path lock.Path) ([]lock.Holder, error) {
	m.mu.Lock()
	s := m.systems[system]
	m.mu.Unlock()
	if s == nil {
		return nil, lock.Request{Path: path, Mode: lock.IS}.Validate()
	}
	return s.tree.Holders(ctx, path, lock.Above|lock.At|lock.Below)
}

// Systems yields the systems in which an action holds a lock, in order of their ids.
func (m *LifecycleActionManager) Systems() iter.Seq[SystemID] {
	m.mu.Lock()
	ids := slices.Sorted(maps.Keys(m.systems))
	m.mu.Unlock()
	return slices.Values(ids)
}

// checkNames refuses an action of a system if one of them has no name.
func checkNames(system SystemID, kind, id string) error {
	if system == "" || id == "" {
		return fmt.Errorf("lattice: %w: %q of system %q has no name", lock.ErrInvalid, actionName(kind, id), string(system))
	}
	return nil
}

// acquire returns the token of the lock.
func (m *LifecycleActionManager) acquire(system SystemID, kind, id string, path lock.Path) (lock.Token, error) {
	if err := checkNames(system, kind, id); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.systems[system]
	if s == nil {
		s = &systemLocks{
			tree: lock.Must(&lock.Config{FirstToken: max(m.FirstToken, m.last+1), MaxHolders: maxNamed}),
			held: map[string]*lock.Grant{},
		}
	}
	name := actionName(kind, id)
	grant, err := s.tree.TryLock(context.Background(), lock.Request{Path: path, Mode: lock.X}, &lock.Options{ID: name, Owner: name})
	if conflict, ok := errors.AsType[*lock.ConflictError](err); ok && errors.Is(err, lock.ErrConflict) {
		deploys, teardown := actionsOf(conflict.Holders)
		return 0, &ConflictingLifecycleActionError{System: system, Deploys: deploys, Teardown: teardown, Err: err}
	}
	if err != nil {
		return 0, fmt.Errorf("lattice: %s of system %s: %w", name, system, err)
	}
	s.held[name] = grant // a repeated acquisition is the same grant: either handle releases it
	if m.systems == nil {
		m.systems = map[SystemID]*systemLocks{}
	}
	m.systems[system] = s
	return grant.Token(), nil
}

func (m *LifecycleActionManager) release(system SystemID, kind, id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, name := m.systems[system], actionName(kind, id)
	if s == nil || s.held[name] == nil {
		return false
	}
	m.last = max(m.last, s.held[name].Token())
	_ = s.held[name].Unlock(context.Background()) // in process it cannot fail
	delete(s.held, name)
	if len(s.held) == 0 {
		delete(m.systems, system)
	}
	return true
}

// SystemID names a system. For a [Controller] it is one segment of a path: not empty, and
// without a slash.
type SystemID string

// DeployID names a deploy of a system. Deploys and teardowns have names of their own.
type DeployID string

// TeardownID names a teardown of a system.
type TeardownID string

// ConflictingLifecycleActionError names the deploys or the teardown that keep a
// deploy or teardown from running. It unwraps to the [*lock.ConflictError] with path,
// mode and time of each, and so matches [lock.ErrConflict].
type ConflictingLifecycleActionError struct {
	System   SystemID
	Deploys  []DeployID // in the order in which they took their locks
	Teardown TeardownID // empty: none
	Err      error
}

// Error names the holders.
func (e *ConflictingLifecycleActionError) Error() string {
	return fmt.Sprintf("lattice: system %s is %s", e.System, e.locked())
}

// locked names the holders.
func (e *ConflictingLifecycleActionError) locked() string {
	if e.Teardown != "" {
		return "locked by teardown " + string(e.Teardown)
	}
	ids := make([]string, len(e.Deploys))
	for i, id := range e.Deploys {
		ids[i] = string(id)
	}
	return "locked by deploys " + strings.Join(ids, ", ")
}

// Unwrap returns Err.
func (e *ConflictingLifecycleActionError) Unwrap() error { return e.Err }
