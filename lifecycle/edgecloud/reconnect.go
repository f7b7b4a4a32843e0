package edgecloud

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// Reconnected is the result of an account. The caller sends the orders of Resend again:
// ClusterInsts before AppInsts, but for deletes the other way round.
type Reconnected struct {
	Clusters lifecycle.ReconcileResult[State, ClusterSpec]
	Apps     lifecycle.ReconcileResult[State, AppSpec]
}

// Reconnect takes the account that a CRM sends first when it has connected, under the
// notify id of that connection. Every state in it is a report as for
// [Instances.Receive]. After a crash of the controller or an outage of the network,
// the CRM still works, and reports its progress under the operations of its orders.
//
// A CRM that crashed has no operations (Operation 0). It reports only which instances
// exist. Existence is not an outcome. It counts under two conditions: it is unambiguous (it
// completes a creation, its absence a delete, and neither an update), and the account is
// newer than the operation. No operation starts on the
// cloudlet until the CRM has [Cloudlets.Gathered] its data, so an account before that
// is newer than all operations. In a later account only reports with operations
// count. Without an operation, a transitional or an error state counts too if the
// CRM can report it for the present operation.
//
// A report for which [Instances.Receive] returns [fsm.ErrUnknownState] or
// [lifecycle.ErrInvalid] is [lifecycle.Refused]. The other reports of the account count.
//
// Then the account is compared with the records: [lifecycle.ReconcileResult] has what
// to send again, what is missing, and what the CRM has without a record. The account
// may be sent again.
//
// Errors: [lifecycle.ErrStale] for a connection that is not the current one,
// [lifecycle.ErrNotFound], those of [lifecycle.Manager.Report] and of
// [lifecycle.Reconcile].
func (c *Coordinator) Reconnect(ctx context.Context, cloudlet string, notifyID int64, all Account) (r Reconnected, err error) {
	if _, err = c.Cloudlets.connected(ctx, cloudlet, notifyID); err != nil {
		return r, err
	}
	// AppInsts first: a ClusterInst is removed only after its AppInsts.
	if r.Apps, err = c.Apps.reconnect(ctx, cloudlet, notifyID, all.Apps); err != nil {
		return r, err
	}
	r.Clusters, err = c.Clusters.reconnect(ctx, cloudlet, notifyID, all.Clusters)
	return r, err
}

// connected returns the state of a cloudlet. The error is [lifecycle.ErrStale] if the
// connection with this notify id is not the current one.
func (c *Cloudlets) connected(ctx context.Context, id string, notifyID int64) (CloudletState, error) {
	at, err := c.creations.Get(ctx, id)
	if err != nil {
		return "", err
	}
	if err = requireCurrent(notifyID)(&at.Payload); err == nil && at.State == CloudletOffline {
		err = errDropped(notifyID)
	}
	if err != nil {
		return "", refused("fire", creationKey(id), "", CRM, err)
	}
	return at.State, nil
}

func errDropped(notifyID int64) error {
	return fmt.Errorf("%w: notify id %d has dropped", lifecycle.ErrStale, notifyID)
}

// reconnect takes the account of one kind.
func (in *Instances[T]) reconnect(
	ctx context.Context, cloudlet string, notifyID int64, all []Report,
) (r lifecycle.ReconcileResult[State, T], err error) {
	receive := func(report Report) error {
		v, err := in.Receive(ctx, notifyID, report)
		if errors.Is(err, lifecycle.ErrInvalid) || errors.Is(err, fsm.ErrUnknownState) {
			// The CRM repeats it in every account. It must not prevent the others.
			v, err = lifecycle.Refused, nil
			in.counts[v].Add(1)
		}
		if errors.Is(err, lifecycle.ErrForeign) {
			return nil // the result of Reconcile names the record
		}
		if err == nil {
			r.Outcomes = append(r.Outcomes, lifecycle.PeerOutcome{ID: report.ID, Operation: report.Operation, Verdict: v})
		}
		return err
	}
	reports := map[string]Report{}
	var account []lifecycle.PeerReport[Event]
	for _, report := range all {
		reports[report.ID] = report
		state, _ := report.parse()
		account = append(account, lifecycle.PeerReport[Event]{
			ID: report.ID, Operation: report.Operation, Present: state != NotPresent && state != CreateError,
		})
		if report.Operation == 0 {
			continue
		}
		if err := receive(report); err != nil {
			return r, err
		}
	}
	for rec, err := range in.on(ctx, cloudlet, ordered) {
		switch {
		case errors.Is(err, lifecycle.ErrForeign):
			continue // the result of Reconcile names the record, or that of its ClusterInst
		case err != nil:
			return r, err
		}
		report, named := reports[rec.ID]
		if !named {
			report.State = NotPresent
		}
		found := in.implied(ctx, &rec, &report)
		if found.State == "" {
			continue
		}
		// The bad schedule: an object is missing in the account; it is created, and
		// then its delete starts; the account is not an outcome of that delete. So the
		// record is read before the cloudlet: while the CRM gathers, no operation has
		// started since it has connected.
		state, err := in.coordinator.Cloudlets.connected(ctx, cloudlet, notifyID)
		gathers := state == CloudletInit || state == CloudletInitOk
		if err == nil && gathers {
			err = receive(found)
		}
		if err != nil {
			return r, err
		}
		if gathers && inTransition(found.State) { // the CRM works on it
			account = append(account, lifecycle.PeerReport[Event]{ID: rec.ID, Operation: rec.Operation})
		}
	}
	var failed error
	result, err := lifecycle.Reconcile(ctx, in.m, CRM, account, func(rec Record[T]) bool {
		mine, err := in.here(ctx, &rec.Payload, cloudlet)
		if !errors.Is(err, lifecycle.ErrForeign) { // the ClusterInsts' result names the record
			failed = errors.Join(failed, err)
		}
		// An object whose creation failed is not missing, and a delete that is only
		// prepared is not an order yet.
		return mine && rec.State != CreateError && rec.State != DeletePrepare
	})
	result.Outcomes = r.Outcomes
	return result, errors.Join(err, failed)
}

// implied returns the report that an account implies, without an operation, about the
// present operation of an object. Its state is empty if there is none: the CRM does the
// work again.
//
//	controller               exists        does not exist
//	CreateRequested          Ready         do it
//	Creating                 Ready         do it
//	UpdateRequested          do it         UpdateError
//	Updating                 do it         UpdateError
//	DeleteRequested          do it         NotPresent
//	Deleting                 do it         NotPresent
//
// The existence of an object does not imply that its update was done. The document
// accepts Ready there too; doing the update again has the same result. The CRM reports
// an object that it finds in an error state with that state.
func (in *Instances[T]) implied(ctx context.Context, rec *Record[T], report *Report) Report {
	found := Report{ID: rec.ID, Operation: rec.Operation}
	state, e := report.parse()
	requested := verb(rec.State)
	switch {
	case report.Operation == rec.Operation: // received already
	case state == NotPresent && requested == Update:
		found.State, found.Errors = UpdateError, []string{"the object does not exist"}
	case state == NotPresent && requested == Delete:
		found.State = NotPresent
	case state == NotPresent, report.Operation != 0: // nothing, or about another operation
	case state == Ready && requested == Create:
		found.State, found.Results = Ready, report.Results
	case state == Ready:
	case e != "" && in.mayLeadTo(ctx, rec, state):
		found.State, found.Errors = state, report.Errors
	}
	return found
}
