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
// It has no memory but its own: one that is started after a crash knows what is
// there, and no operations.
type ResourceManager struct {
	platform Platform
	say      func(context.Context, lifecycle.Key, Info) error
	places   lock.Tree

	mu    sync.Mutex
	known map[lifecycle.Key]Info // by the last order; guarded by mu
}

// NewResourceManager returns a CRM that tells what it does by say. What say
// returns an error for is told again by [ResourceManager.Account], or when the
// order comes again. It panics without platform or say.
func NewResourceManager(p Platform, say func(context.Context, lifecycle.Key, Info) error) *ResourceManager {
	if p == nil || say == nil {
		panic("edgecloud: NewResourceManager needs a platform and a way to say things")
	}
	return &ResourceManager{platform: p, say: say, known: map[lifecycle.Key]Info{}}
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
	known, mine, err := r.accept(&o)
	if err != nil {
		return err
	}
	if !mine {
		return r.tell(ctx, o.Key, known)
	}
	path, err := o.path()
	if err != nil {
		r.forget(o.Key, known)
		return fmt.Errorf("%w: %w", lifecycle.ErrInvalid, err)
	}
	// Held until the outcome is known: whoever comes next finds the world as the
	// outcome says.
	err = lock.Do(ctx, &r.places, lock.Request{Path: path, Mode: lock.X}, &lock.Options{
		Owner: o.Key.Machine + " " + o.Key.ID, Reason: string(o.Verb),
	}, func(ctx context.Context, _ *lock.Held) error {
		// A later order may have been faster to the lock: what it has done is not
		// to be done otherwise after it.
		if err := r.superseded(&o); err != nil {
			return err
		}
		told := r.tell(ctx, o.Key, known)
		after := Info{ID: o.Key.ID, Operation: o.Operation, State: o.done()}
		if err := r.platform.Do(ctx, o); err != nil {
			after.State, after.Errors = o.failed(), []string{err.Error()}
		}
		r.note(o.Key, after)
		return errors.Join(told, r.tell(ctx, o.Key, after))
	})
	if err != nil && ctx.Err() != nil {
		r.forget(o.Key, known)
	}
	return err
}

// accept notes an order, and reports whether it is to be done by the caller.
func (r *ResourceManager) accept(o *Order) (known Info, mine bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, ok := r.known[o.Key]
	switch {
	case ok && known.Operation > o.Operation:
		return known, false, fmt.Errorf("%w: %s %q is asked for in operation %d", lifecycle.ErrStale, o.Key.Machine, o.Key.ID, known.Operation)
	case ok && known.Operation == o.Operation:
		return known, false, nil
	}
	known = Info{ID: o.Key.ID, Operation: o.Operation, State: o.working()}
	r.known[o.Key] = known
	return known, true, nil
}

func (r *ResourceManager) superseded(o *Order) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.known[o.Key]; now.Operation != o.Operation {
		return fmt.Errorf("%w: %s %q was asked for in another operation since", lifecycle.ErrStale, o.Key.Machine, o.Key.ID)
	}
	return nil
}

// note keeps an outcome, unless a later order has come meanwhile.
func (r *ResourceManager) note(k lifecycle.Key, after Info) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known[k].Operation == after.Operation {
		r.known[k] = after
	}
}

// forget takes an order back that was not done: its context ended while it
// waited. It is still in the state in which it was noted.
func (r *ResourceManager) forget(k lifecycle.Key, was Info) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.known[k]; now.Operation == was.Operation && now.State == was.State {
		delete(r.known, k)
	}
}

// tell says what is known, without a lock. What is gone, and was heard to be, is
// forgotten.
func (r *ResourceManager) tell(ctx context.Context, k lifecycle.Key, info Info) error {
	err := r.say(ctx, k, info)
	if err != nil || info.State != NotPresent {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known[k].Operation == info.Operation {
		delete(r.known, k)
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
	r.mu.Lock()
	infos := make(map[lifecycle.Key]Info, len(r.known)+len(there))
	for k, info := range r.known {
		if info.State == Ready && !slices.Contains(there, k) {
			continue // it was lost since
		}
		infos[k] = info
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
