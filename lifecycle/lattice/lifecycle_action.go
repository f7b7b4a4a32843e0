package lattice

import (
	"cmp"
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
	systems map[SystemID]*actions
}

// actions are the locks of one system.
//
// Invariant: held has exactly the grants of the tree, and is not empty.
type actions struct {
	tree *lock.Tree
	held map[string]action // by the id of the acquisition
}

// action is a deploy or a teardown that holds its lock.
type action struct {
	teardown bool
	id       string
	lock     *lock.Grant
}

// maxNamed is how many holders a conflict names.
const maxNamed = 1000

// AcquireDeploy acquires the lock of a deploy: exclusive at its path, and
// intention-exclusive at every node above it; all of them or none.
//
// Errors, with nothing changed: [*ConflictingLifecycleActionError], which matches
// [lock.ErrConflict]; [lock.ErrIDInUse] if the deploy holds another path; and
// [lock.ErrInvalid] for an empty id and for the zero path.
func (m *LifecycleActionManager) AcquireDeploy(system SystemID, deploy DeployID, path lock.Path) error {
	_, err := m.acquire(system, path, action{id: string(deploy)})
	return err
}

// AcquireTeardown acquires the lock of a teardown: the whole system.
//
// Errors, with nothing changed: those of AcquireDeploy, except those of the path.
func (m *LifecycleActionManager) AcquireTeardown(system SystemID, teardown TeardownID) error {
	_, err := m.acquire(system, lock.Root(), action{teardown: true, id: string(teardown)})
	return err
}

// ReleaseDeploy releases the lock of a deploy, and reports whether it held one.
func (m *LifecycleActionManager) ReleaseDeploy(system SystemID, deploy DeployID) bool {
	return m.release(system, action{id: string(deploy)})
}

// ReleaseTeardown releases the lock of a teardown, and reports whether it held one.
func (m *LifecycleActionManager) ReleaseTeardown(system SystemID, teardown TeardownID) bool {
	return m.release(system, action{teardown: true, id: string(teardown)})
}

// InProgressActions returns the actions that hold a lock in a system: the deploys in
// the order of their grants, or the teardown, never both. An empty TeardownID means
// that there is none.
func (m *LifecycleActionManager) InProgressActions(system SystemID) ([]DeployID, TeardownID) {
	var deploys []DeployID
	for _, a := range m.holders(system) {
		if a.teardown {
			return nil, TeardownID(a.id)
		}
		deploys = append(deploys, DeployID(a.id))
	}
	return deploys, ""
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

// name is the id of the acquisition, and the name in refusals.
func (a action) name() string {
	if a.teardown {
		return "teardown " + a.id
	}
	return "deploy " + a.id
}

func (a action) check(system SystemID) error {
	if system == "" || a.id == "" {
		return fmt.Errorf("lattice: %w: %q of system %q has no name", lock.ErrInvalid, a.name(), string(system))
	}
	return nil
}

// acquire returns the token of the lock.
func (m *LifecycleActionManager) acquire(system SystemID, path lock.Path, a action) (lock.Token, error) {
	if err := a.check(system); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.systems[system]
	if s == nil {
		s = &actions{
			tree: lock.Must(&lock.Config{FirstToken: max(m.FirstToken, m.last+1), MaxHolders: maxNamed}),
			held: map[string]action{},
		}
	}
	name := a.name()
	held, err := s.tree.TryLock(context.Background(), lock.Request{Path: path, Mode: lock.X}, &lock.Options{ID: name, Owner: name})
	if err != nil {
		return 0, s.refuse(system, a, err)
	}
	// A repeated acquisition is the same grant: either handle releases it.
	a.lock = held
	s.held[name] = a
	if m.systems == nil {
		m.systems = map[SystemID]*actions{}
	}
	m.systems[system] = s
	return held.Token(), nil
}

func (m *LifecycleActionManager) release(system SystemID, a action) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.systems[system]
	if s == nil {
		return false
	}
	held, ok := s.held[a.name()]
	if !ok {
		return false
	}
	m.last = max(m.last, held.lock.Token())
	_ = held.lock.Unlock(context.Background()) // in process it cannot fail
	delete(s.held, a.name())
	if len(s.held) == 0 {
		delete(m.systems, system)
	}
	return true
}

// holders returns the actions that hold a lock in a system, in the order of their grants.
func (m *LifecycleActionManager) holders(system SystemID) []action {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.systems[system]
	if s == nil {
		return nil
	}
	return slices.SortedFunc(maps.Values(s.held), func(a, b action) int {
		return cmp.Compare(a.lock.Token(), b.lock.Token())
	})
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

// refuse converts a refusal of the tree into one of this package.
func (s *actions) refuse(system SystemID, a action, err error) error {
	conflict, ok := errors.AsType[*lock.ConflictError](err)
	if !ok || !errors.Is(err, lock.ErrConflict) {
		return fmt.Errorf("lattice: %s of system %s: %w", a.name(), system, err)
	}
	e := &ConflictingLifecycleActionError{System: system, Err: err}
	for _, h := range conflict.Holders {
		by := s.held[h.ID]
		if by.teardown {
			e.Teardown = TeardownID(by.id)
			continue
		}
		e.Deploys = append(e.Deploys, DeployID(by.id))
	}
	return e
}
