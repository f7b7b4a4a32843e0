package edgecloud

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// Instances are the ClusterInsts or the AppInsts of a [Coordinator], which makes
// them. It is safe for concurrent use and must not be copied.
//
// A request returns when it is committed, with the record that the CRM acts on;
// [Instances.Wait] waits for the outcome. It is refused, with nothing written and an
// error that matches [lifecycle.ErrPrecondition], while the cloudlet is not Ready, is
// being upgraded or has a failed upgrade. An AppInst needs its ClusterInst Ready, or
// at rest for a delete. These conditions are part of the commit.
type Instances[T any] struct {
	c       *Coordinator
	machine *fsm.Machine[State, Event, T]
	m       *lifecycle.Manager[State, Event, T]
	refs    *refManager
	parent  func(*T) string // the id of the object that an instance is directly in
	place   func(context.Context, *T) (place, error)
	check   func(*T) error
	same    func(after, before *T) error
	counts  [lifecycle.Refused + 1]atomic.Uint64 // by verdict
}

// Record is a record of instances.
type Record[T any] = lifecycle.Record[State, T]

// Manager returns the manager, to list, to explain and to read the history. Changes
// by it are not subject to the coordinator's conditions.
func (in *Instances[T]) Manager() *lifecycle.Manager[State, Event, T] { return in.m }

// Get returns the record of an object. The error is [lifecycle.ErrNotFound],
// [lifecycle.ErrInvalid] or the store's.
func (in *Instances[T]) Get(ctx context.Context, id string) (Record[T], error) {
	return in.m.Get(ctx, id)
}

// Create requests a new object: NotPresent to CreateRequested.
//
// With IgnoreCRM it is Ready at once, by a second commit; with IgnoreTransientState an
// object that is stuck in transition is requested again.
//
// Errors: [lifecycle.ErrExists] with the present record, [lifecycle.ErrInvalid]
// for a spec without cloudlet or ClusterInst, [lifecycle.ErrPrecondition], those
// of [lifecycle.Manager.Create].
func (in *Instances[T]) Create(ctx context.Context, id string, spec T, call *Call) (Record[T], error) {
	if err := in.check(&spec); err != nil {
		return Record[T]{}, in.refused("create", id, Create, err)
	}
	if call.has(IgnoreTransientState) {
		if stuck, ok := in.stuck(ctx, id); ok {
			// The refs are written first: a sweep must find the present wish, and an
			// upgrade of the cloudlet must find the object, wherever it was before.
			var needs []lifecycle.Precondition
			err := together(ctx, func(tx *lifecycle.Tx) error {
				at, needed, err := in.needs(ctx, &spec, call, Ready)
				if err != nil {
					return err
				}
				needs = needed
				return in.joins(ctx, tx, id, &spec, at, call, true)
			})
			if err != nil {
				return Record[T]{}, in.refused("create", id, Create, err)
			}
			change := &lifecycle.Change[T]{
				Operation: stuck.Operation, Require: needs, Edit: func(t *T) error { *t = spec; return nil },
			}
			return in.ready(ctx, call)(in.m.Override(ctx, id, CreateRequested, User, overriding(call), change))
		}
	}
	var created *lifecycle.TxResult[State, T]
	err := together(ctx, func(tx *lifecycle.Tx) error {
		at, needs, err := in.needs(ctx, &spec, call, Ready)
		if err != nil {
			return in.refused("create", id, Create, err)
		}
		created = in.m.In(tx).Create(id, Create, User, spec, &lifecycle.Change[T]{Reason: call.reason(), Require: needs})
		return in.joins(ctx, tx, id, &spec, at, call, true)
	})
	if err != nil {
		return Record[T]{}, err
	}
	return in.ready(ctx, call)(created.Record(), nil)
}

// ready moves an object that was requested with IgnoreCRM to Ready.
func (in *Instances[T]) ready(ctx context.Context, call *Call) func(Record[T], error) (Record[T], error) {
	return func(rec Record[T], err error) (Record[T], error) {
		if err != nil || !call.has(IgnoreCRM) {
			return rec, err
		}
		return in.m.Override(ctx, rec.ID, Ready, User, overriding(call), &lifecycle.Change[T]{Operation: rec.Operation})
	}
}

