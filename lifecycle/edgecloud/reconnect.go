package edgecloud

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/lifecycle"
)

// Account is everything that a CRM has when it reconnects. The CRM does not have what
// is missing in it. It is a plain value.
type Account struct{ Clusters, Apps []Info }

// Reconnected is the result of an account. The caller sends the orders of Resend again:
// ClusterInsts before AppInsts, but for deletes the other way round.
type Reconnected struct {
	Clusters lifecycle.ReconcileResult[State, ClusterSpec]
	Apps     lifecycle.ReconcileResult[State, AppSpec]
}

// Reconnect takes the account that a CRM sends first when it has connected, under the
// notify id of that connection. Every state in it is a message as for
// [Instances.Receive]. After a crash of the controller or an outage of the network,
// the CRM still works, and reports its progress under the operations of its orders.
//
// A CRM that crashed knows no operations (Operation 0), only which instances exist.
// Existence is no outcome. It counts under two conditions: it is unambiguous (see
// [Resolve]), and the account is newer than the operation. No operation starts on the
// cloudlet until the CRM has [Cloudlets.Gathered] its data, so an account before that
// is newer than all operations. In a later account only messages with operations
// count. Without an operation, a transitional or an error state counts too if the
// CRM can report it for the present operation.
//
// Then the account is compared with the records: [lifecycle.ReconcileResult] has what
// to send again, what is missing, and what the CRM has without a record. The account
// may be sent again.
//
// Errors: [lifecycle.ErrStale] for a connection that is not the current one,
// [lifecycle.ErrNotFound], those of [Instances.Receive] and of
// [lifecycle.Reconcile].
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

// gathering reports whether the CRM of a connection has not gathered its data yet. The
// error is [lifecycle.ErrStale] if the connection is not the current one.
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

// reconnect takes the account of one kind. The function its reports whether an
// instance is on the cloudlet.
func reconnect[T any](ctx context.Context, in *Instances[T], cloudlet string, notifyID int64, all []Info, its func(*T) (bool, error)) (lifecycle.ReconcileResult[State, T], error) {
	var outcomes []lifecycle.PeerOutcome
	receive := func(info Info) error {
		v, err := in.Receive(ctx, info)
		switch {
		case err == nil:
			outcomes = append(outcomes, lifecycle.PeerOutcome{ID: info.ID, Operation: info.Operation, Verdict: v})
		case errors.Is(err, lifecycle.ErrForeign):
			return nil // the result of Reconcile names the record
		}
		return err
	}
	var said []lifecycle.PeerReport[Event]
	known := map[string]*Info{}
	for i := range all {
		info := &all[i]
		known[info.ID] = info
		if info.Operation != 0 {
			if err := receive(*info); err != nil {
				return lifecycle.ReconcileResult[State, T]{Outcomes: outcomes}, err
			}
		}
		said = append(said, lifecycle.PeerReport[Event]{
			ID: info.ID, Operation: info.Operation, Present: info.present(),
		})
	}
	var failed error
	mine := func(rec Record[T]) bool {
		here, err := its(&rec.Payload)
		failed = errors.Join(failed, err)
		return here
	}
	working := map[string]bool{} // ids that the CRM works on, without an operation
	for rec, err := range in.m.All(ctx, lifecycle.Select[State]{States: transitional}) {
		switch {
		case errors.Is(err, lifecycle.ErrForeign):
			continue // as above
		case err != nil:
			return lifecycle.ReconcileResult[State, T]{Outcomes: outcomes}, err
		case !mine(rec):
			continue
		}
		found := in.finds(ctx, &rec, known[rec.ID])
		if found.State == "" {
			continue
		}
		// The bad schedule: an object is missing in the account; it is created, and
		// then its delete starts; the account is no outcome of that delete. So the
		// record is read before the cloudlet: while the CRM gathers, no operation has
		// started since it has connected.
		gathers, err := in.c.Cloudlets.gathering(ctx, cloudlet, notifyID)
		if err == nil && gathers {
			working[rec.ID] = inTransition(found.State)
			err = receive(found)
		}
		if err != nil {
			return lifecycle.ReconcileResult[State, T]{Outcomes: outcomes}, err
		}
	}
	r, err := lifecycle.Reconcile(ctx, in.m, CRM, said, mine)
	r.Outcomes = outcomes
	// An object whose creation failed is not missing.
	r.Missing = slices.DeleteFunc(r.Missing, func(rec Record[T]) bool { return rec.State == CreateError })
	// A delete that is only prepared is no order yet.
	r.Resend = slices.DeleteFunc(r.Resend, func(rec Record[T]) bool { return rec.State == DeletePrepare || working[rec.ID] })
	return r, errors.Join(err, failed)
}

// finds returns the message that an account implies, without an operation, about the
// present operation of an object. Its state is empty if there is none. The info is nil
// for an object that the account does not name.
func (in *Instances[T]) finds(ctx context.Context, rec *Record[T], info *Info) Info {
	found := Info{ID: rec.ID, Operation: rec.Operation}
	switch {
	case info != nil && info.Operation == rec.Operation:
	case info == nil || info.machineState() == NotPresent:
		found.State, _ = Resolve(rec.State, false)
		found.Errors = lost(found.State)
	case info.Operation != 0: // the message is about another operation
	case info.State == Ready:
		found.State, _ = Resolve(rec.State, true)
	default:
		if e, ok := info.event(); ok && e != Done && in.mayLeadTo(ctx, rec, info.State) {
			found.State, found.Errors = info.State, info.Errors
		}
	}
	return found
}

func (i *Info) present() bool { return i.machineState() != NotPresent && i.State != CreateError }

func lost(reported State) []string {
	if reported != UpdateError {
		return nil
	}
	return []string{"the object is gone"}
}

// Resolve returns the state that a CRM without operations reports about an object that
// the controller has in a state and that does or does not exist on the cloudlet. An
// empty state and true: the CRM does the work again. False: the CRM has no order.
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
// The existence of an object does not imply that its update was done. The document
// accepts Ready there too; doing the update again has the same result. The CRM reports
// an object that it finds in an error state with that state.
func Resolve(controller State, there bool) (reported State, asked bool) {
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

// String returns one line.
func (i Info) String() string {
	text := fmt.Sprintf("%s is %s", i.ID, i.State)
	if i.Operation != 0 {
		text += fmt.Sprintf(" in operation %d", i.Operation)
	}
	return text
}
