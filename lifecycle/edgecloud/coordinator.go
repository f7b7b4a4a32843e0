package edgecloud

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/storable"
	"github.com/interlock-go/interlock/lifecycle"
)

// Coordinator is the controller of the document: it takes the requests of users and
// the reports of CRMs, and refuses those that the tables or the dependencies do not
// permit. [NewCoordinator] makes one; the zero Coordinator is not usable. It is safe
// for concurrent use and must not be copied. In memory it keeps only counts: several
// coordinators, in several processes, may work on one store, and a new one continues
// after a crash.
type Coordinator struct {
	Clusters  *Instances[ClusterSpec]
	Apps      *Instances[AppSpec]
	Cloudlets *Cloudlets

	undoAfter time.Duration
	notes     *lifecycle.Manager[string, string, note]
}

// Config refines a [Coordinator]. The zero Config and nil are the defaults.
type Config struct {
	// Observer receives what happens to ClusterInsts, AppInsts and cloudlets, of
	// both tables. Default: none.
	Observer lifecycle.Observer
	// UndoAfter is how long a failed operation stays in its error state until
	// [Coordinator.Sweep] undoes it. [Instances.Wait] undoes it at once, but its
	// process may have died. 0: a minute. Below 0: no sweep undoes it.
	UndoAfter time.Duration
}

// NewCoordinator returns a coordinator of the objects in a store. The error is that of
// [lifecycle.New]. If the store does not take commits of at least seven changes and
// conditions, every request is refused with [errors.ErrUnsupported].
func NewCoordinator(store lifecycle.Store, config *Config) (*Coordinator, error) {
	notes, err := lifecycle.New(notes, store, nil)
	if err != nil {
		return nil, err
	}
	if config == nil {
		config = &Config{}
	}
	c := &Coordinator{undoAfter: cmp.Or(config.UndoAfter, time.Minute), notes: notes}
	cloudlets := &lifecycle.Config[CloudletEvent]{Observer: config.Observer}
	c.Cloudlets = &Cloudlets{
		coordinator: c,
		creations:   lifecycle.Must(CloudletCreate, store, cloudlets),
		upgrades:    lifecycle.Must(CloudletUpgrade, store, cloudlets),
	}
	c.Clusters = &Instances[ClusterSpec]{
		coordinator: c, check: (*ClusterSpec).check,
		results: func(s *ClusterSpec) *json.RawMessage { return &s.Results },
		parent:  func(s *ClusterSpec) string { return s.Cloudlet },
	}
	c.Apps = &Instances[AppSpec]{
		coordinator: c, check: (*AppSpec).check,
		results: func(s *AppSpec) *json.RawMessage { return &s.Results },
		parent:  func(s *AppSpec) string { return s.ClusterInst },
	}
	insts := ManagerConfig()
	insts.Observer, insts.BeforeCommit = config.Observer, c.Clusters.beforeCommit
	c.Clusters.m = lifecycle.Must(ClusterInst, store, insts)
	insts.BeforeCommit = c.Apps.beforeCommit
	c.Apps.m = lifecycle.Must(AppInst, store, insts)
	return c, nil
}

func (s *ClusterSpec) check() error {
	switch {
	case s.Cloudlet == "":
		return fmt.Errorf("%w: a ClusterInst needs a cloudlet", lifecycle.ErrInvalid)
	case s.Nodes < 0:
		return fmt.Errorf("%w: %d nodes", lifecycle.ErrInvalid, s.Nodes)
	}
	return nil
}

func (s *AppSpec) check() error {
	switch {
	case s.ClusterInst == "":
		return fmt.Errorf("%w: an AppInst needs a ClusterInst", lifecycle.ErrInvalid)
	case s.Replicas < 0:
		return fmt.Errorf("%w: %d replicas", lifecycle.ErrInvalid, s.Replicas)
	}
	return nil
}

// Sweep acts once on every object whose deadline has passed, as
// [lifecycle.Manager.Sweep] does: operations without an answer, deletes whose
// controller died while it prepared them, cloudlets whose CRM does not answer. Then it
// undoes operations that failed longer than [Config.UndoAfter] ago, except those that
// were requested with KeepError. A process has to call Sweep from time to time; see
// [lifecycle.Run]. Errors keep it from no other object; the next sweep tries again.
func (c *Coordinator) Sweep(ctx context.Context) ([]lifecycle.SweepResult, error) {
	var results []lifecycle.SweepResult
	var errs []error
	for _, sweep := range []func(context.Context) ([]lifecycle.SweepResult, error){
		c.Clusters.m.Sweep, c.Apps.m.Sweep, c.Cloudlets.creations.Sweep, c.Cloudlets.upgrades.Sweep,
		c.Apps.sweepFailed, c.Clusters.sweepFailed, // AppInsts first, as they are deleted
	} {
		found, err := sweep(ctx)
		results, errs = append(results, found...), append(errs, err)
		if ctx.Err() != nil {
			break
		}
	}
	return results, errors.Join(errs...)
}

