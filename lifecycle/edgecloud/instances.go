package edgecloud

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/interlock-go/interlock/lifecycle"
)

// Instances are the ClusterInsts or the AppInsts of a [Coordinator], which makes
// them. It is safe for concurrent use and must not be copied.
//
// A request returns when it is committed, with the record that the CRM acts on;
// [Instances.Wait] waits for the outcome. A request is refused, with nothing written and
// an error that matches [lifecycle.ErrPrecondition], while the cloudlet is not Ready, is
// being upgraded or has a failed upgrade. An AppInst needs its ClusterInst Ready, or
// at rest for a delete. These conditions are part of the commit.
type Instances[T any] struct {
	coordinator *Coordinator
	m           *lifecycle.Manager[State, Event, T]
	parent      func(*T) string // id of the cloudlet or ClusterInst that the instance is in
	check       func(*T) error
	results     func(*T) *json.RawMessage
	counts      [lifecycle.Refused + 1]atomic.Uint64 // by verdict
}

// Record is a record of instances.
type Record[T any] = lifecycle.Record[State, T]

// Call has the options of one request. Nil is none. It is neither modified nor kept:
// concurrent requests do not share their options.
type Call struct {
	// Reason is kept in the record and its history.
	Reason string
	// Force takes the forced rows: to update an object in UpdateError again, and to
	// delete one in CreateError, UpdateError or DeleteError.
	Force bool
	// KeepError leaves a failed operation in its error state. Neither
	// [Instances.Wait] nor [Coordinator.Sweep] undoes it.
	KeepError bool
}

// Manager returns the manager, to list, to explain and to read the history. Changes
// by it are not subject to the coordinator's conditions. An operator may end an operation
// that is stuck by an override to its error state; a forced request continues from there.
func (in *Instances[T]) Manager() *lifecycle.Manager[State, Event, T] { return in.m }

// Get returns the record of an object. The error is [lifecycle.ErrNotFound],
// [lifecycle.ErrInvalid] or the store's.
func (in *Instances[T]) Get(ctx context.Context, id string) (Record[T], error) {
	return in.m.Get(ctx, id)
}

// Create requests a new object: NotPresent to CreateRequested.
//
// Errors: [lifecycle.ErrExists] with the present record, [lifecycle.ErrInvalid]
// for a spec without cloudlet or ClusterInst or with attributes that are not JSON,
// [lifecycle.ErrPrecondition], those of [lifecycle.Manager.Create].
func (in *Instances[T]) Create(ctx context.Context, id string, spec T, call *Call) (Record[T], error) {
	if err := in.check(&spec); err != nil {
		return Record[T]{}, refused("create", in.key(id), string(Create), User, err)
	}
	return in.request(ctx, id, Create, call, &spec, func(tx txInstances[T], change *lifecycle.Change[T]) *txInstance[T] {
		return tx.Create(id, Create, User, spec, change)
	})
}

// Add takes over an object that exists already on its cloudlet, in a state at rest: Ready,
// or an error state, which no sweep undoes. The cloudlet has to be Ready, and the
// ClusterInst of an AppInst at rest. No order is given to the CRM. A CRM that has the
// object without a record reports it, see [Coordinator.Reconnect].
//
// Errors: [lifecycle.ErrExists]; [lifecycle.ErrInvalid] for a transitional state or
// NotPresent, and for a spec without cloudlet or ClusterInst; [fsm.ErrUnknownState];
// [lifecycle.ErrPrecondition]; those of [lifecycle.Manager.Add].
func (in *Instances[T]) Add(ctx context.Context, id string, state State, spec T) (Record[T], error) {
	if err := in.check(&spec); err != nil {
		return Record[T]{}, refused("add", in.key(id), string(added), User, err)
	}
	return in.request(ctx, id, added, &Call{KeepError: true}, &spec, func(tx txInstances[T], change *lifecycle.Change[T]) *txInstance[T] {
		return tx.Add(id, state, User, spec, change)
	})
}

// Update changes the content of an object: Ready to UpdateRequested, by force
// also from UpdateError. Edit works on a copy of the content, and is called again if
// another writer was faster or if its error matches [lifecycle.ErrConflict]; the previous
// content is kept until the operation has succeeded. A ClusterInst is not updated while an
// AppInst in it is in transition.
//
// Errors: [ErrInUse], [lifecycle.ErrNotFound], [lifecycle.ErrBusy],
// [fsm.ErrForcedOnly] without Force, [lifecycle.ErrInvalid] for invalid content or
// content with another parent, [lifecycle.ErrPrecondition], that of edit, those of
// [lifecycle.Manager.Fire].
func (in *Instances[T]) Update(ctx context.Context, id string, edit func(*T) error, call *Call) (Record[T], error) {
	return in.request(ctx, id, Update, call, nil, func(tx txInstances[T], change *lifecycle.Change[T]) *txInstance[T] {
		change.Edit = func(spec *T) error {
			parent := in.parent(spec)
			if edit != nil {
				if err := edit(spec); err != nil {
					return err
				}
			}
			if in.parent(spec) != parent {
				return fmt.Errorf("%w: %s %q stays in %q", lifecycle.ErrInvalid, in.m.Machine().Name(), id, parent)
			}
			return in.check(spec)
		}
		return tx.Fire(id, Update, User, change)
	})
}

