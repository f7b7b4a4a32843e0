package lattice

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// The locks of deploys and teardowns are in the memory of one controller, so that
// a second one on the same store would know nothing of them. Which controller it
// is therefore stands in the store: every start begins a term, which is a record
// that is there as long as the term lasts, and takes the record of the term before
// away in the same commit. Every commit that moves a deploy or a teardown requires
// its own term. An earlier controller that was only slow, and not dead, is refused
// by the store at its next one, whatever it believes.

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

// seat counts the terms. It is the payload of the record of that name, too, and
// whoever begins a term changes it: so that of two at once one begins first.
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

// beginTerm begins a term, and ends the one before.
func beginTerm(ctx context.Context, store lifecycle.Store) (term, error) {
	m := lifecycle.New(terms, store, nil)
	var err error
	for range maxTries {
		var now lifecycle.Record[termState, seat]
		now, err = m.Get(ctx, seatID)
		first := errors.Is(err, lifecycle.ErrNotFound)
		if err != nil && !first {
			return term{}, err
		}
		t := term{m, now.Payload.Terms + 1}
		count := &lifecycle.Change[seat]{Edit: func(s *seat) error {
			if s.Terms++; s.Terms != t.number {
				return lifecycle.ErrConflict // somebody has begun one since
			}
			return nil
		}}
		parts := []lifecycle.AnyPart{m.Creating(termID(t.number), termBegin, Backend, seat{}, nil)}
		if first {
			parts = append(parts, m.Creating(seatID, termBegin, Backend, seat{}, count))
		} else {
			parts = append(parts, m.Firing(seatID, termBegin, Backend, count),
				m.Firing(termID(t.number-1), termEnd, Backend, nil))
		}
		if err = lifecycle.Together(ctx, parts...); err == nil {
			return t, nil
		}
		if !overtaken(err) {
			return term{}, err
		}
	}
	return term{}, err
}

// require is the condition of a commit that the term lasts.
func (t term) require() lifecycle.Precondition { return t.m.Require(termID(t.number), termNow) }

// lasts returns nil while the term does, and then an error that matches
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
