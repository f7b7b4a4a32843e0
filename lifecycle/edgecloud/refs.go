package edgecloud

import (
	"context"
	"errors"
	"slices"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// The refs of a cloudlet, and of a ClusterInst, are a record without content.
// Whatever begins a change of an instance writes the refs of what the instance
// depends on in the same commit, and whoever needs instances to rest looks at them
// between reading the refs and writing them.
//
// The bad schedule without it: an update of a ClusterInst looks and finds no
// AppInst in transition; one is created, because the ClusterInst is still Ready;
// the update is committed. With it, one of the two has read refs that the other
// has written since, and looks again.
//
// A delete needs none of that: it looks when the ClusterInst is in DeletePrepare,
// where no AppInst can come. See [ref] for what it looks at.
type refsManager = lifecycle.Manager[refsState, refsEvent, struct{}]

type (
	refsState string
	refsEvent string
)

const (
	refsNone   refsState = "None"
	refsKept   refsState = "Kept"
	refsWrite  refsEvent = "Write"
	refsForget refsEvent = "Forget"
)

var (
	cloudletRefs = refsMachine("cloudlet-refs")
	clusterRefs  = refsMachine("clusterinst-refs")
)

func refsMachine(name string) *fsm.Machine[refsState, refsEvent, struct{}] {
	return fsm.Must[struct{}](fsm.Spec[refsState, refsEvent]{
		Name: name, Title: "Edge cloud: whether anything has begun on an object", Initial: refsNone,
		Actors: []fsm.Actor{Controller},
		States: []fsm.State[refsState]{{Name: refsNone, Kind: fsm.Absent}, {Name: refsKept}},
		Rows: fsm.Rows(
			fsm.Move(refsNone, refsWrite, refsKept).By(Controller),
			fsm.Move(refsKept, refsWrite, refsKept).By(Controller),
			fsm.Move(refsKept, refsForget, refsNone).By(Controller),
		),
	})
}

// touching is the part of a commit that writes the refs of a parent. The look, if
// there is one, happens between read and write.
func touching(ctx context.Context, m *refsManager, parent string, look func() error) (lifecycle.AnyPart, error) {
	var change *lifecycle.Change[struct{}]
	if look != nil {
		change = &lifecycle.Change[struct{}]{Edit: func(*struct{}) error { return look() }}
	}
	_, err := m.Get(ctx, parent)
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
		return m.Creating(parent, refsWrite, Controller, struct{}{}, change), nil
	case err != nil:
		return nil, err
	}
	return m.Firing(parent, refsWrite, Controller, change), nil
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
	if !ok || !slices.Contains(shared, e.Machine) {
		return false
	}
	// Refs go when nobody needs them any more. What is not there where it is only
	// read, such as a cloudlet, does not come by trying again.
	moved := errors.Is(err, lifecycle.ErrConflict) || errors.Is(err, lifecycle.ErrNotFound) && e.Verb != "get"
	return moved && !errors.Is(err, lifecycle.ErrUnknownOutcome)
}

// shared are the machines of what requests write beside the object that they are
// about.
var shared = []string{
	cloudletRefs.Name(), clusterRefs.Name(), clusterRef.Name(), appRef.Name(), CloudletCreate.Name(),
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

func inTransition(s State) bool { return !ClusterInst.Kind(s).Resting() }
