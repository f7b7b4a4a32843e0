package edgecloud

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/lifecycle"
)

// Instances are the ClusterInsts or the AppInsts of a [Coordinator], which makes
// them. It is safe for concurrent use and must not be copied.
//
// A request returns when it is committed, with the record that the CRM is to act
// on; [Instances.Wait] waits for the outcome. It is refused, with nothing written
// and an error that matches [lifecycle.ErrPrecondition], while the cloudlet is
// not Ready or is being upgraded, or its upgrade has failed; an AppInst needs its
// ClusterInst Ready, and to be deleted at rest. All of that is part of the commit.
type Instances[T any] struct {
	c      *Coordinator
	m      *lifecycle.Manager[State, Event, T]
	refs   *refManager
	parent func(*T) string // what an instance is directly in
	place  func(context.Context, *T) (place, error)
	check  func(*T) error
	same   func(after, before *T) error
	counts counts
}

// Record is a record of instances.
type Record[T any] = lifecycle.Record[State, T]

// Manager returns the manager, to list, to explain, to look at the history. To
// move objects by it is to do without the conditions of the coordinator.
func (in *Instances[T]) Manager() *lifecycle.Manager[State, Event, T] { return in.m }

// Get returns the record of an object. The error is [lifecycle.ErrNotFound],
// [lifecycle.ErrInvalid] or the store's.
func (in *Instances[T]) Get(ctx context.Context, id string) (Record[T], error) {
	return in.m.Get(ctx, id)
}

// Create asks for a new object: NotPresent to CreateRequested.
//
// With IgnoreCRM it is Ready at once, by a second commit; with
// IgnoreTransientState an object that is stuck in transition is asked for anew.
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
			// What it is noted for comes first: a sweep is to do what is wanted now, and
			// an upgrade of the cloudlet to see it, wherever it was before.
			var needs []lifecycle.Precondition
			err := together(ctx, func() (also []lifecycle.AnyPart, err error) {
				also, needs, err = in.depends(ctx, id, &spec, call, true, Ready)
				return also, err
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
	var part *lifecycle.Part[State, Event, T]
	err := together(ctx, func() ([]lifecycle.AnyPart, error) {
		also, needs, err := in.depends(ctx, id, &spec, call, true, Ready)
		if err != nil {
			return nil, in.refused("create", id, Create, err)
		}
		part = in.m.Creating(id, Create, User, spec, &lifecycle.Change[T]{Reason: call.reason(), Require: needs})
		return append([]lifecycle.AnyPart{part}, also...), nil
	})
	if err != nil {
		return Record[T]{}, err
	}
	return in.ready(ctx, call)(part.Record(), nil)
}

// ready puts what was asked for with IgnoreCRM where it leads to.
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
// [fsm.ErrForcedOnly] without Force, [lifecycle.ErrInvalid] for content that is
// none or an object that would move elsewhere, [lifecycle.ErrPrecondition], that
// of edit, those of [lifecycle.Manager.Fire].
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

// begin fires an event of a user at an object that there is, together with what
// it depends on.
func (in *Instances[T]) begin(ctx context.Context, id string, e Event, call *Call, edit func(*T) error, cluster ...State) (Record[T], error) {
	if call.has(IgnoreTransientState) {
		if stuck, ok := in.stuck(ctx, id); ok {
			if err := in.unstick(ctx, &stuck, e, call, edit, cluster...); err != nil {
				return Record[T]{}, err
			}
		}
	}
	var part *lifecycle.Part[State, Event, T]
	err := together(ctx, func() ([]lifecycle.AnyPart, error) {
		now, err := in.m.Get(ctx, id)
		if err != nil {
			return nil, in.refused("fire", id, e, err)
		}
		also, needs, err := in.depends(ctx, id, &now.Payload, call, false, cluster...)
		if err != nil {
			return nil, in.refused("fire", id, e, err)
		}
		part = in.m.Firing(id, e, User, &lifecycle.Change[T]{
			Edit: edit, Reason: call.reason(), Force: call.force(), Require: needs,
		})
		list := []lifecycle.AnyPart{part}
		if !in.apps() {
			var look func() error // to delete, it looks once nobody can join any more
			if e == Update {
				look = func() error { return in.c.movingIn(ctx, id) }
			}
			own, err := touching(ctx, in.c.clusterRefs, id, look)
			if err != nil {
				return nil, err
			}
			list = append(list, own)
		}
		return append(list, also...), nil
	})
	if err != nil {
		return Record[T]{}, err
	}
	return part.Record(), nil
}

// unstick puts an object that is in transition at rest, for what is asked for next.
// What would be refused then is refused now, with nothing written.
func (in *Instances[T]) unstick(ctx context.Context, stuck *Record[T], e Event, call *Call, edit func(*T) error, cluster ...State) error {
	_, needs, err := in.depends(ctx, stuck.ID, &stuck.Payload, call, false, cluster...)
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
		return told(in.refused("fire", stuck.ID, e, err))
	}
	_, err = in.m.Override(ctx, stuck.ID, Ready, User, overriding(call), &lifecycle.Change[T]{
		Operation: stuck.Operation, Require: needs,
	})
	return err
}

