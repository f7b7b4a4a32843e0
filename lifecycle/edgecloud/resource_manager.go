package edgecloud

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lock"
)

// Platform is what a CRM works on, such as OpenStack or Kubernetes. It is safe for
// concurrent use. After a crash its methods may be called again for the same order:
// work that is done already is not an error.
type Platform interface {
	// Do carries out an order and returns the results, which may be nil, see
	// [Report].Results. Its error is the failure that the CRM reports.
	Do(ctx context.Context, o Order) (results json.RawMessage, err error)
	// Present returns the instances that exist. Keys of other objects are in no account.
	Present(ctx context.Context) ([]lifecycle.Key, error)
}

// ResourceManager is the CRM's side: it carries out orders, once for each operation,
// and reports its progress. Work on a ClusterInst never runs concurrently with work on
// the AppInsts in it; work on different AppInsts does. [NewResourceManager] makes one;
// the zero ResourceManager is not usable. It is safe for concurrent use, must not be
// copied, and starts no goroutine.
//
// Orders may be late, repeated and in any order. An order that is older than the last
// one of its object is refused, also after the object was removed, unless 4096 others were
// removed later. The memory is that of the process: after a crash a new
// ResourceManager has the instances that exist, and no operations. Orders that were sent
// to the one before must not reach it.
type ResourceManager struct {
	platform Platform
	send     func(context.Context, lifecycle.Key, Report) error
	tree     lock.Tree

	mu      sync.Mutex
	last    map[lifecycle.Key]progress // of the last order that was started, by object; guarded by mu
	removed []removal                  // reported removals, oldest first: len <= remember; guarded by mu

	remember int
}

// progress is a report. A removal that was sent is in no account any more.
type progress struct {
	Report
	sent bool
}

type removal struct {
	key       lifecycle.Key
	operation lifecycle.OpID
}

// maxRemembered is how many of the last deletes a [ResourceManager] remembers after it
// has reported them as done. An order from before an earlier delete is taken for a new
// one.
const maxRemembered = 4096

// NewResourceManager returns a CRM that reports its progress by the function send. If
// send returns an error, [ResourceManager.Account] has the report again, and so has the
// answer to a repeated order. The error is [lifecycle.ErrInvalid] without a platform or
// send.
func NewResourceManager(p Platform, send func(context.Context, lifecycle.Key, Report) error) (*ResourceManager, error) {
	if p == nil || send == nil {
		return nil, fmt.Errorf("edgecloud: new resource manager: %w: no platform or no function to send reports", lifecycle.ErrInvalid)
	}
	return &ResourceManager{platform: p, send: send, last: map[lifecycle.Key]progress{}, remember: maxRemembered}, nil
}

// Handle carries out an order, and returns when the outcome is reported. For a known
// order it does no work and reports the known progress again. It waits for running work
// that excludes the order's work.
//
// Errors: [lifecycle.ErrStale] for an order older than a known one of the object,
// [lifecycle.ErrInvalid] for an incomplete order and for one about something else than a
// ClusterInst or an AppInst, those of the function that sends
// reports, and the context's if it ends before the work starts. A failure of the
// platform is not an error of Handle: it is reported. So is a panic, which then continues in
// the caller.
func (r *ResourceManager) Handle(ctx context.Context, o Order) error {
	states, ok := operations[o.Verb]
	if !ok || !isInstance(o.Key) || o.Operation == 0 || o.In == "" || o.Key.ID == "" {
		return fmt.Errorf("%w: an order for %s %q: %q", lifecycle.ErrInvalid, o.Key.Machine, o.Key.ID, o.Verb)
	}
	if known, err := r.repeat(ctx, &o); known {
		return err
	}
	// The lock is held until the outcome is recorded: the next work on the path then
	// finds the platform as the outcome describes it.
	return lock.Do(ctx, &r.tree, lock.Request{Path: o.path(), Mode: lock.X}, &lock.Options{
		Owner: o.Key.Machine + " " + o.Key.ID, Reason: string(o.Verb),
	}, func(ctx context.Context, _ *lock.Grant) (err error) {
		// A later order, or this one sent twice, may have had the lock before.
		if known, err := r.repeat(ctx, &o); known {
			return err
		}
		report := Report{ID: o.Key.ID, Operation: o.Operation, State: states.working}
		started := r.report(ctx, o.Key, report)
		report.State, report.Errors = states.failed, []string{"the platform has panicked"}
		defer func() { err = errors.Join(started, r.report(ctx, o.Key, report)) }()
		results, failed := r.platform.Do(ctx, o)
		if failed != nil {
			report.Errors = []string{failed.Error()}
			return nil
		}
		report.State, report.Errors, report.Results = states.done, nil, results
		return nil
	})
}

