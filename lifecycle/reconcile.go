package lifecycle

import (
	"context"
	"errors"

	"github.com/interlock-go/interlock/fsm"
)

// Said is what a peer says about one object after it was away: all that it
// knows, whether it has said so before or not. An account may say several things
// about one object, in any order: of every operation that is over, for one.
type Said[E comparable] struct {
	ID string
	// Operation is the last one of the object that the peer has heard of, and
	// Ended that it is over, by Event and for Reason. Without Ended, the peer is
	// still at it. Operation 0: it knows of none.
	Operation OpID
	Ended     bool
	Event     E
	Reason    string
	// Present: the peer has the object. Being there is not an outcome: it
	// settles nothing.
	Present bool
}

// Reconciled is what a peer's account came to.
type Reconciled[S comparable, T any] struct {
	// Settled are the outcomes, each with what the report was, in the order of
	// the account.
	Settled []Settled
	// Resend are objects in an operation that the peer has not heard of: what it
	// was asked for got lost, and is to be sent again.
	Resend []Record[S, T]
	// Missing are objects at rest that the peer should have and has not.
	Missing []Record[S, T]
	// Extra are ids that the peer has, of objects that do not exist.
	Extra []string
	// Failed are why nothing can be said of single objects: their record is
	// foreign, also if it is another peer's ([ErrForeign]), Config.Along refused
	// their outcome, or they did not hold still ([ErrConflict]). They are in no
	// other list for that, and what is said of them may be said again.
	Failed []*Error
}

// Settled is one outcome and what it was.
type Settled struct {
	ID        string
	Operation OpID
	Verdict   Verdict
}

// Reconcile takes all that a peer has to say when it comes back. Outcomes are
// reports like any other, by this actor: compared by operation, counted, and
// harmless if they are old or come twice. Then the objects that the peer is to
// have, those for which its returns true, are held against the account. Nil
// means all of them.
//
// Nothing but the reports changes anything: what is to be sent again, repaired
// or removed is for the caller to do. An object that changes meanwhile may be
// listed as it was before.
//
// What keeps one object from being told does not keep the others: it is in Failed.
// Every other error of [Manager.Report] or [Manager.List] is the end; what was
// settled until then is returned, and the account may be given again. Of an account
// with a bad id, event or reason nothing is settled.
func (m *Manager[S, E, T]) Reconcile(ctx context.Context, actor fsm.Actor, said []Said[E], its func(Record[S, T]) bool) (Reconciled[S, T], error) {
	var r Reconciled[S, T]
	// An account that cannot be told to its end is not begun.
	for _, s := range said {
		if s.Ended {
			c := m.reporting(s.ID, s.Operation, s.Event, actor, s.Reason)
			if err := c.check(); err != nil {
				return r, c.fail(err)
			}
			c.done()
		}
	}
	account := make(map[string]Said[E], len(said))
	for _, s := range said {
		a := account[s.ID]
		account[s.ID] = Said[E]{Operation: max(a.Operation, s.Operation), Present: a.Present || s.Present}
		if !s.Ended {
			continue
		}
		v, err := m.Report(ctx, s.ID, s.Operation, s.Event, actor, s.Reason)
		if r.fails(ctx, err) {
			continue
		}
		if err != nil {
			return r, err
		}
		r.Settled = append(r.Settled, Settled{s.ID, s.Operation, v})
	}
	exists := map[string]bool{}
	for rec, err := range m.All(ctx, Select[S]{}) {
		if r.fails(ctx, err) {
			exists[r.Failed[len(r.Failed)-1].ID] = true // it is not extra
			continue
		}
		if err != nil {
			return r, err
		}
		s, known := account[rec.ID]
		exists[rec.ID] = true
		if its != nil && !its(rec) {
			continue
		}
		switch resting := m.machine.Kind(rec.State).Resting(); {
		case !resting && s.Operation != rec.Operation:
			r.Resend = append(r.Resend, rec)
		case resting && (!known || !s.Present):
			r.Missing = append(r.Missing, rec)
		}
	}
	for _, s := range said {
		if s.Present && !exists[s.ID] {
			r.Extra = append(r.Extra, s.ID)
			exists[s.ID] = true // once, also if it was said twice
		}
	}
	return r, nil
}

// fails notes an error that is about one object alone, and reports whether it is.
func (r *Reconciled[S, T]) fails(ctx context.Context, err error) bool {
	failed, ok := errors.AsType[*Error](err)
	if !ok || ctx.Err() != nil || errors.Is(err, ErrUnknownOutcome) {
		return false
	}
	_, along := errors.AsType[*alongError](err)
	if along || errors.Is(err, ErrForeign) || errors.Is(err, ErrConflict) {
		r.Failed = append(r.Failed, failed)
		return true
	}
	return false
}
