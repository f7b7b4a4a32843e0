package inspect

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// Machine is the objects of one manager, for [Config].Machines. [Of] makes one; the zero
// Machine is refused by [New]. It is a value.
type Machine struct{ manager }

// manager is a [lifecycle.Manager] of any types.
type manager interface {
	lifecycle.AnyManager
	Explain(ctx context.Context, id string, require ...lifecycle.Precondition) (lifecycle.Explanation, error)
	History(ctx context.Context, id string, after uint64, max int) ([]lifecycle.HistoryRow, error)

	table() *fsm.Table
	// list returns a page of the objects in some states, without payloads.
	list(ctx context.Context, states []string, after string, limit int) ([]Object, error)
	// get returns an object and what is shown of its payload.
	get(ctx context.Context, id string) (Object, json.RawMessage, error)
	override(ctx context.Context, id, to string, actor fsm.Actor, reason string) error
}

// Of returns the objects of a manager for the page. The function show returns what the page
// shows of a payload; the page encodes it as JSON. Remove what is secret there. Nil: the
// page shows no payloads.
//
//	inspect.Of(vms, func(vm VM) any { vm.Password = ""; return vm })
func Of[S, E comparable, T any](m *lifecycle.Manager[S, E, T], show func(T) any) Machine {
	return Machine{managed[S, E, T]{m, show}}
}

type managed[S, E comparable, T any] struct {
	*lifecycle.Manager[S, E, T]
	show func(T) any
}

func (m managed[S, E, T]) table() *fsm.Table { return m.Machine().Table() }

func (m managed[S, E, T]) list(ctx context.Context, states []string, after string, limit int) ([]Object, error) {
	sel := lifecycle.Select[S]{After: after, Limit: limit, WithoutPayload: true}
	for _, name := range states {
		status, err := m.Machine().ParseStatus(name, "")
		if err != nil {
			return nil, err
		}
		sel.States = append(sel.States, status.State)
	}
	records, err := m.List(ctx, sel)
	if err != nil {
		return nil, err
	}
	objects := make([]Object, len(records))
	for i := range records {
		objects[i] = m.object(&records[i])
	}
	return objects, nil
}

func (m managed[S, E, T]) get(ctx context.Context, id string) (Object, json.RawMessage, error) {
	rec, err := m.Get(ctx, id)
	if err != nil {
		return Object{}, nil, err
	}
	if m.show == nil {
		return m.object(&rec), nil, nil
	}
	payload, err := json.Marshal(m.show(rec.Payload))
	return m.object(&rec), payload, err
}

func (m managed[S, E, T]) override(ctx context.Context, id, to string, actor fsm.Actor, reason string) error {
	status, err := m.Machine().ParseStatus(to, "")
	if err == nil {
		_, err = m.Override(ctx, id, status.State, actor, reason, nil)
	}
	return err
}

// object returns a record without its payload.
func (m managed[S, E, T]) object(r *lifecycle.Record[S, T]) Object {
	o := Object{
		ID: r.ID, Target: r.Target, Since: r.ChangedAt.UTC(), Operation: r.Operation,
		Owner: r.Owner, Epoch: r.Epoch, Deadline: r.Deadline.UTC(),
		Event: r.Event, Actor: r.Actor, Reason: r.Reason, Sequence: r.Sequence, Version: r.Version,
	}
	if r.Err != nil {
		o.Problem = new(lifecycle.Problem(r.Err))
		return o
	}
	state := &m.table().States[m.Machine().StateIndex(r.State)]
	o.State, o.Kind = state.Name, state.Kind.String()
	if r.Origin != r.State {
		o.Origin = m.table().States[m.Machine().StateIndex(r.Origin)].Name
	}
	return o
}

func (p *Page) machinePage(ctx context.Context, r *http.Request) (view, error) {
	m, err := p.machine(r)
	if err != nil {
		return view{}, err
	}
	c, err := p.count(ctx, m)
	if err != nil {
		return view{}, err
	}
	doc := MachinePage{Time: now(), MachineSummary: c.MachineSummary, Versions: []VersionCount{}, Oldest: c.oldest}
	for _, name := range slices.Sorted(maps.Keys(c.versions)) {
		doc.Versions = append(doc.Versions, VersionCount{Version: name, Count: c.versions[name]})
	}
	doc.StuckObjects = p.explainStuck(ctx, m, c.stuck[:min(len(c.stuck), shownObjects)])
	return view{Heading: doc.Name, Machine: doc.Name, Doc: doc}, nil
}