// sweepFailed undoes operations that failed and that no caller has undone: the caller
// has died, or does not wait.
func (in *Instances[T]) sweepFailed(ctx context.Context) ([]lifecycle.SweepResult, error) {
	if in.coordinator.undoAfter < 0 {
		return nil, nil
	}
	var results []lifecycle.SweepResult
	var errs []error
	failed := lifecycle.Select[State]{States: []State{CreateError, UpdateError, DeleteError}, UnchangedFor: in.coordinator.undoAfter}
	for rec, err := range in.m.All(ctx, failed) {
		after, kept := rec, false
		if err == nil {
			after, kept, err = in.undoFailed(ctx, &rec)
		}
		if kept {
			continue
		}
		result := lifecycle.SweepResult{
			Key: in.key(rec.ID), From: string(rec.State), Operation: rec.Operation, Event: string(Undo), Actor: Controller,
		}
		switch {
		case err == nil:
			result.Resolution, result.To = lifecycle.Moved, string(after.State)
		case ctx.Err() != nil:
			return results, errors.Join(append(errs, lifecycle.Ended(ctx))...)
		case errors.Is(err, ErrNeverCreated):
			result.Resolution, result.Err = lifecycle.NotMoved, err
		case moved(err):
			result.Resolution = lifecycle.Overtaken
		default:
			errs = append(errs, err)
			continue
		}
		results = append(results, result)
	}
	return results, errors.Join(errs...)
}

// undoFailed undoes the operation in which an object has failed, unless the request had
// KeepError.
func (in *Instances[T]) undoFailed(ctx context.Context, rec *Record[T]) (after Record[T], kept bool, err error) {
	note, err := in.note(ctx, rec)
	if err != nil || note.KeepError {
		return *rec, note.KeepError, err
	}
	after, err = in.Undo(ctx, rec.ID, rec.Operation, storable.Reason(in.failure(rec).Error()))
	return after, false, err
}

// commit commits the transaction that build fills, and returns the record of the change
// that build returns. It builds and commits another one while other writers move objects
// that build has read. Of two such writers, one always succeeds. Without a change there
// is nothing to commit.
func commit[S comparable, T any](
	ctx context.Context, build func(*lifecycle.Tx) (*lifecycle.TxResult[S, T], error),
) (lifecycle.Record[S, T], error) {
	for {
		var tx lifecycle.Tx
		result, err := build(&tx)
		if err == nil && result == nil {
			return lifecycle.Record[S, T]{}, nil
		}
		if err == nil {
			err = tx.Commit(ctx)
		}
		switch {
		case err == nil:
			return result.Record(), nil
		case !overtaken(err):
			return lifecycle.Record[S, T]{}, err
		}
	}
}

// overtaken reports whether a commit failed only because another writer was faster.
// An object that exists already is final; a note that exists already is not.
func overtaken(err error) bool {
	if !errors.Is(err, lifecycle.ErrConflict) || errors.Is(err, lifecycle.ErrUnknownOutcome) {
		return false
	}
	e, ok := errors.AsType[*lifecycle.Error](err)
	return !errors.Is(err, lifecycle.ErrExists) || ok && e.Machine == notes.Name()
}

// moved reports whether a change of an operation was refused because another caller
// has moved the object.
func moved(err error) bool {
	return !errors.Is(err, lifecycle.ErrUnknownOutcome) && (errors.Is(err, lifecycle.ErrConflict) ||
		errors.Is(err, lifecycle.ErrStale) || errors.Is(err, lifecycle.ErrNotFound) || errors.Is(err, fsm.ErrNotAllowed))
}

// refused returns the error of a request that was refused before its commit.
func refused(verb string, key lifecycle.Key, event string, actor fsm.Actor, err error) error {
	if _, ok := errors.AsType[*lifecycle.Error](err); ok {
		return err
	}
	return &lifecycle.Error{Verb: verb, Machine: key.Machine, ID: key.ID, Event: event, Actor: actor, Err: err}
}
