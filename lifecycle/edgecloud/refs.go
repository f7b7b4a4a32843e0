package edgecloud

import (
	"context"
	"errors"
	"slices"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// The refs of a cloudlet, and of a ClusterInst, are a record without content. The
// commit that starts a change of an instance writes the refs of the objects that the
// instance depends on. A request that needs instances at rest reads the refs, then the
// instances, and writes the refs in its commit.
//
// The bad schedule without it: an update of a ClusterInst reads no AppInst in
// transition; one is created, because the ClusterInst is still Ready; the update is
// committed. With it, one of the two has read refs that the other has written since,
// and is decided again.
//
// A delete does not need this: it reads when the ClusterInst is in DeletePrepare,
// where no AppInst can be added. See [ref] for the records that it reads.
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

// touch adds the write of a parent's refs to a transaction. The function look, if it
// is not nil, runs between their read and their write.
func touch(ctx context.Context, tx *lifecycle.Tx, m *refsManager, parent string, look func() error) error {
	var change *lifecycle.Change[struct{}]
	if look != nil {
		change = &lifecycle.Change[struct{}]{Edit: func(*struct{}) error { return look() }}
	}
	_, err := m.Get(ctx, parent)
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
		m.In(tx).Create(parent, refsWrite, Controller, struct{}{}, change)
		return nil
	case err != nil:
		return err
	}
	m.In(tx).Fire(parent, refsWrite, Controller, change)
	return nil
}

// errMoved: an object that the request depends on has moved since it was read. The
// request is decided again.
var errMoved = errors.New("edgecloud: what the request depends on has moved")

// overtaken reports whether a commit failed only because another writer wrote refs
// first, or moved the cloudlet. The request may still be valid then, and is tried
// again. Of two such writers, one always succeeds.
func overtaken(err error) bool {
	if errors.Is(err, errMoved) {
		return true
	}
	e, ok := errors.AsType[*lifecycle.Error](err)
	if !ok || !slices.Contains(shared, e.Machine) {
		return false
	}
	// ErrNotFound of a change: the refs were removed with their object meanwhile.
	// ErrNotFound of a read, such as of a cloudlet, is final.
	moved := errors.Is(err, lifecycle.ErrConflict) || errors.Is(err, lifecycle.ErrNotFound) && e.Verb != "get"
	return moved && !errors.Is(err, lifecycle.ErrUnknownOutcome)
}

// shared are the machines of the records that requests write besides their object.
var shared = []string{
	cloudletRefs.Name(), clusterRefs.Name(), clusterRef.Name(), appRef.Name(), CloudletCreate.Name(),
}

// together commits the transaction that build fills. It builds and commits another
// one as long as only shared records have moved.
func together(ctx context.Context, build func(*lifecycle.Tx) error) error {
	for {
		var tx lifecycle.Tx
		err := build(&tx)
		if err == nil {
			err = tx.Commit(ctx)
		}
		if !overtaken(err) {
			return publicError(err)
		}
		if ctx.Err() != nil {
			return lifecycle.Ended(ctx)
		}
	}
}

// publicError unwraps an InUseError from the error about refs, which users do not know.
func publicError(err error) error {
	if used, ok := errors.AsType[*InUseError](err); ok {
		return used
	}
	return err
}

func inTransition(s State) bool { return !ClusterInst.Kind(s).Resting() }
