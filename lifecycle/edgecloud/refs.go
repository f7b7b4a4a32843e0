package edgecloud

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// refs are the instances that were ever begun on a cloudlet, or in a ClusterInst;
// some may be gone. Whatever begins a change of an instance writes the refs of
// what the instance depends on in the same commit, and whoever needs instances to
// rest looks at them between reading the refs and writing them.
//
// The bad schedule without it: an update of a ClusterInst looks and finds no
// AppInst in transition; one is created, because the ClusterInst is still Ready;
// the update is committed. With it, one of the two has read refs that the other
// has written since, and looks again.
type refs struct {
	Members []lifecycle.Key
	Unmade  []lifecycle.Key // of these, those that were never Ready and are deleted all the same
	// What is to be done if the CRM gives up what was asked for last, where it is
	// not to be undone: nothing, or to take it for done. It is written with the
	// request, because who asked may be gone by then.
	Kept    []lifecycle.Key `json:",omitempty"`
	Ignored []lifecycle.Key `json:",omitempty"`
}

type (
	refState string
	refEvent string
)

const (
	refsNone   refState = "None"
	refsKept   refState = "Kept"
	refsWrite  refEvent = "Write"
	refsForget refEvent = "Forget"
)

type refsManager = lifecycle.Manager[refState, refEvent, refs]

var (
	cloudletRefs = refsMachine("cloudlet-refs")
	clusterRefs  = refsMachine("clusterinst-refs")
)

func refsMachine(name string) *fsm.Machine[refState, refEvent, refs] {
	return fsm.Must[refs](fsm.Spec[refState, refEvent]{
		Name: name, Title: "Edge cloud: who depends on an object", Initial: refsNone,
		Actors: []fsm.Actor{Controller},
		States: []fsm.State[refState]{{Name: refsNone, Kind: fsm.Absent}, {Name: refsKept}},
		Rows: fsm.Rows(
			fsm.Move(refsNone, refsWrite, refsKept).By(Controller),
			fsm.Move(refsKept, refsWrite, refsKept).By(Controller),
			fsm.Move(refsKept, refsForget, refsNone).By(Controller),
		),
	})
}

// look is asked about the members of refs, and returns those to keep.
type look func(members []lifecycle.Key) ([]lifecycle.Key, error)

// touching is the part of a commit that writes the refs of a parent. The look
// happens between read and write, and edit, if there is one, after it.
func touching(ctx context.Context, m *refsManager, parent string, looks look, edit func(*refs)) (lifecycle.AnyPart, error) {
	change := &lifecycle.Change[refs]{Edit: func(r *refs) error {
		if looks != nil {
			kept, err := looks(r.Members)
			if err != nil {
				return err
			}
			r.Members = kept
			for _, some := range []*[]lifecycle.Key{&r.Unmade, &r.Kept, &r.Ignored} {
				*some = slices.DeleteFunc(*some, func(u lifecycle.Key) bool { return !slices.Contains(kept, u) })
			}
		}
		if edit != nil {
			edit(r)
		}
		return nil
	}}
	_, err := m.Get(ctx, parent)
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
		return m.Creating(parent, refsWrite, Controller, refs{}, change), nil
	case err != nil:
		return nil, err
	}
	return m.Firing(parent, refsWrite, Controller, change), nil
}

// joins adds a member, and what this call wants to be done if it fails. One that
// is made anew may be undone to Ready again.
func joins(k lifecycle.Key, anew bool, call *Call) func(*refs) {
	return func(r *refs) {
		note(&r.Members, k, true)
		if anew {
			note(&r.Unmade, k, false)
		}
		note(&r.Kept, k, call.keeps())
		note(&r.Ignored, k, call.has(IgnoreCRMErrors))
	}
}

// unmakes notes that a member was never made.
func unmakes(k lifecycle.Key) func(*refs) {
	return func(r *refs) { note(&r.Unmade, k, true) }
}

// note has a key in a list, or not.
func note(list *[]lifecycle.Key, k lifecycle.Key, in bool) {
	switch there := slices.Contains(*list, k); {
	case in && !there:
		*list = append(*list, k)
	case !in && there:
		*list = slices.DeleteFunc(*list, func(other lifecycle.Key) bool { return other == k })
	}
}

