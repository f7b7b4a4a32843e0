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
	entries *noteManager
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
	// IgnoreTransientState changes an object that is stuck in transition as if it were
	// at rest, by one override to the requested state. It is for operators: the record
	// may then differ from what the cloudlet has. Reports about the earlier operation
	// are stale then.
	IgnoreTransientState bool
	// KeepError leaves a failed operation in its error state. Neither
	// [Instances.Wait] nor [Coordinator.Sweep] undoes it.
	KeepError bool
}

func (c *Call) orDefault() Call {
	if c == nil {
		return Call{}
	}
	return *c
}

// Manager returns the manager, to list, to explain and to read the history. Changes
// by it are not subject to the coordinator's conditions.
func (in *Instances[T]) Manager() *lifecycle.Manager[State, Event, T] { return in.m }

// Get returns the record of an object. The error is [lifecycle.ErrNotFound],
// [lifecycle.ErrInvalid] or the store's.
func (in *Instances[T]) Get(ctx context.Context, id string) (Record[T], error) {
	return in.m.Get(ctx, id)
}

// Create requests a new object: NotPresent to CreateRequested. With
// IgnoreTransientState it replaces an object that is stuck in transition.
//
// Errors: [lifecycle.ErrExists] with the present record, [lifecycle.ErrInvalid]
// for a spec without cloudlet or ClusterInst or with attributes that are no JSON,
// [lifecycle.ErrPrecondition], those of [lifecycle.Manager.Create].
func (in *Instances[T]) Create(ctx context.Context, id string, spec T, call *Call) (Record[T], error) {
	opts := call.orDefault()
	if err := in.check(&spec); err != nil {
		return Record[T]{}, in.refused("create", id, Create, err)
	}
	var created *lifecycle.TxResult[State, T]
	err := commit(ctx, func(tx *lifecycle.Tx) error {
		at, needs, err := in.needs(ctx, &spec, Ready)
		if err != nil {
			return in.refused("create", id, Create, err)
		}
		before, err := in.m.Get(ctx, id)
		if err != nil && !errors.Is(err, lifecycle.ErrNotFound) {
			return err
		}
		change := &lifecycle.Change[T]{Reason: opts.Reason, Require: needs}
		if opts.IgnoreTransientState && err == nil && inTransition(before.State) {
			change.Expect, change.Edit = before.Revision, func(s *T) error { *s = spec; return nil }
			created = in.override(tx, id, CreateRequested, change)
		} else {
			created = in.m.In(tx).Create(id, Create, User, spec, change)
		}
		return in.writeNotes(ctx, tx, id, &spec, at, before.State, &opts)
	})
	if err != nil {
		return Record[T]{}, err
	}
	return created.Record(), nil
}

// Add takes over an object that exists already on its cloudlet, in a state at rest: Ready,
// or an error state, which no sweep undoes. The cloudlet has to be Ready, and the
// ClusterInst of an AppInst at rest. No order is given to the CRM. A CRM that has the
// object without a record reports it, see [Coordinator.Reconnect].
//
// Errors: [lifecycle.ErrExists]; [lifecycle.ErrInvalid] for a transitional state or
// NotPresent, and for a spec without cloudlet or ClusterInst; [fsm.ErrUnknownState];
// [lifecycle.ErrPrecondition]; those of [lifecycle.Manager.AddAt].
func (in *Instances[T]) Add(ctx context.Context, id string, state State, spec T) (Record[T], error) {
	if err := in.check(&spec); err != nil {
		return Record[T]{}, in.refused("add", id, "", err)
	}
	var added *lifecycle.TxResult[State, T]
	err := commit(ctx, func(tx *lifecycle.Tx) error {
		at, needs, err := in.needs(ctx, &spec, Ready, CreateError, UpdateError, DeleteError)
		if err != nil {
			return in.refused("add", id, "", err)
		}
		added = in.m.In(tx).AddAt(id, state, User, spec, &lifecycle.Change[T]{Require: needs})
		return in.writeNotes(ctx, tx, id, &spec, at, NotPresent, &Call{KeepError: true})
	})
	if err != nil {
		return Record[T]{}, err
	}
	return added.Record(), nil
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
	return in.begin(ctx, id, Update, call, func(spec *T) error {
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
	}, Ready)
}

