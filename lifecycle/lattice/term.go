package lattice

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// The locks of deploys and teardowns are in the memory of one controller, and a
// second one on the same store does not have them. Therefore the store has a record
// of the present controller: every start begins a term, creates the record of its
// term, and removes the record of the term before in the same commit. Every commit
// that moves a deploy or a teardown requires the record of its controller's term. So
// the store refuses the next commit of an earlier controller that is slow and not
// dead.

type (
	termState string
	termEvent string
)

const (
	termAbsent termState = "absent"
	termNow    termState = "now"

	termBegin termEvent = "begin"
	termEnd   termEvent = "end"
)

// seat counts the terms. It is the payload of the record with the id seat. Every
// start changes that record, so that of two concurrent starts one is a conflict.
type seat struct{ Terms uint64 }

const seatID = "seat"

var terms = fsm.Must[seat](fsm.Spec[termState, termEvent]{
	Name: "lattice-controller", Initial: termAbsent, Actors: []fsm.Actor{Backend},
	States: []fsm.State[termState]{{Name: termAbsent, Kind: fsm.Absent}, {Name: termNow}},
	Rows: fsm.Rows(
		fsm.Move(termAbsent, termBegin, termNow).By(Backend),
		fsm.Move(termNow, termBegin, termNow).By(Backend),
		fsm.Move(termNow, termEnd, termAbsent).By(Backend),
	),
})

// term is the term of one controller.
type term struct {
	m      *lifecycle.Manager[termState, termEvent, seat]
	number uint64
}

func termID(n uint64) string { return "term " + strconv.FormatUint(n, 10) }

// beginTerm begins a term and ends the one before.
func beginTerm(ctx context.Context, store lifecycle.Store) (term, error) {
	m := lifecycle.Must(terms, store, nil)
	var err error
	for range maxTries {
		var now lifecycle.Record[termState, seat]
		now, err = m.Get(ctx, seatID)
		first := errors.Is(err, lifecycle.ErrNotFound)
		if err != nil && !first {
			return term{}, err
		}
		t := term{m, now.Payload.Terms + 1}
		var tx lifecycle.Tx
		m.In(&tx).Create(termID(t.number), termBegin, Backend, seat{}, nil)
		if first {
			m.In(&tx).Create(seatID, termBegin, Backend, seat{t.number}, nil)
		} else {
			m.In(&tx).Fire(seatID, termBegin, Backend, &lifecycle.Change[seat]{
				Expect: now.Revision, Edit: func(s *seat) error { s.Terms = t.number; return nil },
			})
			m.In(&tx).Fire(termID(t.number-1), termEnd, Backend, nil)
		}
		if err = tx.Commit(ctx); err == nil {
			return t, nil
		}
		if !overtaken(err) {
			return term{}, err
		}
	}
	return term{}, err
}

// require is the precondition that the term lasts.
func (t term) require() lifecycle.Precondition { return t.m.Require(termID(t.number), termNow) }

// lasts returns nil while the term lasts, and then an error that matches
// [lifecycle.ErrStale].
func (t term) lasts(ctx context.Context) error {
	_, err := t.m.Get(ctx, termID(t.number))
	if errors.Is(err, lifecycle.ErrNotFound) {
		return t.stale()
	}
	return err
}

// over reports whether a commit was refused because the term is over.
func (t term) over(err error) bool {
	e, ok := errors.AsType[*lifecycle.PreconditionError](err)
	return ok && e.Machine == terms.Table().Name
}

func (t term) stale() error {
	return fmt.Errorf("lattice: %w: another controller has been started on the store", lifecycle.ErrStale)
}
