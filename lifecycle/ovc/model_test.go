package ovc_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/ovc"
	"github.com/interlock-go/interlock/queue"
)

// transitionOf has the transition state of every action of the document.
var transitionOf = map[ovc.Event]ovc.State{
	"deploy": "DEPLOYING", "create": "CREATING", "pause": "PAUSING", "resume": "RESUMING", "stop": "STOPPING",
	"reboot": "REBOOTING", "reset": "RESETTING", "add_disk": "ADDING_DISK", "attach_disk": "ATTACHING_DISK",
	"detach_disk": "DETACHING_DISK", "assign": "ASSIGNING", "attach": "ATTACHING", "detach": "DETACHING",
	"disable": "DISABLING", "enable": "ENABLING", "delete": "DELETING", "restore": "RESTORING",
	"destroy": "DESTROYING", "put_in_maintenance": "PUTTING_IN_MAINTENANCE", "decommission": "DECOMMISSIONING",
}

// reference is a simple service for one user: a map of objects, and the tables of the
// document.
type reference struct {
	rows    map[row]ovc.State // by kind, initial and transition state
	objects map[string]*refObject
}

type refObject struct {
	kind    ovc.Kind
	state   ovc.State // in transition: the transition state
	origin  ovc.State
	desired ovc.State // in transition only
	vm, was string    // of a disk: where it is attached, and was before the action
	action  ovc.Event
	with    []string // that take part
}

func newReference() *reference {
	r := &reference{rows: map[row]ovc.State{}, objects: map[string]*refObject{}}
	for _, line := range documentRows() {
		r.rows[row{line.kind, line.initial, line.transition, ""}] = line.desired
	}
	return r
}

// may returns the error of an action that cannot start.
func (r *reference) may(id string, action ovc.Event) error {
	o := r.objects[id]
	switch _, ok := r.rows[row{o.kind, o.state, transitionOf[action], ""}]; {
	case o.desired != "":
		return ovc.ErrBusy
	case !ok:
		return fsm.ErrNotAllowed
	}
	return nil
}

func (r *reference) begin(id string, action ovc.Event) {
	o := r.objects[id]
	o.origin, o.action = o.state, action
	o.desired = r.rows[row{o.kind, o.state, transitionOf[action], ""}]
	o.state = transitionOf[action]
}

func (r *reference) do(id, with string, action ovc.Event) error {
	o := r.objects[id]
	parts := []string{id}
	events := []ovc.Event{action}
	switch {
	case with != "":
		parts, events = append(parts, with), append(events, map[ovc.Event]ovc.Event{
			"add_disk": "assign", "attach_disk": "attach", "detach_disk": "detach",
			"assign": "add_disk", "attach": "attach_disk", "detach": "detach_disk",
		}[action])
	case o.kind == ovc.KindVM && (action == ovc.Delete || action == ovc.Destroy):
		for id := range r.objects {
			d := r.objects[id]
			if d.vm == o.id(r) && (d.state == ovc.Assigned || d.desired != "") {
				parts, events = append(parts, id), append(events, action)
			}
		}
	}
	var refused error
	for i, part := range parts {
		if err := r.may(part, events[i]); err != nil && (refused == nil || i == 0) {
			refused = err
		}
	}
	if refused != nil {
		return refused
	}
	for i, part := range parts {
		p := r.objects[part]
		p.was = p.vm
		if p.kind == ovc.KindDisk && with != "" && events[i] != ovc.Detach {
			p.vm = parts[1-i]
		}
		r.begin(part, events[i])
	}
	o.with = parts[1:]
	return nil
}

func (o *refObject) id(r *reference) string {
	for id, other := range r.objects {
		if other == o {
			return id
		}
	}
	return ""
}

func (r *reference) end(id string, ok bool) {
	for _, part := range append([]string{id}, r.objects[id].with...) {
		o := r.objects[part]
		if ok {
			o.state = o.desired
		} else {
			o.state, o.vm = o.origin, o.was
		}
		if o.state == ovc.Created {
			o.vm = ""
		}
		o.desired, o.with = "", nil
	}
}

