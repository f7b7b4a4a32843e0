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

// ref says of an instance that it is on a cloudlet, or in a ClusterInst: a record
// of its own, so that what a request costs does not grow with how many there are.
// Its id begins with the parent's (see refID), by which a delete finds who is in a
// ClusterInst. It is written in the commit that begins a change of the instance,
// and removed in the one that removes it.
//
// Its state is what is to be done if the CRM gives up what was asked for last. It
// is written with the request, because who asked may be gone by then.
//
// Of an instance that somebody has removed, or moved, by other means a ref may be
// left: whoever looks at refs asks the instance too.
type ref struct {
	ID     string // of the instance
	Unmade bool   // it was never Ready and is deleted all the same
}

type refManager = lifecycle.Manager[wish, wish, ref]

// wish is the state of a ref, and the event that leads to it.
type wish string

const (
	wishNone   wish = "None"   // nobody has begun anything
	wishUndo   wish = "Undo"   // what fails is undone
	wishKeep   wish = "Keep"   // it is left as it is
	wishIgnore wish = "Ignore" // it is taken for done

	wishNote   wish = "Note"   // another content
	wishForget wish = "Forget" // the instance is gone
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

// wished is what a request says is to be done if it fails.
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

// refPrefix is what the ids of the refs of all that is in a parent begin with.
func refPrefix(parent string) string {
	if parent = url.PathEscape(parent); len(parent) > lifecycle.MaxID/2 {
		parent = hashed(parent)
	}
	return parent + "/"
}

// hashed is a short name for a long one. No name that is escaped begins as it does.
func hashed(name string) string {
	sum := sha256.Sum256([]byte(name))
	return "#" + hex.EncodeToString(sum[:])
}

// noting is the part of a commit that writes the ref of an instance, and makes it
// if there is none.
func (in *Instances[T]) noting(ctx context.Context, parent, id string, w wish, edit func(*ref)) (lifecycle.AnyPart, error) {
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
		return in.refs.Creating(key, w, Controller, ref{}, change), nil
	case err != nil:
		return nil, err
	}
	return in.refs.Firing(key, w, Controller, change), nil
}

// noted returns the ref of an instance: what was said with the last request about it.
func (in *Instances[T]) noted(ctx context.Context, rec *Record[T]) (lifecycle.Record[wish, ref], error) {
	noted, err := in.refs.Get(ctx, refID(in.parent(&rec.Payload), rec.ID))
	if errors.Is(err, lifecycle.ErrNotFound) {
		noted.State, err = wishNone, nil
	}
	return noted, err
}

// wants is the condition that the last request about an instance has said one of
// these.
func (in *Instances[T]) wants(rec *Record[T], wishes ...wish) []lifecycle.Precondition {
	return []lifecycle.Precondition{in.refs.Require(refID(in.parent(&rec.Payload), rec.ID), wishes...)}
}

// along is what goes along with every change of an instance, whoever makes it: the
// ref of one that goes is forgotten, with all refs to it. A ClusterInst that comes,
// or is put elsewhere by an override, has its refs written: who has read before
// where it is commits in vain.
func (in *Instances[T]) along(ctx context.Context, ch *lifecycle.StoredChange) (along lifecycle.Along, err error) {
	comes := ch.From == "" || ch.To.Event == lifecycle.Overridden
	if !ch.Remove {
		if in.apps() || !comes {
			return along, nil
		}
		part, err := touching(ctx, in.c.clusterRefs, ch.To.ID, nil)
		return lifecycle.Along{Parts: []lifecycle.AnyPart{part}}, err
	}
	var spec T
	if ch.To.Payload != nil {
		data, err := ch.To.Payload.Bytes()
		if err == nil && len(data) > 0 {
			err = json.Unmarshal(data, &spec)
		}
		if err != nil {
			return along, err
		}
	}
	along.Parts, err = forgetting(ctx, in.refs, refID(in.parent(&spec), ch.To.ID), wishForget)
	if err != nil || in.apps() {
		return along, err
	}
	own, err := forgetting(ctx, in.c.clusterRefs, ch.To.ID, refsForget)
	along.Parts = append(along.Parts, own...)
	return along, err
}

// forgetting is the part of a commit that removes a record; none if there is none.
func forgetting[S, E comparable, T any](ctx context.Context, m *lifecycle.Manager[S, E, T], id string, e E) ([]lifecycle.AnyPart, error) {
	_, err := m.Get(ctx, id)
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return []lifecycle.AnyPart{m.Firing(id, e, Controller, nil)}, nil
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