// errMoved is a look that found something else than what the request was made
// for: it is made again.
var errMoved = errors.New("edgecloud: what the request depends on has moved")

// overtaken reports whether a commit failed only because somebody else wrote
// refs first, or moved the cloudlet. Whoever loses is not wrong, and tries again;
// somebody has got on.
func overtaken(err error) bool {
	if errors.Is(err, errMoved) {
		return true
	}
	e, ok := errors.AsType[*lifecycle.Error](err)
	if !ok || !slices.Contains([]string{cloudletRefs.Name(), clusterRefs.Name(), CloudletCreate.Name()}, e.Machine) {
		return false
	}
	moved := errors.Is(err, lifecycle.ErrConflict) || errors.Is(err, lifecycle.ErrNotFound)
	return moved && !errors.Is(err, lifecycle.ErrUnknownOutcome)
}

// together commits parts until nobody is faster. Parts are used once, so they are
// made for every attempt.
func together(ctx context.Context, parts func() ([]lifecycle.AnyPart, error)) error {
	for {
		list, err := parts()
		if err == nil {
			err = lifecycle.Together(ctx, list...)
		}
		if !overtaken(err) {
			return told(err)
		}
		if ctx.Err() != nil {
			return lifecycle.Ended(ctx)
		}
	}
}

// told takes the refusal of a look out of what wraps it: refs are nothing that a
// user knows.
func told(err error) error {
	if used, ok := errors.AsType[*InUseError](err); ok {
		return used
	}
	return err
}

// ErrInUse: other objects need the object, or are in transition in it; they are
// to go, or to rest, first. [InUseError] names them.
var ErrInUse = errors.New("edgecloud: in use")

// InUseError says what keeps an object from being changed. It matches [ErrInUse]
// and [lifecycle.ErrPrecondition]. It is a plain value.
type InUseError struct {
	Key  lifecycle.Key // of the object
	Verb Event         // or "Upgrade", for a cloudlet
	By   []Referrer    // in the order in which they came
}

// Referrer is an instance and its state.
type Referrer struct {
	Key   lifecycle.Key
	State State
}

// Error names the instances.
func (e *InUseError) Error() string {
	by := make([]string, len(e.By))
	for i, r := range e.By {
		by[i] = fmt.Sprintf("%s %q is %s", r.Key.Machine, r.Key.ID, r.State)
	}
	return fmt.Sprintf("%v: %s %q: %s: %s", ErrInUse, e.Key.Machine, e.Key.ID, e.Verb, strings.Join(by, ", "))
}

// Unwrap returns [ErrInUse] and [lifecycle.ErrPrecondition].
func (e *InUseError) Unwrap() []error { return []error{ErrInUse, lifecycle.ErrPrecondition} }

// existing returns the members that there still are, and those for which the
// error names them.
func (c *Coordinator) existing(ctx context.Context, members []lifecycle.Key, names func(State) bool) (kept []lifecycle.Key, by []Referrer, err error) {
	for _, k := range members {
		rec, err := c.store.Get(ctx, k)
		if err != nil {
			return nil, nil, err
		}
		if !rec.Exists() {
			continue
		}
		kept = append(kept, k)
		if s := State(rec.State); names != nil && names(s) {
			by = append(by, Referrer{k, s})
		}
	}
	return kept, by, nil
}

// atRest is the look that refuses a change while a member is in transition.
func (c *Coordinator) atRest(ctx context.Context, of lifecycle.Key, verb Event) look {
	return func(members []lifecycle.Key) ([]lifecycle.Key, error) {
		kept, by, err := c.existing(ctx, members, inTransition)
		if err == nil && len(by) > 0 {
			err = &InUseError{of, verb, by}
		}
		return kept, err
	}
}

func inTransition(s State) bool { return !ClusterInst.Kind(s).Resting() }

// prune is the look of who joins: now and then it drops the members that are
// gone. At every power of two, it costs each member a constant number of reads.
func (c *Coordinator) prune(ctx context.Context) look {
	return func(members []lifecycle.Key) ([]lifecycle.Key, error) {
		if n := len(members); n < 8 || n&(n-1) != 0 {
			return members, nil
		}
		kept, _, err := c.existing(ctx, members, nil)
		return kept, err
	}
}
