package edgecloud

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/lifecycle"
)

// Account is all that a CRM has when it reconnects. What it does not name it does
// not have. It is a plain value.
type Account struct{ Clusters, Apps []Info }

// Reconnected is what an account came to. The CRM is to be asked again for what
// is in Resend: ClusterInsts before AppInsts, but for deletes the other way round.
type Reconnected struct {
	Clusters lifecycle.Reconciled[State, ClusterSpec]
	Apps     lifecycle.Reconciled[State, AppSpec]
}

// Reconnect takes the account that a CRM gives first when it has connected, under
// the notify id of that connection. Every state that it names is a message as for
// [Instances.Receive], so that a controller that crashed, or a network that was
// away, is nothing special: the threads of the CRM still run, and say how far they
// are under the operations they were asked for.
//
// A CRM that crashed has no threads and knows no operations (Operation 0), only
// what is there. Being there is not an outcome, and counts only where it leaves no
// doubt (see [Resolve]) and is no older than the operation: until the CRM has
// [Cloudlets.Gathered] nothing begins on the cloudlet, and so an account that
// comes before that is newer than every operation there. In one that comes later
// only operations count. Without an operation a transitional or an error state
// counts, too, if it is one that the CRM could say of what it was asked for; any
// other says nothing.
//
// Then the account is compared with the records: see [lifecycle.Reconciled] for
// what is to be sent again, what is missing, and what nobody has asked for. It may
// be given again.
//
// Errors: [lifecycle.ErrStale] for a connection that does not count any more,
// [lifecycle.ErrNotFound], those of [Instances.Receive] and of
// [lifecycle.Manager.Reconcile].
func (c *Coordinator) Reconnect(ctx context.Context, cloudlet string, notifyID int64, all Account) (Reconnected, error) {
	var r Reconnected
	if _, err := c.Cloudlets.gathering(ctx, cloudlet, notifyID); err != nil {
		return r, err
	}
	// AppInsts first: what of them is gone is gone before its ClusterInst.
	var err error
	if r.Apps, err = reconnect(ctx, c.Apps, cloudlet, notifyID, all.Apps, c.appsOn(ctx, cloudlet)); err != nil {
		return r, err
	}
	r.Clusters, err = reconnect(ctx, c.Clusters, cloudlet, notifyID, all.Clusters, func(s *ClusterSpec) (bool, error) {
		return s.Cloudlet == cloudlet, nil
	})
	return r, err
}

// gathering reports whether the CRM of a connection has not gathered its data yet.
// The error is [lifecycle.ErrStale] if it is not the cloudlet's any more.
func (c *Cloudlets) gathering(ctx context.Context, id string, notifyID int64) (bool, error) {
	at, err := c.start.Get(ctx, id)
	if err != nil {
		return false, err
	}
	err = of(notifyID)(&at.Payload)
	if err == nil && at.State == CloudletOffline {
		err = fmt.Errorf("%w: notify id %d has dropped", lifecycle.ErrStale, notifyID)
	}
	if err != nil {
		return false, c.refused(id, "", CRM, err)
	}
	return at.State == CloudletInit || at.State == CloudletInitOk, nil
}

