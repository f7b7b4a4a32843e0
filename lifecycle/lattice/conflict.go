package lattice

import (
	"errors"
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/lock"
)

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