// The verbs of a transaction, and the result of one.
type (
	txInstances[T any] = lifecycle.TxManager[State, Event, T]
	txInstance[T any]  = lifecycle.TxResult[State, T]
)

// added stands for the event of an object that is added: no event has created it.
const added Event = ""

// clusterStates are the states that the ClusterInst of an AppInst may be in, by the event
// of the AppInst.
var clusterStates = map[Event][]State{
	Create: {Ready},
	Update: {Ready},
	added:  {Ready, CreateError, UpdateError, DeleteError},
	Delete: {Ready, CreateError, UpdateError, DeleteError, NotPresent},
}

// request commits a change of an instance that a user requests, with its conditions, and
// writes the notes. The instance has spec if it does not exist; spec is nil otherwise.
func (in *Instances[T]) request(
	ctx context.Context, id string, e Event, call *Call, spec *T, add func(txInstances[T], *lifecycle.Change[T]) *txInstance[T],
) (Record[T], error) {
	opts := *cmp.Or(call, &Call{})
	return commit(ctx, func(tx *lifecycle.Tx) (*txInstance[T], error) {
		now := Record[T]{}
		if spec == nil {
			var err error
			if now, err = in.m.Get(ctx, id); err != nil {
				return nil, err
			}
		}
		content := cmp.Or(spec, &now.Payload)
		result := add(in.m.In(tx), &lifecycle.Change[T]{Expect: now.Revision, Reason: opts.Reason, Force: opts.Force})
		cloudlet, err := in.depend(ctx, tx, content, clusterStates[e])
		if err != nil {
			return nil, err
		}
		_, err = in.coordinator.write(ctx, tx, in.noteID(content, id), func(n *note) error {
			never := now.State == CreateError || n.NeverCreated && now.State == DeleteError
			*n = note{ID: id, Cloudlet: cmp.Or(cloudlet, n.Cloudlet), KeepError: opts.KeepError, NeverCreated: never}
			switch {
			case in.isApp():
			case e == Update:
				return in.coordinator.checkAppsAtRest(ctx, id)
			case e == Delete && opts.Force && isError(now.State):
				return in.coordinator.checkNoApps(ctx, id)
			}
			return nil // a delete checks in DeletePrepare
		})
		return result, err
	})
}

// place is what an instance depends on.
type place struct {
	cloudlet string // empty: unknown, because the ClusterInst does not exist
	cluster  string // empty for a ClusterInst
}

func (in *Instances[T]) place(ctx context.Context, spec *T) (place, error) {
	parent := in.parent(spec)
	if !in.isApp() {
		return place{cloudlet: parent}, nil
	}
	cluster, err := in.coordinator.Clusters.m.Get(ctx, parent)
	if errors.Is(err, lifecycle.ErrNotFound) {
		err = nil
	}
	return place{cloudlet: cluster.Payload.Cloudlet, cluster: parent}, err
}

// depend adds to a transaction the conditions of a request on the cloudlet and the
// ClusterInst of an instance, and writes their notes. It returns the cloudlet, if it is
// known.
func (in *Instances[T]) depend(ctx context.Context, tx *lifecycle.Tx, spec *T, cluster []State) (cloudlet string, err error) {
	at, err := in.place(ctx, spec)
	if err != nil {
		return "", err
	}
	cloudlets, clusters := in.coordinator.Cloudlets, in.coordinator.Clusters.m
	if at.cloudlet != "" {
		tx.Require(cloudlets.upgrades.Require(at.cloudlet, CloudletReady), cloudlets.creations.Require(at.cloudlet, CloudletReady))
		_, err = in.coordinator.write(ctx, tx, cloudletNote(at.cloudlet), nil)
	} else {
		// The ClusterInst does not exist, so its cloudlet is unknown. The bad schedule:
		// it is created and Ready after this read and before the commit, which would
		// then depend on no cloudlet.
		tx.Require(clusters.Require(at.cluster, NotPresent))
	}
	if err != nil || at.cluster == "" {
		return at.cloudlet, err
	}
	tx.Require(clusters.Require(at.cluster, cluster...))
	_, err = in.coordinator.write(ctx, tx, clusterNote(at.cluster), func(*note) error {
		// The bad schedule: after the place was read, the ClusterInst is removed, and
		// another one of its name is created on another cloudlet. That writes its
		// note. So the place is read again after the note is read.
		now, err := in.place(ctx, spec)
		if err == nil && now != at {
			err = fmt.Errorf("%w: ClusterInst %q has moved", lifecycle.ErrConflict, at.cluster)
		}
		return err
	})
	return at.cloudlet, err
}

func (in *Instances[T]) key(id string) lifecycle.Key {
	return lifecycle.Key{Machine: in.m.Machine().Name(), ID: id}
}

// isApp reports whether these are AppInsts, which contain no other instances.
func (in *Instances[T]) isApp() bool { return in.m.Machine().Name() == AppInst.Name() }