// reconnect takes the account of one kind. Its function says whether an instance
// is on the cloudlet.
func reconnect[T any](ctx context.Context, in *Instances[T], cloudlet string, notifyID int64, all []Info, its func(*T) (bool, error)) (lifecycle.Reconciled[State, T], error) {
	var settled []lifecycle.Settled
	receive := func(info Info) error {
		v, err := in.Receive(ctx, info)
		switch {
		case err == nil:
			settled = append(settled, lifecycle.Settled{ID: info.ID, Operation: info.Operation, Verdict: v})
		case errors.Is(err, lifecycle.ErrForeign):
			return nil // one record that nobody here can read; Reconcile names it
		}
		return err
	}
	var said []lifecycle.Said[Event]
	known := map[string]*Info{}
	for i := range all {
		info := &all[i]
		known[info.ID] = info
		if info.Operation != 0 {
			if err := receive(*info); err != nil {
				return lifecycle.Reconciled[State, T]{Settled: settled}, err
			}
		}
		said = append(said, lifecycle.Said[Event]{
			ID: info.ID, Operation: info.Operation, Present: info.present(),
		})
	}
	var failed error
	mine := func(rec Record[T]) bool {
		here, err := its(&rec.Payload)
		failed = errors.Join(failed, err)
		return here
	}
	at := map[string]bool{} // what the CRM says it is at, of no operation
	for rec, err := range in.m.All(ctx, lifecycle.Select[State]{States: transitional}) {
		switch {
		case errors.Is(err, lifecycle.ErrForeign):
			continue // as above
		case err != nil:
			return lifecycle.Reconciled[State, T]{Settled: settled}, err
		case !mine(rec):
			continue
		}
		says := in.finds(ctx, &rec, known[rec.ID])
		if says.State == "" {
			continue
		}
		// The bad schedule: the account says that an object is not there; it is
		// created, and then deleted: not being there is no outcome of that delete.
		// So the record is read first, and then the cloudlet: while it gathers,
		// nothing has begun since this CRM has connected.
		gathers, err := in.c.Cloudlets.gathering(ctx, cloudlet, notifyID)
		if err == nil && gathers {
			at[rec.ID] = inTransition(says.State)
			err = receive(says)
		}
		if err != nil {
			return lifecycle.Reconciled[State, T]{Settled: settled}, err
		}
	}
	r, err := in.m.Reconcile(ctx, CRM, said, mine)
	r.Settled = settled
	// What failed to be created is not missing.
	r.Missing = slices.DeleteFunc(r.Missing, func(rec Record[T]) bool { return rec.State == CreateError })
	// What is only prepared was not asked for yet, and may not be after all.
	r.Resend = slices.DeleteFunc(r.Resend, func(rec Record[T]) bool { return rec.State == DeletePrepare || at[rec.ID] })
	return r, errors.Join(err, failed)
}

// finds is what an account has to say, besides the operations that it names, about
// what the CRM was asked for. Its state is empty for nothing. The info is nil for an
// object that the account does not name.
func (in *Instances[T]) finds(ctx context.Context, rec *Record[T], info *Info) Info {
	found := Info{ID: rec.ID, Operation: rec.Operation}
	switch {
	case info != nil && info.Operation == rec.Operation:
	case info == nil || info.says() == NotPresent:
		found.State, _ = Resolve(rec.State, false)
		found.Errors = lost(found.State)
	case info.Operation != 0: // of another one
	case info.State == Ready:
		found.State, _ = Resolve(rec.State, true)
	default:
		if e, ok := info.event(); ok && e != Done && in.mayLeadTo(ctx, rec, info.State) {
			found.State, found.Errors = info.State, info.Errors
		}
	}
	return found
}

func (i *Info) present() bool { return i.says() != NotPresent && i.State != CreateError }

func lost(says State) []string {
	if says != UpdateError {
		return nil
	}
	return []string{"the object is gone"}
}

// Resolve says what a CRM that knows nothing but what is there has to say about
// an object that the controller has in a state: the state that settles it. An
// empty state and true: it is to do what is asked for once more. False: nothing,
// because nothing is asked of it.
//
//	controller               there         not there
//	CreateRequested          Ready         do it
//	Creating                 Ready         do it
//	UpdateRequested          do it         UpdateError
//	Updating                 do it         UpdateError
//	DeleteRequested          do it         NotPresent
//	Deleting                 do it         NotPresent
//	all others               nothing       nothing
//
// That an object is there does not say that its update was done. The document
// takes Ready for an answer there too; to do it again is the same in the end. What
// the CRM finds in an error is neither: it says that state.
func Resolve(controller State, there bool) (says State, asked bool) {
	switch controller {
	case CreateRequested, Creating:
		if there {
			return Ready, true
		}
		return "", true
	case UpdateRequested, Updating:
		if !there {
			return UpdateError, true
		}
		return "", true
	case DeleteRequested, Deleting:
		if !there {
			return NotPresent, true
		}
		return "", true
	}
	return "", false
}

// String tells a message in a line.
func (i Info) String() string {
	text := fmt.Sprintf("%s is %s", i.ID, i.State)
	if i.Operation != 0 {
		text += fmt.Sprintf(" in operation %d", i.Operation)
	}
	return text
}