// isInstance reports whether a key is that of a ClusterInst or an AppInst.
func isInstance(key lifecycle.Key) bool {
	return key.Machine == ClusterInst.Name() || key.Machine == AppInst.Name()
}

// repeat reports whether an order, or a later one of its object, was started before. It
// sends the progress of the order again. It does not record it, because the order may have
// progressed since the progress was read. The error is [lifecycle.ErrStale] for a later one.
func (r *ResourceManager) repeat(ctx context.Context, o *Order) (known bool, err error) {
	r.mu.Lock()
	last := r.last[o.Key]
	r.mu.Unlock()
	switch {
	case last.Operation > o.Operation:
		return true, fmt.Errorf("%w: %s %q has an order in operation %d", lifecycle.ErrStale, o.Key.Machine, o.Key.ID, last.Operation)
	case last.Operation == o.Operation:
		return true, r.deliver(ctx, o.Key, last.Report)
	}
	return false, nil
}

// report records the progress and sends it.
func (r *ResourceManager) report(ctx context.Context, key lifecycle.Key, report Report) error {
	r.mu.Lock()
	r.last[key] = progress{Report: report}
	r.mu.Unlock()
	return r.deliver(ctx, key, report)
}

// deliver sends a report, without the mutex held, and records whether a removal was sent.
// Of the removals that were sent it forgets the oldest one if there are too many.
func (r *ResourceManager) deliver(ctx context.Context, key lifecycle.Key, report Report) error {
	err := r.send(ctx, key, report)
	if report.State != NotPresent {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last[key].Operation != report.Operation {
		return err // a later order has started
	}
	r.last[key] = progress{report, err == nil}
	if err != nil {
		return err
	}
	if now := (removal{key, report.Operation}); !slices.Contains(r.removed, now) {
		r.removed = append(r.removed, now)
	}
	if len(r.removed) > r.remember {
		oldest := r.removed[0]
		r.removed = r.removed[1:]
		if r.last[oldest.key].Operation == oldest.operation {
			delete(r.last, oldest.key)
		}
	}
	return nil
}

// Account is everything that a CRM has when it reconnects. The CRM does not have what
// is missing in it. It is a plain value.
type Account struct{ Clusters, Apps []Report }

// Account returns what a CRM sends first when it connects: all instances that it has,
// with their operations. An instance without an order since the start of
// the CRM is Ready, without an operation. The error is the platform's.
func (r *ResourceManager) Account(ctx context.Context) (Account, error) {
	r.mu.Lock()
	before := maps.Clone(r.last)
	r.mu.Unlock()
	present, err := r.platform.Present(ctx)
	if err != nil {
		return Account{}, err
	}
	reports := make(map[lifecycle.Key]Report, len(present))
	for _, key := range present {
		if isInstance(key) {
			reports[key] = Report{ID: key.ID, State: Ready}
		}
	}
	r.mu.Lock()
	for key, last := range r.last {
		_, exists := reports[key]
		switch {
		case last.State == NotPresent && last.sent:
		case last.State == Ready && !exists && last.Operation == before[key].Operation && before[key].State == Ready:
			// The instance was lost since. One that was created meanwhile was not.
		default:
			reports[key] = last.Report
		}
	}
	r.mu.Unlock()
	var all Account
	for key, report := range reports {
		if key.Machine == ClusterInst.Name() {
			all.Clusters = append(all.Clusters, report)
		} else {
			all.Apps = append(all.Apps, report)
		}
	}
	byID := func(a, b Report) int { return cmp.Compare(a.ID, b.ID) }
	slices.SortFunc(all.Clusters, byID)
	slices.SortFunc(all.Apps, byID)
	return all, nil
}
