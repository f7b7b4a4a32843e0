package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/fsm"
)

// Resolution is what a sweep has done about a stuck object, as text for people.
type Resolution string

const (
	// Moved: the event was fired; the object is in To.
	Moved Resolution = "moved"
	// Redone: the operation was started again, and this process does its work.
	Redone Resolution = "redone"
	// NeedsOperator: the table names the state Manual, or the time of the object's last
	// change is unknown, see [Manager.Sweep].
	NeedsOperator Resolution = "needs an operator"
	// NoRow: the table has no deadline row for the object's state and origin: an override,
	// another table or another program has brought it there.
	NoRow Resolution = "no row"
	// NoHandler: this process does not have the handler of the object's work, or its
	// manager has no WorkerActor or Done.
	NoHandler Resolution = "no handler"
	// Overtaken: another writer moved the object first.
	Overtaken Resolution = "overtaken"
	// NotMoved: the object could not be moved, or the table ignores the event; Err is why.
	NotMoved Resolution = "not moved"
	// Unswept: [Stuck] has found the object, and the next sweep acts.
	Unswept Resolution = "not swept yet"
)

// SweepResult is one object that a sweep has found stuck, and its resolution.
type SweepResult struct {
	Key
	Resolution Resolution
	From, To   string
	Event      string
	Actor      fsm.Actor
	Operation  OpID   // before the sweep
	Owner      string // before the sweep
	OwnerDead  bool   // the owner is dead
	Overdue    bool   // the deadline has passed
	Cause      string // why the object is stuck: the reason in the history
	Manual     string // of the state in the table
	Err        error
}

// String returns one line.
func (s SweepResult) String() string {
	text := fmt.Sprintf("%s in %s, operation %d: %v", s.Key.text(), s.From, s.Operation, s.Resolution)
	if s.To != "" {
		text += " to " + s.To + " by " + s.Event
	}
	if s.Cause != "" {
		text += ", because " + s.Cause
	}
	if s.Manual != "" {
		text += ": " + s.Manual
	}
	if s.Err != nil {
		text += ": " + s.Err.Error()
	}
	return oneLine(text)
}

// resolve sets the resolution of an attempt.
func (s *SweepResult) resolve(success Resolution, err error) {
	conflict, ok := errors.AsType[*ConflictError](err)
	switch {
	case err == nil:
		s.Resolution = success
	case ok && conflict.Current.Key == s.Key: // and not of a change that BeforeCommit has added
		s.Resolution, s.Err = Overtaken, err
	default:
		s.Resolution, s.Err = NotMoved, err
	}
}

// The causes of a sweep, for its result, the history and an [Explanation].

func ownerIsDead(r *StoredRecord) string {
	return fmt.Sprintf("owner %q of epoch %d is dead", r.Owner, r.Epoch)
}

func deadlinePassed(deadline time.Time) string {
	return "deadline " + deadline.UTC().Format(time.RFC3339) + " has passed"
}

const noOwner = "the operation has neither an owner nor a deadline"

// Stuck returns objects that [Manager.Sweep] would find now, in the same order: at most max
// of them, up to [MaxPage]; 0 or less is MaxPage. It changes nothing and runs neither
// Config.Observe nor a guard. A result is [Unswept] if a sweep would fire the deadline row.
// A sweep may leave an object stuck. Count the objects in a gauge, and raise an alert if
// they stay.
//
// Stuck reads what a sweep reads, without payloads. An owner is dead once a sweep has
// declared it dead.
//
// If the store or the context returns an error, Stuck returns it with the results so far.
func Stuck(ctx context.Context, m AnyManager, max int) ([]SweepResult, error) {
	c := m.untyped()
	most, err := limit(max)
	if err != nil {
		return nil, c.failed("stuck", "", err)
	}
	s := newSweep(c)
	s.most = most
	err = s.run(ctx, s.readAlive, s.unresolved, s.orphaned, s.overdue, s.ownerless, s.undated)
	if err != nil && !errors.Is(err, errEnough) {
		return s.results, c.failed("stuck", "", err)
	}
	return s.results, nil
}

// errEnough ends a search for stuck objects that has found so many as it may.
var errEnough = errors.New("lifecycle: enough stuck objects")
