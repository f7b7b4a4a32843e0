package edgecloud

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lock"
)

// Platform is what a CRM works on, such as OpenStack or Kubernetes. It is safe for
// concurrent use. After a crash its methods may be called again for the same order:
// work that is done already is no error.
type Platform interface {
	// Do carries out an order. Its error is the failure that the CRM reports.
	Do(ctx context.Context, o Order) error
	// Present returns the instances that exist.
	Present(ctx context.Context) ([]lifecycle.Key, error)
}

// ResourceManager is the CRM's side: it carries out orders, once for each operation,
// and reports its progress. Work on a ClusterInst never runs concurrently with work on
// the AppInsts in it; work on different AppInsts does. [NewResourceManager] makes one;
// the zero ResourceManager is not usable. It is safe for concurrent use, must not be
// copied, and starts no goroutine.
//
// Orders may be late, repeated and in any order. An order that is older than the last
// one of its object is refused, also after the object was removed (see
// [RemembersGone]). The memory is that of the process: after a crash a new
// ResourceManager knows which instances exist, and no operations. Orders that were sent
// to the one before must not reach it.
type ResourceManager struct {
	platform Platform
	say      func(context.Context, lifecycle.Key, Info) error
	places   lock.Tree
	remember int // how many removed objects

	mu    sync.Mutex
	known map[lifecycle.Key]*asked // the last order for each; guarded by mu
	gone  []*asked                 // a ring of removed objects that were reported: len <= remember
	next  int                      // of gone: the oldest, once it is full
}

// RemembersGone is how many of the last deletes a [ResourceManager] remembers after it
// has reported them as done. An order from before an earlier delete is taken for a new
// one.
const RemembersGone = 4096

// asked is an order and its progress. It is guarded by the mutex of its
// ResourceManager.
type asked struct {
	key      lifecycle.Key
	info     Info
	before   *asked // the order before; nil once this one is begun
	begun    bool   // its work has started, and it cannot be dropped
	void     bool   // it was dropped or forgotten
	reported bool   // the removal was reported
	kept     bool   // it is in the ring of removed objects
}

// NewResourceManager returns a CRM that reports its progress by the function say. If
// say returns an error, [ResourceManager.Account] has the report again, and so has the
// answer to a repeated order. NewResourceManager panics without a platform or say.
func NewResourceManager(p Platform, say func(context.Context, lifecycle.Key, Info) error) *ResourceManager {
	if p == nil || say == nil {
		panic("edgecloud: NewResourceManager needs a platform and a way to say things")
	}
	return &ResourceManager{platform: p, say: say, remember: RemembersGone, known: map[lifecycle.Key]*asked{}}
}

// Handle carries out an order, and returns when the outcome is reported. For a known
// order it does no work and reports the known progress again. It waits for running work
// that excludes the order's work.
//
// Errors: [lifecycle.ErrStale] for an order older than a known one of the object,
// [lifecycle.ErrInvalid] for an incomplete order, those of say, and the context's if it
// ends before the work starts. A failure of the platform is no error of Handle: it is
// reported.
func (r *ResourceManager) Handle(ctx context.Context, o Order) error {
	if o.working() == "" || o.Operation == 0 || o.In == "" || o.Key.ID == "" {
		return fmt.Errorf("%w: an order for %s %q: %q", lifecycle.ErrInvalid, o.Key.Machine, o.Key.ID, o.Verb)
	}
	now, known, mine, err := r.accept(&o)
	if err != nil {
		return err
	}
	if !mine {
		return r.tell(ctx, now, known)
	}
	path, err := o.path()
	if err != nil {
		r.drop(now)
		return fmt.Errorf("%w: %w", lifecycle.ErrInvalid, err)
	}
	// The lock is held until the outcome is noted: the next work on the path then
	// finds the platform as the outcome describes it.
	err = lock.Do(ctx, &r.places, lock.Request{Path: path, Mode: lock.X}, &lock.Options{
		Owner: o.Key.Machine + " " + o.Key.ID, Reason: string(o.Verb),
	}, func(ctx context.Context, _ *lock.Grant) error {
		// A later order may have had the lock before: its result must stay.
		if err := r.begin(now); err != nil {
			return err
		}
		told := r.tell(ctx, now, known)
		after := Info{ID: o.Key.ID, Operation: o.Operation, State: o.done()}
		if err := r.platform.Do(ctx, o); err != nil {
			after.State, after.Errors = o.failed(), []string{err.Error()}
		}
		r.note(now, after)
		return errors.Join(told, r.tell(ctx, now, after))
	})
	if err != nil {
		r.drop(now)
	}
	return err
}

