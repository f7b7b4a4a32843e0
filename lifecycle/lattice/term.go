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

// number is the payload of the record of a term.
type number struct{ Number uint64 }

var terms = fsm.Must[number](fsm.Spec[termState, termEvent]{
	Name: "lattice-controller", Initial: termAbsent, Actors: []fsm.Actor{Backend},
	States: []fsm.State[termState]{{Name: termAbsent, Kind: fsm.Absent}, {Name: termNow}},
	Rows: fsm.Rows(
		fsm.Move(termAbsent, termBegin, termNow).By(Backend),
		fsm.Move(termNow, termEnd, termAbsent).By(Backend),
	),
})

// term is the term of one controller.
type term struct {
	m      *lifecycle.Manager[termState, termEvent, number]
	number uint64
}

func (t term) id() string { return "term " + strconv.FormatUint(t.number, 10) }

// beginTerm begins a term and ends the one before. Of two concurrent starts one is a
// conflict: both remove the same record, or create the same one.
func beginTerm(ctx context.Context, store lifecycle.Store) (t term, err error) {
	t.m = lifecycle.Must(terms, store, nil)
	err = again(func() error {
		t.number = 1
		// Bad schedule without the revision: the store has no term, two other controllers start,
		// and the first term, which is over, begins again beside the second one.
		first, err := store.Get(ctx, lifecycle.Key{Machine: terms.Table().Name, ID: t.id()})
		if err != nil {
			return err
		}
		begin := &lifecycle.Change[number]{Expect: first.Revision}
		var tx lifecycle.Tx
		for before, err := range t.m.All(ctx, lifecycle.Select[termState]{}) {
			if err != nil {
				return err
			}
			t.number, begin = before.Payload.Number+1, nil
			t.m.In(&tx).Fire(before.ID, termEnd, Backend, nil)
		}
		t.m.In(&tx).Create(t.id(), termBegin, Backend, number{t.number}, begin)
		return tx.Commit(ctx)
	})
	return t, err
}

// require makes the term a condition of every commit that moves an action, also of the
// commits of a sweep. Adding and removing a record has no such condition: the last
// controller performs what an earlier one has stored as pending.
func (t term) require(_ context.Context, change *lifecycle.StoredChange) (*lifecycle.Tx, error) {
	if change.From == "" || change.Remove {
		return nil, nil
	}
	var tx lifecycle.Tx
	tx.Require(t.m.Require(t.id(), termNow))
	return &tx, nil
}

// lasts returns nil while the term lasts, and then an error that matches
// [lifecycle.ErrStale].
func (t term) lasts(ctx context.Context) error {
	_, err := t.m.Get(ctx, t.id())
	if errors.Is(err, lifecycle.ErrNotFound) {
		return errStale
	}
	return err
}

// over reports whether a commit was refused because the term is over.
func (t term) over(err error) bool {
	e, ok := errors.AsType[*lifecycle.PreconditionError](err)
	return ok && e.Machine == terms.Table().Name
}

var errStale = fmt.Errorf("lattice: %w: another controller has been started on the store", lifecycle.ErrStale)