// Update changes the content of an object: Ready to UpdateRequested, by force
// also from UpdateError. Edit works on a copy of the content; the previous content
// is kept until the operation has succeeded. A ClusterInst is not updated while an
// AppInst in it is in transition.
//
// Errors: [ErrInUse], [lifecycle.ErrNotFound], [lifecycle.ErrBusy],
// [fsm.ErrForcedOnly] without Force, [lifecycle.ErrInvalid] for invalid content or
// content with another place, [lifecycle.ErrPrecondition], that of edit, those of
// [lifecycle.Manager.Fire].
func (in *Instances[T]) Update(ctx context.Context, id string, edit func(*T) error, call *Call) (Record[T], error) {
	careful := func(t *T) error {
		before := *t
		if edit != nil {
			if err := edit(t); err != nil {
				return err
			}
		}
		if err := in.same(t, &before); err != nil {
			return err
		}
		return in.check(t)
	}
	if call.has(IgnoreCRM) {
		rec, err := in.rest(ctx, id, Update, call)
		if err != nil {
			return rec, err
		}
		return in.m.Override(ctx, id, Ready, User, overriding(call), &lifecycle.Change[T]{Operation: rec.Operation, Edit: careful})
	}
	return in.begin(ctx, id, Update, call, careful, Ready)
}

// begin fires a user's event at an existing object, and writes the refs of what the
// object depends on.
func (in *Instances[T]) begin(ctx context.Context, id string, e Event, call *Call, edit func(*T) error, cluster ...State) (Record[T], error) {
	if call.has(IgnoreTransientState) {
		if stuck, ok := in.stuck(ctx, id); ok {
			if err := in.unstick(ctx, &stuck, e, call, edit, cluster...); err != nil {
				return Record[T]{}, err
			}
		}
	}
	var begun *lifecycle.TxResult[State, T]
	err := together(ctx, func(tx *lifecycle.Tx) error {
		now, err := in.m.Get(ctx, id)
		if err != nil {
			return err
		}
		at, needs, err := in.needs(ctx, &now.Payload, call, cluster...)
		if err != nil {
			return in.refused("fire", id, e, err)
		}
		begun = in.m.In(tx).Fire(id, e, User, &lifecycle.Change[T]{
			Edit: edit, Reason: call.reason(), Force: call.force(), Require: needs,
		})
		if !in.apps() {
			var look func() error // a delete looks in DeletePrepare, where no AppInst can join
			if e == Update {
				look = func() error { return in.c.movingIn(ctx, id) }
			}
			if err := touch(ctx, tx, in.c.clusterRefs, id, look); err != nil {
				return err
			}
		}
		return in.joins(ctx, tx, id, &now.Payload, at, call, false)
	})
	if err != nil {
		return Record[T]{}, err
	}
	return begun.Record(), nil
}

// unstick moves an object in transition to rest, for the request that follows. If that
// would be refused, unstick refuses, and nothing is written.
func (in *Instances[T]) unstick(ctx context.Context, stuck *Record[T], e Event, call *Call, edit func(*T) error, cluster ...State) error {
	_, needs, err := in.needs(ctx, &stuck.Payload, call, cluster...)
	if err == nil && edit != nil {
		spec := stuck.Payload
		err = edit(&spec)
	}
	if err == nil && !in.apps() && e == Update {
		err = in.c.movingIn(ctx, stuck.ID)
	}
	if err == nil && e == Delete {
		var used *InUseError
		if used, err = in.users(ctx, stuck.ID); used != nil {
			return used
		}
	}
	if err != nil {
		return publicError(in.refused("fire", stuck.ID, e, err))
	}
	_, err = in.m.Override(ctx, stuck.ID, Ready, User, overriding(call), &lifecycle.Change[T]{
		Operation: stuck.Operation, Require: needs,
	})
	return err
}

