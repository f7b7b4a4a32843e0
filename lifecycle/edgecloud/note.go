package edgecloud

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// note is the content of the records that a coordinator keeps beside the objects: one
// for each cloudlet, ClusterInst and AppInst.
//
// The note of an instance has what the coordinator needs of its last operation. The
// commit that starts a change of the instance writes the note, and the commit that
// removes the instance removes it. The id of an AppInst's note begins with the
// ClusterInst, so that a change of the ClusterInst finds the AppInsts in it. An override
// may leave a note behind. So every reader of a note reads the instance too.
//
// The notes of cloudlets and ClusterInsts order requests: the commit that starts a change
// of an instance writes the notes of its parents. A request that needs instances at rest
// reads the note, then the instances, and writes the note in its commit. The bad schedule
// without it: an update of a ClusterInst reads no AppInst in transition; one is created,
// because the ClusterInst is still Ready; the update is committed. A delete that is not
// forced reads in DeletePrepare, where no AppInst can be created.
type note struct {
	ID           string // of the instance
	Cloudlet     string // of the instance, when its last operation was requested
	KeepError    bool   // a failed operation stays in its error state
	NeverCreated bool   // the instance was never Ready and is being deleted
	NotifyID     int64  // of a cloudlet: the last one that was assigned
}

const (
	writeNote  = "Write"
	removeNote = "Remove"
)

var notes = fsm.Must[note](fsm.Spec[string, string]{
	Name: "edgecloud-note", Title: "Edge cloud: note", Initial: "Absent",
	Actors: []fsm.Actor{Controller},
	States: []fsm.State[string]{{Name: "Absent", Kind: fsm.Absent}, {Name: "Kept"}},
	Rows: fsm.Rows(
		fsm.Move("Absent", writeNote, "Kept").By(Controller),
		fsm.Move("Kept", writeNote, "Kept").By(Controller),
		fsm.Move("Kept", removeNote, "Absent").By(Controller),
	),
})

// The ids of notes have names of fixed length, because the ids of objects may have the
// greatest length.
func cloudletNote(id string) string { return "cloudlet/" + short(id) }
func clusterNote(id string) string  { return "clusterinst/" + short(id) }

// appNotes returns the prefix of the notes of all AppInsts in a ClusterInst.
func appNotes(cluster string) string { return "appinst/" + short(cluster) + "/" }

// short returns a name of fixed length for a name of any length.
func short(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:16])
}

// noteID returns the id of the note of an instance.
func (in *Instances[T]) noteID(spec *T, id string) string {
	if in.isApp() {
		return appNotes(in.parent(spec)) + short(id)
	}
	return clusterNote(id)
}

// note returns the note of an instance, which is empty if there is none.
func (in *Instances[T]) note(ctx context.Context, rec *Record[T]) (note, error) {
	found, err := in.coordinator.notes.Get(ctx, in.noteID(&rec.Payload, rec.ID))
	if errors.Is(err, lifecycle.ErrNotFound) {
		err = nil
	}
	return found.Payload, err
}

// write adds the write of a note to a transaction. The function edit, if it is not nil,
// runs between the read and the write. The commit fails if another writer has
// written the note since the read.
func (c *Coordinator) write(ctx context.Context, tx *lifecycle.Tx, id string, edit func(*note) error) (*lifecycle.TxResult[string, note], error) {
	rec, err := c.notes.Get(ctx, id)
	absent := errors.Is(err, lifecycle.ErrNotFound)
	if err != nil && !absent {
		return nil, err
	}
	content := rec.Payload
	if edit != nil {
		if err := edit(&content); err != nil {
			return nil, err
		}
	}
	if absent {
		return c.notes.In(tx).Create(id, writeNote, Controller, content, nil), nil
	}
	return c.notes.In(tx).Fire(id, writeNote, Controller, &lifecycle.Change[note]{
		Expect: rec.Revision, Edit: func(n *note) error { *n = content; return nil },
	}), nil
}

// beforeCommit removes the note of an instance with the instance.
func (in *Instances[T]) beforeCommit(ctx context.Context, ch *lifecycle.StoredChange) (*lifecycle.Tx, error) {
	if !ch.Remove {
		return nil, nil
	}
	// An override also removes an object whose content cannot be read. The note of an
	// AppInst then stays.
	var spec T
	_ = json.Unmarshal(ch.To.Payload, &spec)
	id := in.noteID(&spec, ch.To.ID)
	_, err := in.coordinator.notes.Get(ctx, id)
	if errors.Is(err, lifecycle.ErrNotFound) {
		return nil, nil
	}
	var tx lifecycle.Tx
	in.coordinator.notes.In(&tx).Fire(id, removeNote, Controller, nil)
	return &tx, err
}
