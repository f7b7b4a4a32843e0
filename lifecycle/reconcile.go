package lifecycle

import (
	"context"
	"errors"
	"slices"

	"github.com/interlock-go/interlock/fsm"
)

// PeerReport is the report of a peer about one object, after the peer was away. The peer
// reports everything that it has, even if it was reported before. An account may have
// several reports about one object, in any order, for example one for every operation that
// is over.
type PeerReport[E comparable] struct {
	ID string
	// Operation is the last operation of the object that the peer has received; 0:
	// none. Ended: it is over, by Event and for Reason. Otherwise the peer still
	// executes it.
	Operation OpID
	Admission Token // [Record.Admission] of the operation, if the peer was sent it
	Ended     bool
	Event     E
	Reason    string
	// Present: the peer has the object. That alone is not an outcome.
	Present bool
}

// ReconcileResult is the result of [Reconcile].
type ReconcileResult[S comparable, T any] struct {
	// Outcomes are the reports about operations that are over, each with its
	// verdict, in the order of the account.
	Outcomes []PeerOutcome
	// Resend are objects in an operation that the peer has not received: send the
	// request again. An operation of the same number with another Admission is another
	// operation.
	Resend []Record[S, T]
	// Missing are objects in non-transitional states that the peer should have and
	// does not have.
	Missing []Record[S, T]
	// Extra are ids that the peer has, of objects that do not exist.
	Extra []string
	// Failed are errors about single objects: a foreign record ([ErrForeign]), a refusal by
	// Config.BeforeCommit, or 16 conflicts ([ErrConflict]). The reports about them may be
	// repeated. A foreign record is in none of Resend, Missing and Extra.
	Failed []*Error
}

// PeerOutcome is the verdict on one report about an operation that is over.
type PeerOutcome struct {
	ID        string
	Operation OpID
	Verdict   Verdict
}

// Reconcile takes all that a peer reports when it is connected again. Reconcile first treats
// each outcome as a report by this actor: it compares the operation, so a late or repeated
// outcome changes nothing. Then Reconcile compares the account with the objects that the
// peer should have. These are the objects for which expected returns true; if expected is
// nil, all objects.
//
// Only the reports change anything: the caller sends again, repairs or removes. An
// object that changes meanwhile may be listed as it was before.
//
// An error about one object does not end Reconcile: Failed lists it. Every other error of
// [Manager.Report] or [Manager.All] ends Reconcile, which then returns the outcomes so far.
// The caller may pass the same account again. Reconcile refuses an account before the first
// report if the id, event or reason of an operation that is over is invalid. Any other
// invalid id counts as an object that does not exist.
func Reconcile[S, E comparable, T any](ctx context.Context, m *Manager[S, E, T], actor fsm.Actor, account []PeerReport[E], expected func(Record[S, T]) bool) (ReconcileResult[S, T], error) {
	var result ReconcileResult[S, T]
	for _, p := range account {
		if r := m.reporting(p.ID, p.Operation, p.Event, actor, peerChange[T](&p)); p.Ended {
			if err := r.check(); err != nil {
				return result, r.fail(ctx, err)
			}
		}
	}
	has := make(map[string]peerObject, len(account))
	for _, p := range account {
		has[p.ID] = has[p.ID].with(p.Operation, p.Admission, p.Present)
		if !p.Ended {
			continue
		}
		verdict, err := m.Report(ctx, p.ID, p.Operation, p.Event, actor, peerChange[T](&p))
		switch {
		case result.fails(ctx, err):
		case err != nil:
			return result, err
		default:
			result.Outcomes = append(result.Outcomes, PeerOutcome{p.ID, p.Operation, verdict})
		}
	}
	exists := map[string]bool{}
	for rec, err := range m.All(ctx, Select[S]{}) {
		if result.fails(ctx, err) {
			exists[result.Failed[len(result.Failed)-1].ID] = true
			continue
		}
		if err != nil {
			return result, err
		}
		p, known := has[rec.ID]
		exists[rec.ID] = true
		if expected != nil && !expected(rec) {
			continue
		}
		switch resting := m.machine.Kind(rec.State).Resting(); {
		case !resting && !p.received(rec.Operation, rec.Admission):
			result.Resend = append(result.Resend, rec)
		case resting && (!known || !p.present):
			result.Missing = append(result.Missing, rec)
		}
	}
	for _, p := range account {
		if p.Present && !exists[p.ID] {
			result.Extra = append(result.Extra, p.ID)
			exists[p.ID] = true // several reports about one object give one entry
		}
	}
	return result, nil
}

// peerObject is what a peer has of one object, by all its reports about the object.
type peerObject struct {
	operation  OpID    // the last one that the peer has received
	admissions []Token // of the reports about that operation
	present    bool
}

// with adds a report.
func (p peerObject) with(operation OpID, admission Token, present bool) peerObject {
	if operation > p.operation {
		p.operation, p.admissions = operation, nil
	}
	if operation == p.operation {
		p.admissions = append(p.admissions, admission)
	}
	p.present = p.present || present
	return p
}

// received reports whether the last operation that the peer has received is this one. It
// may be another one of this number, if the store has lost commits.
func (p peerObject) received(operation OpID, admission Token) bool {
	this := func(t Token) bool { return !differ(t, admission) }
	return p.operation == operation && (len(p.admissions) == 0 || slices.ContainsFunc(p.admissions, this))
}

func peerChange[T any, E comparable](p *PeerReport[E]) *Change[T] {
	return &Change[T]{Reason: p.Reason, Admission: p.Admission}
}

// fails keeps an error that is about one object only, and reports whether it is.
func (r *ReconcileResult[S, T]) fails(ctx context.Context, err error) bool {
	failed, ok := err.(*Error)
	_, hook := errors.AsType[*hookError](err)
	switch {
	case !ok || ctx.Err() != nil || errors.Is(err, ErrUnknownOutcome):
		return false
	case !hook && !errors.Is(err, ErrForeign) && !errors.Is(err, ErrConflict):
		return false
	}
	r.Failed = append(r.Failed, failed)
	return true
}