// accept notes an order, and reports whether the caller has to carry it out.
func (r *ResourceManager) accept(o *Order) (now *asked, known Info, mine bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.known[o.Key]
	switch {
	case last != nil && last.info.Operation > o.Operation:
		return last, last.info, false, fmt.Errorf("%w: %s %q is asked for in operation %d", lifecycle.ErrStale, o.Key.Machine, o.Key.ID, last.info.Operation)
	case last != nil && last.info.Operation == o.Operation:
		return last, last.info, false, nil
	}
	now = &asked{key: o.Key, info: Info{ID: o.Key.ID, Operation: o.Operation, State: o.working()}, before: last}
	r.known[o.Key] = now
	return now, now.info, true, nil
}

// begin starts the order that has the lock, unless a later one has come.
func (r *ResourceManager) begin(now *asked) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known[now.key] != now {
		return fmt.Errorf("%w: %s %q was asked for in another operation since", lifecycle.ErrStale, now.key.Machine, now.key.ID)
	}
	now.before, now.begun = nil, true
	return nil
}

// note keeps an outcome, also if a later order has come, because that may be dropped.
func (r *ResourceManager) note(now *asked, after Info) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now.info = after
}

// drop removes an order that was not begun, because its context ended while it waited
// or a later order was faster. The order before it is then the known one again. The bad
// schedule without it: an object is deleted, the order to create it again is dropped,
// and an order from before the delete is taken for a new one.
func (r *ResourceManager) drop(now *asked) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.begun {
		return
	}
	now.void = true
	if r.known[now.key] != now {
		return // a later drop skips it
	}
	last := now.before
	for last != nil && last.void {
		last = last.before
	}
	if last == nil {
		delete(r.known, now.key)
		return
	}
	r.known[now.key] = last
}

// tell reports the progress, without a lock held. The last removed objects whose
// removal was reported are remembered.
func (r *ResourceManager) tell(ctx context.Context, now *asked, info Info) error {
	err := r.say(ctx, now.key, info)
	if info.State != NotPresent {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now.reported = err == nil
	if err != nil || now.kept || now.void {
		return err
	}
	now.kept = true
	if len(r.gone) < r.remember {
		r.gone = append(r.gone, now)
		return nil
	}
	oldest := r.gone[r.next]
	r.gone[r.next] = now
	r.next = (r.next + 1) % r.remember
	oldest.void = true // the drop of a later order that waits skips it
	if r.known[oldest.key] == oldest {
		delete(r.known, oldest.key)
	}
	return nil
}

// Account returns what a CRM sends first when it connects: all instances that it has,
// with the operations that it knows. An instance without an order since the start of
// the CRM is Ready, without an operation. The error is the platform's.
func (r *ResourceManager) Account(ctx context.Context) (Account, error) {
	var all Account
	there, err := r.platform.Present(ctx)
	if err != nil {
		return all, err
	}
	present := make(map[lifecycle.Key]bool, len(there))
	for _, k := range there {
		present[k] = true
	}
	r.mu.Lock()
	infos := make(map[lifecycle.Key]Info, len(r.known)+len(there))
	for k, a := range r.known {
		if a.reported || a.info.State == Ready && !present[k] {
			continue // the removal was reported, or the instance was lost since
		}
		infos[k] = a.info
	}
	r.mu.Unlock()
	for _, k := range there {
		if _, ok := infos[k]; !ok {
			infos[k] = Info{ID: k.ID, State: Ready}
		}
	}
	for k, info := range infos {
		if k.Machine == ClusterInst.Name() {
			all.Clusters = append(all.Clusters, info)
		} else {
			all.Apps = append(all.Apps, info)
		}
	}
	byID := func(a, b Info) int { return strings.Compare(a.ID, b.ID) }
	slices.SortFunc(all.Clusters, byID)
	slices.SortFunc(all.Apps, byID)
	return all, nil
}

// path returns the path that the work locks: a ClusterInst with all AppInsts in it, or
// one AppInst in it.
func (o *Order) path() (lock.Path, error) {
	path, err := lock.Root().Child("c" + url.PathEscape(o.In))
	if err == nil && o.Key.Machine != ClusterInst.Name() {
		path, err = path.Child("a" + url.PathEscape(o.Key.ID))
	}
	return path, err
}