// begin fires a user's event at an existing object, and writes the notes. The
// ClusterInst of an AppInst must be in one of the states.
func (in *Instances[T]) begin(
	ctx context.Context, id string, e Event, call *Call, edit func(*T) error, cluster ...State,
) (Record[T], error) {
	opts := call.orDefault()
	var begun *lifecycle.TxResult[State, T]
	err := commit(ctx, func(tx *lifecycle.Tx) error {
		now, err := in.m.Get(ctx, id)
		if err != nil {
			return err
		}
		at, needs, err := in.needs(ctx, &now.Payload, cluster...)
		if err != nil {
			return in.refused("fire", id, e, err)
		}
		change := &lifecycle.Change[T]{Edit: edit, Reason: opts.Reason, Force: opts.Force, Require: needs, Expect: now.Revision}
		stuck := opts.IgnoreTransientState && inTransition(now.State)
		switch {
		case stuck && e == Update:
			begun = in.override(tx, id, UpdateRequested, change)
		case stuck:
			begun = in.override(tx, id, DeleteRequested, change)
		default:
			begun = in.m.In(tx).Fire(id, e, User, change)
		}
		if !in.isApp() {
			if err := write(ctx, tx, in.c.clusterCounters, id, func(*note) error {
				switch {
				case e == Update:
					return in.c.checkAppsAtRest(ctx, id)
				case stuck || opts.Force && isError(now.State):
					return in.c.checkNoApps(ctx, id)
				}
				return nil // a delete checks in DeletePrepare, where no AppInst can be created
			}); err != nil {
				return err
			}
		}
		return in.writeNotes(ctx, tx, id, &now.Payload, at, now.State, &opts)
	})
	if err != nil {
		return Record[T]{}, err
	}
	return begun.Record(), nil
}

// override adds to a transaction the change of an object that is stuck in transition.
func (in *Instances[T]) override(
	tx *lifecycle.Tx, id string, to State, change *lifecycle.Change[T],
) *lifecycle.TxResult[State, T] {
	reason := "IgnoreTransientState"
	if change.Reason != "" {
		reason += ": " + change.Reason
	}
	return in.m.In(tx).Override(id, to, User, reason, change)
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

// writeNotes adds to a transaction what a request writes besides the object itself: the
// entry of the object, which was in a state before, and the counters of its cloudlet and
// ClusterInst.
func (in *Instances[T]) writeNotes(
	ctx context.Context, tx *lifecycle.Tx, id string, spec *T, at place, before State, opts *Call,
) error {
	err := write(ctx, tx, in.entries, entryID(in.parent(spec), id), func(n *note) error {
		never := before == CreateRequested || before == Creating || before == CreateError ||
			n.NeverCreated && (before == DeleteRequested || before == Deleting || before == DeleteError)
		*n = note{ID: id, Cloudlet: cmp.Or(at.cloudlet, n.Cloudlet), KeepError: opts.KeepError, NeverCreated: never}
		return nil
	})
	if err == nil && at.cloudlet != "" {
		err = write(ctx, tx, in.c.cloudletCounters, at.cloudlet, nil)
	}
	if err != nil || at.cluster == "" {
		return err
	}
	return write(ctx, tx, in.c.clusterCounters, at.cluster, func(*note) error {
		// The bad schedule: after the place was read, the ClusterInst is removed, and
		// another one of its name is created on another cloudlet. That writes its
		// counter. So the place is read again after the counter is read.
		if now, err := in.place(ctx, spec); err != nil || now != at {
			return errors.Join(err, fmt.Errorf("%w: ClusterInst %q has moved", lifecycle.ErrConflict, at.cluster))
		}
		return nil
	})
}

func (in *Instances[T]) key(id string) lifecycle.Key {
	return lifecycle.Key{Machine: in.machine.Name(), ID: id}
}

// isApp reports whether these are AppInsts, which contain no other instances.
func (in *Instances[T]) isApp() bool { return in.machine.Name() == AppInst.Name() }

// refused returns the error of a request.
func (in *Instances[T]) refused(verb, id string, e Event, err error) error {
	actor := User
	if e == Undo {
		actor = Controller
	}
	return refusal(verb, in.machine.Name(), id, string(e), actor, err)
}
