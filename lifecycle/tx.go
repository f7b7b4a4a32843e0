package lifecycle

import (
	"context"
	"fmt"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/decide"
)

// Tx is a transaction: changes of several objects, of one or several managers of
// one store, that one commit writes. Either all of them are written or none is.
//
//	var tx lifecycle.Tx
//	lease := leases.In(&tx).Fire("l1", Start, Service, nil)
//	reservations.In(&tx).Fire("r1", Reserve, Service, nil)
//	err := tx.Commit(ctx)
//	...lease.Record()
//
// [Config.BeforeCommit] returns a Tx too, and [Work.With] is a Tx of other objects that take
// part in an operation.
//
// Every change is decided on the present object, by the rules of its verb. Guards
// and edits of one change do not see what another one changes. The conditions of
// all changes are conditions of the commit, on the states before it. Messages are
// appended in the order of the changes. A change whose event the table ignores
// writes nothing and is no condition.
//
// The zero Tx is empty and ready for use. A Tx is used once, by one goroutine, and
// must not be copied.
type Tx struct {
	requests []*request
	require  []Precondition
	used     bool
}

// Require adds conditions on grants, and on objects that the transaction does not change. If
// the tables ignore the events of all changes, nothing is written, and the conditions on
// objects are not checked.
func (tx *Tx) Require(conditions ...Precondition) { tx.require = append(tx.require, conditions...) }

// Commit writes all changes, or none. The error is that of the change that fails,
// as its own verb returns it: an [*Error] about that object. An error about the whole
// transaction, or about a condition of Require, is that of the first change. It is
// [ErrConflict] if another writer has moved one of the objects. It is [ErrInvalid] for a
// Tx without changes, for one that was used before, for two changes of one object and
// for managers of different stores; [errors.ErrUnsupported] if the store cannot
// commit so many changes and conditions. Nothing is written then, except after
// [ErrUnknownOutcome].
func (tx *Tx) Commit(ctx context.Context) error {
	if len(tx.requests) == 0 {
		return fmt.Errorf("%w: transaction without changes", ErrInvalid)
	}
	if err := tx.use(); err != nil {
		return tx.requests[0].fail(ctx, err)
	}
	if culprit, err := apply(ctx, tx.requests, tx.require); err != nil {
		return culprit.fail(ctx, err)
	}
	return nil
}

// use refuses a transaction that was used before, and conditions that hold for no
// object.
func (tx *Tx) use() error {
	if tx.used {
		return fmt.Errorf("%w: a transaction is used twice", ErrInvalid)
	}
	tx.used = true
	for i := range tx.require {
		if err := tx.require[i].check(); err != nil {
			return err
		}
	}
	return nil
}

// In returns the verbs of this manager as changes of a transaction.
func (m *Manager[S, E, T]) In(tx *Tx) TxManager[S, E, T] { return TxManager[S, E, T]{m, tx} }

// TxManager adds changes of one manager's objects to a transaction. It is a value.
// [Manager.In] makes one; the zero TxManager is not usable.
type TxManager[S, E comparable, T any] struct {
	m  *Manager[S, E, T]
	tx *Tx
}

// Fire adds what [Manager.Fire] does.
func (t TxManager[S, E, T]) Fire(id string, e E, actor fsm.Actor, change *Change[T]) *TxResult[S, T] {
	return t.add(t.m.request(decide.Fire, "fire", id, &e, actor, change))
}

// Create adds what [Manager.Create] does. The change's Edit works on the given
// payload.
func (t TxManager[S, E, T]) Create(id string, e E, actor fsm.Actor, payload T, change *Change[T]) *TxResult[S, T] {
	return t.add(t.m.creating(id, e, actor, payload, change))
}

// Add adds what [Manager.Add] does. The change's Edit works on the given payload.
func (t TxManager[S, E, T]) Add(id string, state S, actor fsm.Actor, payload T, change *Change[T]) *TxResult[S, T] {
	return t.add(t.m.adding(id, state, actor, payload, change))
}

// Override adds what [Manager.Override] does.
func (t TxManager[S, E, T]) Override(id string, to S, actor fsm.Actor, reason string, change *Change[T]) *TxResult[S, T] {
	return t.add(t.m.overriding(id, to, actor, reason, change))
}

func (t TxManager[S, E, T]) add(r *request) *TxResult[S, T] {
	t.tx.requests = append(t.tx.requests, r)
	return &TxResult[S, T]{r, t.m.result}
}

// TxResult is the result of one change of a transaction. Read it after the commit.
type TxResult[S comparable, T any] struct {
	request *request
	result  func(*request) Record[S, T]
}

// Record returns the record as the commit has left it. It is the zero Record
// before the commit and after an error. For an event that the table ignores it is
// the record that was read.
func (res *TxResult[S, T]) Record() Record[S, T] {
	if !res.request.done {
		return Record[S, T]{}
	}
	return res.result(res.request)
}
