package edgecloud

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/url"
	"strings"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// ref records that an instance is on a cloudlet, or in a ClusterInst. It is a record of
// its own, so that the cost of a request does not grow with the number of instances.
// Its id begins with the parent's (see refID), by which a delete finds the AppInsts in
// a ClusterInst. The commit that starts a change of the instance writes it, and the
// commit that removes the instance removes it.
//
// Its state is what happens if the last operation fails. It is written with the
// request, because the process of the caller may have died by then.
//
// A ref may be left of an instance that was removed or moved by other means. So every
// reader of a ref reads the instance too.
type ref struct {
	ID     string // of the instance
	Unmade bool   // the instance was never Ready and is being deleted
}

type refManager = lifecycle.Manager[wish, wish, ref]

// wish is the state of a ref, and the event that leads to it.
type wish string

const (
	wishNone   wish = "None"   // there is no ref
	wishUndo   wish = "Undo"   // a failed operation is undone
	wishKeep   wish = "Keep"   // a failed operation is left as it is
	wishIgnore wish = "Ignore" // a failed operation is recorded as done

	wishNote   wish = "Note"   // other content
	wishForget wish = "Forget" // the instance is removed
)

var (
	clusterRef = refMachine("clusterinst-ref")
	appRef     = refMachine("appinst-ref")
)

func refMachine(name string) *fsm.Machine[wish, wish, ref] {
	var rows []fsm.Row[wish, wish]
	wishes := []wish{wishUndo, wishKeep, wishIgnore}
	for _, w := range wishes {
		rows = append(rows,
			fsm.Move(wishNone, w, w).AlsoFrom(wishes...).By(Controller),
			fsm.Move(w, wishNote, w).By(Controller),
			fsm.Move(w, wishForget, wishNone).By(Controller))
	}
	return fsm.Must[ref](fsm.Spec[wish, wish]{
		Name: name, Title: "Edge cloud: where an instance is, and what it is to be undone for", Initial: wishNone,
		Actors: []fsm.Actor{Controller},
		States: []fsm.State[wish]{
			{Name: wishNone, Kind: fsm.Absent}, {Name: wishUndo}, {Name: wishKeep}, {Name: wishIgnore},
		},
		Rows: rows,
	})
}

// wished returns what happens if the operation of a request fails.
func wished(call *Call) wish {
	switch {
	case call.keeps():
		return wishKeep
	case call.has(IgnoreCRMErrors):
		return wishIgnore
	}
	return wishUndo
}

// refID is the id of a ref: that of the parent, a slash, and that of the instance.
func refID(parent, id string) string {
	prefix := refPrefix(parent)
	if id = url.PathEscape(id); len(prefix)+len(id) > lifecycle.MaxID {
		id = hashed(id)
	}
	return prefix + id
}

// refPrefix returns the beginning of the ids of all refs of a parent.
func refPrefix(parent string) string {
	if parent = url.PathEscape(parent); len(parent) > lifecycle.MaxID/2 {
		parent = hashed(parent)
	}
	return parent + "/"
}

// hashed returns a short name for a long one. No escaped name begins with "#".
func hashed(name string) string {
	sum := sha256.Sum256([]byte(name))
	return "#" + hex.EncodeToString(sum[:])
}

// note adds the write of an instance's ref to a transaction, or its creation if
// there is none.
func (in *Instances[T]) note(ctx context.Context, tx *lifecycle.Tx, parent, id string, w wish, edit func(*ref)) error {
	change := &lifecycle.Change[ref]{Edit: func(r *ref) error {
		if r.ID = id; edit != nil {
			edit(r)
		}
		return nil
	}}
	key := refID(parent, id)
	_, err := in.refs.Get(ctx, key)
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
		if w == wishNote {
			w = wishUndo
		}
		in.refs.In(tx).Create(key, w, Controller, ref{}, change)
		return nil
	case err != nil:
		return err
	}
	in.refs.In(tx).Fire(key, w, Controller, change)
	return nil
}

// noted returns the ref of an instance, with the wish of the last request about it.
func (in *Instances[T]) noted(ctx context.Context, rec *Record[T]) (lifecycle.Record[wish, ref], error) {
	noted, err := in.refs.Get(ctx, refID(in.parent(&rec.Payload), rec.ID))
	if errors.Is(err, lifecycle.ErrNotFound) {
		noted.State, err = wishNone, nil
	}
	return noted, err
}

// wants returns the condition that the wish of the last request about an instance is
// one of these.
func (in *Instances[T]) wants(rec *Record[T], wishes ...wish) []lifecycle.Precondition {
	return []lifecycle.Precondition{in.refs.Require(refID(in.parent(&rec.Payload), rec.ID), wishes...)}
}

// beforeCommit returns what every change of an instance writes besides it, whichever
// caller makes the change. The removal of an instance removes its ref and all refs
// to it. A ClusterInst that is created, or that an override moves elsewhere, has its
// refs written: the commit of a caller that has read its place before then fails.
func (in *Instances[T]) beforeCommit(ctx context.Context, ch *lifecycle.StoredChange) (*lifecycle.Tx, error) {
	var tx lifecycle.Tx
	if !ch.Remove {
		placed := ch.From == "" || ch.To.Event == lifecycle.Overridden
		if in.apps() || !placed {
			return nil, nil
		}
		return &tx, touch(ctx, &tx, in.c.clusterRefs, ch.To.ID, nil)
	}
	var spec T
	if len(ch.To.Payload) > 0 {
		if err := json.Unmarshal(ch.To.Payload, &spec); err != nil {
			return nil, err
		}
	}
	err := forget(ctx, &tx, in.refs, refID(in.parent(&spec), ch.To.ID), wishForget)
	if err == nil && !in.apps() {
		err = forget(ctx, &tx, in.c.clusterRefs, ch.To.ID, refsForget)
	}
	return &tx, err
}

// forget adds the removal of a record to a transaction, or nothing if there is none.
func forget[S, E comparable, T any](ctx context.Context, tx *lifecycle.Tx, m *lifecycle.Manager[S, E, T], id string, e E) error {
	_, err := m.Get(ctx, id)
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	m.In(tx).Fire(id, e, Controller, nil)
	return nil
}

// inside returns the AppInsts in a ClusterInst, at most [MaxReferrers].
func (c *Coordinator) inside(ctx context.Context, cluster string) (by []Referrer, err error) {
	prefix := refPrefix(cluster)
	for r, err := range c.Apps.refs.All(ctx, lifecycle.Select[wish]{After: prefix, Limit: MaxReferrers}) {
		if err != nil {
			return nil, err
		}
		if !strings.HasPrefix(r.ID, prefix) {
			break
		}
		app, err := c.Apps.m.Get(ctx, r.Payload.ID)
		switch {
		case errors.Is(err, lifecycle.ErrNotFound), err == nil && app.Payload.ClusterInst != cluster:
			continue
		case err != nil:
			return nil, err
		}
		if by = append(by, Referrer{c.Apps.key(app.ID), app.State}); len(by) == MaxReferrers {
			break
		}
	}
	return by, nil
}