// depends returns what a request writes and needs besides the object itself: the
// refs of its cloudlet and ClusterInst, and the states that these must be in.
func (in *Instances[T]) depends(ctx context.Context, id string, spec *T, call *Call, anew bool, cluster ...State) (parts []lifecycle.AnyPart, needs []lifecycle.Precondition, err error) {
	at, err := in.place(ctx, spec)
	if err != nil {
		return nil, nil, err
	}
	if at.cloudlet == "" {
		// The ClusterInst is not there, and so nobody knows which cloudlet it is. The
		// bad schedule: it is made and Ready after this look, and before the commit,
		// which would then depend on no cloudlet.
		needed := in.c.Clusters.m.Require(at.cluster, cluster...)
		if !slices.Contains(cluster, NotPresent) {
			return nil, nil, &lifecycle.PreconditionError{
				Precondition: needed, Current: lifecycle.StoredRecord{Key: needed.Key},
			}
		}
		cluster = []State{NotPresent}
	}
	joins, err := in.noting(ctx, in.parent(spec), id, wished(call), func(r *ref) {
		if anew {
			r.Unmade = false // it may be undone to Ready again
		}
	})
	if err != nil {
		return nil, nil, err
	}
	parts = append(parts, joins)
	if at.cloudlet != "" {
		part, err := touching(ctx, in.c.cloudletRefs, at.cloudlet, nil)
		if err != nil {
			return nil, nil, err
		}
		parts = append(parts, part)
		if !call.has(IgnoreCRM) {
			needs = append(needs, in.c.Cloudlets.needs(at.cloudlet)...)
		}
	}
	if at.cluster != "" {
		// The ClusterInst may go, and another one of its name come on another
		// cloudlet, after its place was read. Its refs are written then: after they
		// are read here, the place is read again.
		again := func() error {
			if now, err := in.place(ctx, spec); err != nil || now != at {
				return errors.Join(err, errMoved)
			}
			return nil
		}
		part, err := touching(ctx, in.c.clusterRefs, at.cluster, again)
		if err != nil {
			return nil, nil, err
		}
		parts = append(parts, part)
		needs = append(needs, in.c.Clusters.m.Require(at.cluster, cluster...))
	}
	return parts, needs, nil
}

func (in *Instances[T]) key(id string) lifecycle.Key {
	return lifecycle.Key{Machine: in.m.Machine().Table().Name, ID: id}
}

// apps reports whether these are AppInsts, in which nothing else is.
func (in *Instances[T]) apps() bool { return in.m.Machine().Table().Name == AppInst.Table().Name }

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
		_, err = in.m.Machine().NextForced(ctx, status, e, User, &rec.Payload)
	} else {
		_, err = in.m.Machine().Next(ctx, status, e, User, &rec.Payload)
	}
	if err != nil && inTransition(rec.State) {
		err = fmt.Errorf("%w: %w", lifecycle.ErrBusy, err)
	}
	if err != nil {
		return Record[T]{}, in.refused("fire", id, e, err)
	}
	return rec, nil
}

// refused says what was asked of which object.
func (in *Instances[T]) refused(verb, id string, e Event, err error) error {
	if _, ok := errors.AsType[*lifecycle.Error](err); ok {
		return err
	}
	actor := User
	if e == Undo {
		actor = Controller
	}
	return &lifecycle.Error{
		Verb: verb, Machine: in.m.Machine().Table().Name, ID: id, Event: string(e), Actor: actor, Err: err,
	}
}

// overriding is the reason that an override is written with.
func overriding(call *Call) string {
	if call.Reason == "" {
		return call.Override.String()
	}
	return call.Override.String() + ": " + call.Reason
}