// needs returns where an instance is, and the states that the cloudlet and the
// ClusterInst of a request must be in.
func (in *Instances[T]) needs(ctx context.Context, spec *T, call *Call, cluster ...State) (at place, needs []lifecycle.Precondition, err error) {
	if at, err = in.place(ctx, spec); err != nil {
		return at, nil, err
	}
	if at.cloudlet == "" {
		// The ClusterInst does not exist, so its cloudlet is unknown. The bad schedule:
		// it is created and Ready after this read and before the commit, which would
		// then depend on no cloudlet.
		needed := in.c.Clusters.m.Require(at.cluster, cluster...)
		if !slices.Contains(cluster, NotPresent) {
			return at, nil, &lifecycle.PreconditionError{
				Precondition: needed, Current: lifecycle.StoredRecord{Key: needed.Key},
			}
		}
		cluster = []State{NotPresent}
	}
	if at.cloudlet != "" && !call.has(IgnoreCRM) {
		needs = append(needs, in.c.Cloudlets.needs(at.cloudlet)...)
	}
	if at.cluster != "" {
		needs = append(needs, in.c.Clusters.m.Require(at.cluster, cluster...))
	}
	return at, needs, nil
}

// joins adds to a transaction what a request writes besides the object itself: the
// ref of the object, and the refs of its cloudlet and ClusterInst.
func (in *Instances[T]) joins(ctx context.Context, tx *lifecycle.Tx, id string, spec *T, at place, call *Call, anew bool) error {
	err := in.note(ctx, tx, in.parent(spec), id, wished(call), func(r *ref) {
		if anew {
			r.Unmade = false // it may be undone to Ready again
		}
	})
	if err == nil && at.cloudlet != "" {
		err = touch(ctx, tx, in.c.cloudletRefs, at.cloudlet, nil)
	}
	if err != nil || at.cluster == "" {
		return err
	}
	// The bad schedule: after the place was read, the ClusterInst is removed, and
	// another one of its name is created on another cloudlet. That writes its refs.
	// So the place is read again after the refs are read.
	return touch(ctx, tx, in.c.clusterRefs, at.cluster, func() error {
		if now, err := in.place(ctx, spec); err != nil || now != at {
			return errors.Join(err, errMoved)
		}
		return nil
	})
}

func (in *Instances[T]) key(id string) lifecycle.Key {
	return lifecycle.Key{Machine: in.machine.Name(), ID: id}
}

// apps reports whether these are AppInsts, which contain no other instances.
func (in *Instances[T]) apps() bool { return in.machine.Name() == AppInst.Name() }

// stuck returns the record of an object that is in transition.
func (in *Instances[T]) stuck(ctx context.Context, id string) (Record[T], bool) {
	rec, err := in.m.Get(ctx, id)
	return rec, err == nil && inTransition(rec.State)
}

// rest returns the record of an object that a request with IgnoreCRM may change.
func (in *Instances[T]) rest(ctx context.Context, id string, e Event, call *Call) (Record[T], error) {
	rec, err := in.m.Get(ctx, id)
	if err != nil || call.has(IgnoreTransientState) && inTransition(rec.State) {
		return rec, err
	}
	status := rec.Status
	if call.force() {
		_, err = in.machine.NextForced(ctx, status, e, User, &rec.Payload)
	} else {
		_, err = in.machine.Next(ctx, status, e, User, &rec.Payload)
	}
	if err != nil && inTransition(rec.State) {
		err = fmt.Errorf("%w: %w", lifecycle.ErrBusy, err)
	}
	if err != nil {
		return Record[T]{}, in.refused("fire", id, e, err)
	}
	return rec, nil
}

// refused returns the error of a request.
func (in *Instances[T]) refused(verb, id string, e Event, err error) error {
	if _, ok := errors.AsType[*lifecycle.Error](err); ok {
		return err
	}
	actor := User
	if e == Undo {
		actor = Controller
	}
	return &lifecycle.Error{
		Verb: verb, Machine: in.machine.Name(), ID: id, Event: string(e), Actor: actor, Err: err,
	}
}

// overriding returns the reason for an override.
func overriding(call *Call) string {
	if call.Reason == "" {
		return call.Override.String()
	}
	return call.Override.String() + ": " + call.Reason
}
