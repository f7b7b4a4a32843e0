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

// Platform is what a CRM works on, such as OpenStack or Kubernetes. It is safe
// for concurrent use. Its methods may be called again for the same order, after a
// crash: what is done already is no error.
type Platform interface {
	// Do does what is asked for. An error is what the CRM gives up with.
	Do(ctx context.Context, o Order) error
	// Present returns the instances that are there.
	Present(ctx context.Context) ([]lifecycle.Key, error)
}

// ResourceManager is the CRM's side: it does what it is asked for, once for each
// operation, and says how far it is. Work on one ClusterInst and on the AppInsts
// in it never runs in parallel with a change of that ClusterInst, whatever is
// asked; work on different AppInsts does. [NewResourceManager] makes one; the zero
// ResourceManager is not usable. It is safe for concurrent use, must not be
// copied, and starts no goroutine.
//
// Orders may come late, repeated and in any order: one that is older than the last
// of its object is refused, also when the object is gone (see [RemembersGone]). It
// has no memory but its own: one that is started after a crash knows what is
// there, and no operations. What was sent to its predecessor must not reach it.
type ResourceManager struct {
	platform Platform
	say      func(context.Context, lifecycle.Key, Info) error
	places   lock.Tree
	remember int // how many that are gone

	mu    sync.Mutex
	known map[lifecycle.Key]*asked // the last order for each; guarded by mu
	gone  []*asked                 // a ring of those that are gone and were told to be: len <= remember
	next  int                      // of gone: the oldest, once it is full
}

// RemembersGone is how many deletes a [ResourceManager] remembers, the last ones,
// after it has told that they are done. An order from before a delete that comes
// after as many others have ended is taken for a new one.
const RemembersGone = 4096

// asked is an order and how far it is. It is guarded by the mutex of its
// ResourceManager.
type asked struct {
	key    lifecycle.Key
	info   Info
	before *asked // what was known until then, until it is begun
	begun  bool   // nothing takes it back
	void   bool   // it counts no more: it was never begun, or is forgotten
	told   bool   // to be gone, and that was heard
	kept   bool   // in the ring of what is gone
}

// NewResourceManager returns a CRM that tells what it does by say. What say
// returns an error for is told again by [ResourceManager.Account], or when the
// order comes again. It panics without platform or say.
func NewResourceManager(p Platform, say func(context.Context, lifecycle.Key, Info) error) *ResourceManager {
	if p == nil || say == nil {
		panic("edgecloud: NewResourceManager needs a platform and a way to say things")
	}
	return &ResourceManager{platform: p, say: say, remember: RemembersGone, known: map[lifecycle.Key]*asked{}}
}

// Handle does what is asked for, and returns when that has ended and is said. An
// order that is known is not done again: what is known of it is said again. It
// waits while something runs that it depends on.
//
// Errors: [lifecycle.ErrStale] for an order older than one it knows,
// [lifecycle.ErrInvalid] for one that asks for nothing, those of say, and the
// context's if it ends before the work begins. That the platform failed is no
// error of Handle: it is said.
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
	// Held until the outcome is known: whoever comes next finds the world as the
	// outcome says.
	err = lock.Do(ctx, &r.places, lock.Request{Path: path, Mode: lock.X}, &lock.Options{
		Owner: o.Key.Machine + " " + o.Key.ID, Reason: string(o.Verb),
	}, func(ctx context.Context, _ *lock.Held) error {
		// A later order may have been faster to the lock: what it has done is not
		// to be done otherwise after it.
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

// accept notes an order, and reports whether it is to be done by the caller.
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

// begin is an order that has the lock: it is to be done, unless a later one came.
func (r *ResourceManager) begin(now *asked) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known[now.key] != now {
		return fmt.Errorf("%w: %s %q was asked for in another operation since", lifecycle.ErrStale, now.key.Machine, now.key.ID)
	}
	now.before, now.begun = nil, true
	return nil
}

// note keeps an outcome, also if a later order has come meanwhile, which may come
// to nothing.
func (r *ResourceManager) note(now *asked, after Info) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now.info = after
}

// drop takes an order back if it was not begun, because its context ended while it
// waited or a later one was faster: what was known before it is known again. The
// bad schedule without: an object is deleted, the order to make it anew is given
// up, and one from before the delete is taken for new.
func (r *ResourceManager) drop(now *asked) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.begun {
		return
	}
	now.void = true
	if r.known[now.key] != now {
		return // whoever is dropped after it passes it over
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

// tell says what is known, without a lock. What is gone, and was heard to be, is
// remembered among the last ones.
func (r *ResourceManager) tell(ctx context.Context, now *asked, info Info) error {
	err := r.say(ctx, now.key, info)
	if info.State != NotPresent {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now.told = err == nil
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
	oldest.void = true // a later order that waits does not bring it back
	if r.known[oldest.key] == oldest {
		delete(r.known, oldest.key)
	}
	return nil
}

// Account is what a CRM says first when it connects: all that it has, with the
// operations that it knows of. What is there and was not asked for since it
// started is Ready, of no operation. The error is the platform's.
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
		if a.told || a.info.State == Ready && !present[k] {
			continue // the other side knows, or it was lost since
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
		if k.Machine == ClusterInst.Table().Name {
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

// path is what the work locks: a ClusterInst with all that is in it, or one
// AppInst in it.
func (o *Order) path() (lock.Path, error) {
	path, err := lock.Root().Child("c" + url.PathEscape(o.In))
	if err == nil && o.Key.Machine != ClusterInst.Table().Name {
		path, err = path.Child("a" + url.PathEscape(o.Key.ID))
	}
	return path, err
}
