package edgecloud

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// note is the content of the records that a coordinator keeps beside the objects.
//
// An entry records that an instance is in a parent: a ClusterInst on a cloudlet, an
// AppInst in a ClusterInst. Its id begins with the parent's, so that a delete finds
// the AppInsts of a ClusterInst. The commit that starts a change of the instance
// writes the entry, and the commit that removes the instance removes it. An override
// may leave an entry behind. So every reader of an entry reads the instance too.
//
// The note of the notify ids of a cloudlet has the last one that was assigned.
//
// A counter belongs to a cloudlet or ClusterInst and has no content. The commit that
// starts a change of an instance writes the counters of its parents. A request that
// needs instances at rest reads the counter, then the instances, and writes the
// counter in its commit. The bad schedule without it: an update of a ClusterInst reads
// no AppInst in transition; one is created, because the ClusterInst is still Ready;
// the update is committed. A delete needs no counter: it reads in DeletePrepare, where
// no AppInst can be created.
type note struct {
	ID           string // of the instance of an entry
	Cloudlet     string // of the instance of an entry, when its last operation was requested
	KeepError    bool   // a failed operation stays in its error state
	NeverCreated bool   // the instance was never Ready and is being deleted
	NotifyID     int64  // the last one of a cloudlet that was assigned
}

type noteManager = lifecycle.Manager[noteState, noteEvent, note]

type (
	noteState string
	noteEvent string
)

const (
	noteAbsent noteState = "Absent"
	noteKept   noteState = "Kept"
	noteWrite  noteEvent = "Write"
	noteRemove noteEvent = "Remove"
)

var (
	clusterEntry    = noteMachine("clusterinst-entry")
	appEntry        = noteMachine("appinst-entry")
	cloudletCounter = noteMachine("cloudlet-counter")
	clusterCounter  = noteMachine("clusterinst-counter")
	notifyIDs       = noteMachine("cloudlet-notify")

	noteMachines = []string{clusterEntry.Name(), appEntry.Name(), cloudletCounter.Name(), clusterCounter.Name(), notifyIDs.Name()}
)

func noteMachine(name string) *fsm.Machine[noteState, noteEvent, note] {
	return fsm.Must[note](fsm.Spec[noteState, noteEvent]{
		Name: name, Title: "Edge cloud: " + name, Initial: noteAbsent,
		Actors: []fsm.Actor{Controller},
		States: []fsm.State[noteState]{{Name: noteAbsent, Kind: fsm.Absent}, {Name: noteKept}},
		Rows: fsm.Rows(
			fsm.Move(noteAbsent, noteWrite, noteKept).By(Controller),
			fsm.Move(noteKept, noteWrite, noteKept).By(Controller),
			fsm.Move(noteKept, noteRemove, noteAbsent).By(Controller),
		),
	})
}

// write adds the write of a note to a transaction. The function edit, if it is not nil,
// runs between the read and the write. The commit fails if another writer has
// written the note since the read.
func write(ctx context.Context, tx *lifecycle.Tx, m *noteManager, id string, edit func(*note) error) error {
	rec, err := m.Get(ctx, id)
	absent := errors.Is(err, lifecycle.ErrNotFound)
	if err != nil && !absent {
		return err
	}
	content := rec.Payload
	if edit != nil {
		if err := edit(&content); err != nil {
			return err
		}
	}
	if absent {
		m.In(tx).Create(id, noteWrite, Controller, content, nil)
		return nil
	}
	m.In(tx).Fire(id, noteWrite, Controller, &lifecycle.Change[note]{
		Expect: rec.Revision, Edit: func(n *note) error { *n = content; return nil },
	})
	return nil
}

// remove adds the removal of a note to a transaction, or nothing if there is none.
func remove(ctx context.Context, tx *lifecycle.Tx, m *noteManager, id string) error {
	_, err := m.Get(ctx, id)
	if errors.Is(err, lifecycle.ErrNotFound) {
		return nil
	}
	m.In(tx).Fire(id, noteRemove, Controller, nil)
	return err
}

// commit commits the transaction that build fills. It builds and commits another one
// while other writers move objects that build has read. Of two such writers, one
// always succeeds.
func commit(ctx context.Context, build func(*lifecycle.Tx) error) error {
	for {
		var tx lifecycle.Tx
		err := build(&tx)
		if err == nil {
			err = tx.Commit(ctx)
		}
		if !overtaken(err) {
			return err
		}
		if ctx.Err() != nil {
			return lifecycle.Ended(ctx)
		}
	}
}

// overtaken reports whether a commit failed only because another writer was faster.
// An object that exists already is final; a note that exists already is not.
func overtaken(err error) bool {
	if !errors.Is(err, lifecycle.ErrConflict) || errors.Is(err, lifecycle.ErrUnknownOutcome) {
		return false
	}
	e, ok := errors.AsType[*lifecycle.Error](err)
	return !errors.Is(err, lifecycle.ErrExists) || ok && slices.Contains(noteMachines, e.Machine)
}

// entryID returns the id of an entry: names of fixed length for the parent and the
// instance, because the ids of both may have the greatest length. Without an instance it
// is the prefix of all entries of the parent.
func entryID(parent, id string) string {
	short := func(name string) string {
		sum := sha256.Sum256([]byte(name))
		return hex.EncodeToString(sum[:16])
	}
	if id == "" {
		return short(parent) + "/"
	}
	return short(parent) + "/" + short(id)
}

// entry returns the entry of an instance, which is empty if there is none.
func (in *Instances[T]) entry(ctx context.Context, rec *Record[T]) (note, error) {
	found, err := in.entries.Get(ctx, entryID(in.parent(&rec.Payload), rec.ID))
	if errors.Is(err, lifecycle.ErrNotFound) {
		err = nil
	}
	return found.Payload, err
}

// beforeCommit returns what every change of an instance writes besides it, whichever
// verb makes the change. The removal of an instance removes its notes. A ClusterInst
// that is created, or that an override moves elsewhere, has its counter written: a
// request that has read its place before then fails. An override that moves an instance
// elsewhere removes the entry there.
func (in *Instances[T]) beforeCommit(ctx context.Context, ch *lifecycle.StoredChange) (*lifecycle.Tx, error) {
	var tx lifecycle.Tx
	placed := ch.From == ""
	if overridden := ch.To.Event == lifecycle.Overridden; ch.Remove || overridden && !placed {
		left, err := in.left(ctx, ch)
		if err != nil {
			return nil, err
		}
		if placed = left != ""; placed {
			if err := remove(ctx, &tx, in.entries, entryID(left, ch.To.ID)); err != nil {
				return nil, err
			}
		}
	}
	switch {
	case in.isApp() || !placed:
		return &tx, nil
	case ch.Remove:
		return &tx, remove(ctx, &tx, in.c.clusterCounters, ch.To.ID)
	}
	return &tx, write(ctx, &tx, in.c.clusterCounters, ch.To.ID, nil)
}

// left returns the parent that a removal or an override takes an instance out of; empty:
// the instance stays in its parent.
func (in *Instances[T]) left(ctx context.Context, ch *lifecycle.StoredChange) (string, error) {
	var spec T
	if len(ch.To.Payload) > 0 {
		if err := json.Unmarshal(ch.To.Payload, &spec); err != nil {
			return "", err
		}
	}
	if ch.Remove {
		return in.parent(&spec), nil
	}
	before, err := in.m.Get(ctx, ch.To.ID)
	if err != nil || in.parent(&before.Payload) == in.parent(&spec) {
		return "", err
	}
	return in.parent(&before.Payload), nil
}
