package edgecloud

import (
	"cmp"
	"context"
	"encoding/json"
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
// [Instances.Wait] waits for the outcome. A request is refused, with nothing written and
// an error that matches [lifecycle.ErrPrecondition], while the cloudlet is not Ready, is
// being upgraded or has a failed upgrade. An AppInst needs its ClusterInst Ready, or
// at rest for a delete. These conditions are part of the commit.
type Instances[T any] struct {
	c       *Coordinator
	machine *fsm.Machine[State, Event, T]
	m       *lifecycle.Manager[State, Event, T]
	parent  func(*T) string // id of the cloudlet or ClusterInst that the instance is in
	place   func(context.Context, *T) (place, error)
	check   func(*T) error
	results func(*T) *json.RawMessage
	counts  [lifecycle.Refused + 1]atomic.Uint64 // by verdict
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
	return in.request(ctx, id, call, &request[T]{
		verb: "create", event: Create, spec: &spec, cluster: []State{Ready},
		edit: func(s *T) error { *s = spec; return nil },
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
	return in.request(ctx, id, &Call{KeepError: true}, &request[T]{
		verb: "add", to: state, spec: &spec, cluster: []State{Ready, CreateError, UpdateError, DeleteError},
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
	return in.request(ctx, id, call, &request[T]{
		verb: "fire", event: Update, cluster: []State{Ready},
		edit: func(spec *T) error {
			parent := in.parent(spec)
			if edit != nil {
				if err := edit(spec); err != nil {
					return err
				}
			}
			if in.parent(spec) != parent {
				return fmt.Errorf("%w: %s %q stays in %q", lifecycle.ErrInvalid, in.machine.Name(), id, parent)
			}
			return in.check(spec)
		},
	})
}

// request is a change of an instance that a user requests.
type request[T any] struct {
	verb    string
	event   Event // empty: the instance is added
	to      State // of an added instance
	spec    *T    // of an instance that does not exist
	edit    func(*T) error
	cluster []State // the ClusterInst of an AppInst must be in one of them
}

// request commits a change of an instance with its conditions, and writes the notes.
func (in *Instances[T]) request(ctx context.Context, id string, call *Call, r *request[T]) (Record[T], error) {
	opts := *cmp.Or(call, &Call{})
	if r.spec != nil {
		if err := in.check(r.spec); err != nil {
			return Record[T]{}, in.refused(r.verb, id, r.event, User, err)
		}
	}
	return commit(ctx, func(tx *lifecycle.Tx) (*lifecycle.TxResult[State, T], error) {
		now, err := in.m.Get(ctx, id)
		if err != nil && (r.spec == nil || !errors.Is(err, lifecycle.ErrNotFound)) {
			return nil, err
		}
		spec := cmp.Or(r.spec, &now.Payload)
		at, needs, err := in.needs(ctx, spec, r.cluster...)
		if err != nil {
			return nil, in.refused(r.verb, id, r.event, User, err)
		}
		change := &lifecycle.Change[T]{Edit: r.edit, Reason: opts.Reason, Force: opts.Force, Require: needs}
		var result *lifecycle.TxResult[State, T]
		switch {
		case r.event == "":
			result = in.m.In(tx).Add(id, r.to, User, *spec, change)
		case r.spec != nil:
			result = in.m.In(tx).Create(id, r.event, User, *spec, change)
		default:
			change.Expect = now.Revision
			result = in.m.In(tx).Fire(id, r.event, User, change)
		}
		return result, in.writeNotes(ctx, tx, id, spec, at, now.State, &opts, func() error {
			switch {
			case in.isApp():
			case r.event == Update:
				return in.c.checkAppsAtRest(ctx, id)
			case r.event == Delete && opts.Force && isError(now.State):
				return in.c.checkNoApps(ctx, id)
			}
			return nil // a delete checks in DeletePrepare
		})
	})
}

// needs returns where an instance is, and the states that the cloudlet and the
// ClusterInst of a request must be in.
func (in *Instances[T]) needs(
	ctx context.Context, spec *T, cluster ...State,
) (at place, needs []lifecycle.Precondition, err error) {
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
	} else {
		needs = in.c.Cloudlets.needs(at.cloudlet)
	}
	if at.cluster != "" {
		needs = append(needs, in.c.Clusters.m.Require(at.cluster, cluster...))
	}
	return at, needs, nil
}

// writeNotes adds to a transaction the notes of an instance, which was in a state before,
// and of its parents. The function check runs after the instance's note was read.
func (in *Instances[T]) writeNotes(
	ctx context.Context, tx *lifecycle.Tx, id string, spec *T, at place, before State, opts *Call, check func() error,
) error {
	_, err := in.c.write(ctx, tx, in.noteID(spec, id), func(n *note) error {
		never := before == CreateError || n.NeverCreated && before == DeleteError
		*n = note{ID: id, Cloudlet: cmp.Or(at.cloudlet, n.Cloudlet), KeepError: opts.KeepError, NeverCreated: never}
		return check()
	})
	if err == nil && at.cloudlet != "" {
		_, err = in.c.write(ctx, tx, cloudletNote(at.cloudlet), nil)
	}
	if err != nil || at.cluster == "" {
		return err
	}
	_, err = in.c.write(ctx, tx, clusterNote(at.cluster), func(*note) error {
		// The bad schedule: after the place was read, the ClusterInst is removed, and
		// another one of its name is created on another cloudlet. That writes its
		// note. So the place is read again after the note is read.
		if now, err := in.place(ctx, spec); err != nil || now != at {
			return errors.Join(err, fmt.Errorf("%w: ClusterInst %q has moved", lifecycle.ErrConflict, at.cluster))
		}
		return nil
	})
	return err
}

func (in *Instances[T]) key(id string) lifecycle.Key {
	return lifecycle.Key{Machine: in.machine.Name(), ID: id}
}

// isApp reports whether these are AppInsts, which contain no other instances.
func (in *Instances[T]) isApp() bool { return in.machine.Name() == AppInst.Name() }

// refused returns the error of a request.
func (in *Instances[T]) refused(verb, id string, e Event, actor fsm.Actor, err error) error {
	return refusal(verb, in.machine.Name(), id, string(e), actor, err)
}