// The service and the reference accept and refuse the same requests.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ctx := context.Background()
		gates := map[string]chan error{}
		s := ovc.Must(lifecycle.NewMemoryStore(), nil)
		ref := newReference()
		add := func(kind ovc.Kind, id string) {
			rec, err := s.Add(ctx, kind, id, "", ovc.Model{})
			require.NoError(t, err)
			ref.objects[id] = &refObject{kind: kind, state: rec.State}
			gates[id] = make(chan error)
		}
		for kind := range ovc.Kinds() {
			add(kind, string(kind)+"1")
		}
		add(ovc.KindVM, "vm2")
		add(ovc.KindDisk, "disk2")
		var ids []string
		for id := range ref.objects {
			ids = append(ids, id)
		}
		slices.Sort(ids)
		tickets := map[string]*ovc.Ticket{}
		// An action on an attached disk may wait for one on its machine, and vice versa.
		running := func(kind ovc.Kind, id string) bool {
			first := s.Queuer().Inspect(kind.Key(id))[0]
			return first.State == queue.Running && first.Keys[0] == lifecycle.Key{Machine: kind.Machine().Name(), ID: id}
		}
		run := func() (list []string) {
			for _, id := range ids {
				if tickets[id] != nil && running(ref.objects[id].kind, id) {
					list = append(list, id)
				}
			}
			return list
		}
		end := func(id string, failure error) {
			gates[id] <- failure
			_, err := tickets[id].Wait(ctx)
			require.ErrorIs(t, err, failure)
			delete(tickets, id)
			ref.end(id, failure == nil)
		}
		defer func() {
			for list := run(); len(list) > 0; list = run() {
				end(list[0], nil)
			}
			require.Empty(t, tickets)
		}()
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				for _, id := range ids {
					o := ref.objects[id]
					rec, err := s.Get(ctx, o.kind, id)
					require.NoError(t, err)
					require.Equal(t, o.state, rec.State, id)
					if o.state == ovc.Assigned {
						require.Equal(t, o.vm, rec.Payload.VM, id)
					}
				}
				if len(tickets) == 0 {
					require.NoError(t, consistent(ctx, s))
				}
			},
			"do": func(t *rapid.T) {
				id := rapid.SampledFrom(ids).Draw(t, "id")
				o := ref.objects[id]
				var actions []ovc.Event
				for e := range o.kind.Machine().Events() {
					if transitionOf[e] != "" {
						actions = append(actions, e)
					}
				}
				action := rapid.SampledFrom(actions).Draw(t, "action")
				with := ""
				switch {
				case action == ovc.Detach && o.state == ovc.Assigned:
					with = o.vm // the service finds it
				case o.kind == ovc.KindDisk && (action == ovc.Attach || action == ovc.Assign):
					with = rapid.SampledFrom([]string{"", "vm1", "vm2"}).Draw(t, "vm")
				case action == ovc.AddDisk || action == ovc.AttachDisk:
					with = rapid.SampledFrom([]string{"disk1", "disk2"}).Draw(t, "disk")
				case action == ovc.DetachDisk:
					with = rapid.SampledFrom([]string{"disk1", "disk2"}).Draw(t, "disk")
					if d := ref.objects[with]; d.state == ovc.Assigned && d.vm != id && ref.may(id, action) == nil {
						_, err := s.Do(ctx, o.kind, id, action, &ovc.Options{With: with})
						require.ErrorIs(t, err, lifecycle.ErrPrecondition)
						return
					}
				}
				want := ref.do(id, with, action)
				ticket, err := s.Do(ctx, o.kind, id, action, &ovc.Options{
					With: with, Administrator: true, Run: func(context.Context) error { return <-gates[id] },
				})
				if want != nil {
					require.ErrorIs(t, err, want, "%s of %s with %q", action, id, with)
					return
				}
				require.NoError(t, err, "%s of %s with %q", action, id, with)
				tickets[id] = ticket
			},
			"end": func(t *rapid.T) {
				list := run()
				if len(list) == 0 {
					t.Skip("nothing runs")
				}
				var failure error
				if rapid.Bool().Draw(t, "fails") {
					failure = errors.New("it fails")
				}
				end(list[rapid.IntRange(0, len(list)-1).Draw(t, "which")], failure)
			},
		})
	})
}
