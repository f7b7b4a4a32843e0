package tablemodel

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/explore"
	"github.com/interlock-go/interlock/internal/decide"
)

// Options are the bounds of a model. [Usual] returns the usual ones.
type Options struct {
	Operations int       `json:"operations"` // that users begin
	Capacity   int       `json:"capacity"`   // of each channel
	Loss       int       `json:"loss"`       // budgets of faults
	Duplicate  int       `json:"duplicate"`
	Crash      int       `json:"crash"`
	Decisions  Decisions `json:"-"`
}

// Usual returns bounds with two operations, one fault of each kind, and the decisions that
// lifecycle.Manager performs.
func Usual() Options {
	return Options{Operations: 2, Capacity: 2, Loss: 1, Duplicate: 1, Crash: 1, Decisions: Shipped()}
}

// ErrTable reports a table with errors. No machine can be made of it.
var ErrTable = errors.New("a table with errors")

// System returns the model of an object of a table. The table may come from a file and
// lack what a machine demands, a deadline or an operator. In a transitional state
// without either, the object is stuck once the peer has no more reports. If the table names
// no actor but the sweeper, one actor more takes the rows without actors. The error
// matches [ErrTable] for a table with errors.
func System(t *fsm.Table, o Options) (*explore.System, error) {
	t, unattended, err := runnable(t)
	if err != nil {
		return nil, err
	}
	m := newModel(t, o)
	m.unattended = unattended
	sys := explore.New(t.Name)
	lose, twice := sys.Budget("loss", m.Loss), sys.Budget("duplicate", m.Duplicate)
	object := explore.NewActor(sys, "object", m.begin()...)
	peer := explore.NewActor(sys, "peer", peerState{})
	channel := explore.ChannelSpec{Capacity: m.Capacity, Lose: lose, Duplicate: twice}
	orders := explore.NewChannel[order](sys, "orders", channel)
	reports := explore.NewChannel[report](sys, "reports", channel)

	object.Acts(m.asks)
	if slices.ContainsFunc(t.Rows, func(r fsm.TableRow) bool { return r.Timeout > 0 }) {
		object.Acts(m.sweeps).Fair()
	}
	explore.Sends(object, orders, m.orders).Fair()
	explore.Receives(peer, orders, m.takes).Fair()
	explore.Sends(peer, reports, m.answer).Fair()
	explore.Receives(object, reports, m.hears).Fair()
	crash := sys.Fault("the owner dies", sys.Budget("crash", m.Crash), orders, reports)
	explore.Strikes(crash, object, func(s objectState) (objectState, bool) {
		can := !s.Dead && !m.rests(&s)
		s.Dead, s.Asked = true, true // a dead owner does not ask the peer
		return s, can
	})

	sys.Always("no report moves another operation", func(v *explore.View) error {
		if s := object.In(v); s.Wrong != 0 {
			return fmt.Errorf("operation %d was moved by a report about another one", s.Wrong)
		}
		return nil
	})
	rests := func(v *explore.View) bool {
		s := object.In(v)
		return m.rests(&s)
	}
	sys.Rests(rests)
	sys.LeadsTo("every operation ends", nil, rests)
	return sys, nil
}

// objectState is the state of the object in the model.
type objectState struct {
	Object
	Name  string // of its state
	Left  int    // operations that users may still begin
	Asked bool   // the peer was asked in this state
	Dead  bool   // the process that owns it
	Wrong uint64 // the operation that was moved by a report about another one; 0: none
}

func (s objectState) String() string {
	if !s.Exists {
		return "does not exist"
	}
	text := fmt.Sprintf("%s, operation %d", s.Name, s.Operation)
	if s.Dead {
		text += ", owner dead"
	}
	return text
}

// peerState is the state of the peer.
type peerState struct {
	At   order
	Owes bool // the answer
}

func (p peerState) String() string {
	if !p.Owes {
		return "waits"
	}
	return "works at " + p.At.String()
}

// order asks the peer to go on with an object.
type order struct {
	State     string
	Operation uint64
}

func (o order) String() string { return fmt.Sprintf("%s in operation %d", o.State, o.Operation) }

// report is an answer of the peer.
type report struct {
	Event     string
	Actor     fsm.Actor
	Operation uint64
}

func (r report) String() string {
	return fmt.Sprintf("%s by %s in operation %d", r.Event, r.Actor, r.Operation)
}

// model is a table with the options of its model.
type model struct {
	Options
	unattended []int // transitional states with neither a deadline nor an operator
	t          *fsm.Table
	last       uint64              // all later operations have this number too
	answers    map[string][]report // of the peer in each state, without operation
}

func newModel(t *fsm.Table, o Options) *model {
	m := &model{Options: o, t: t, last: uint64(o.Operations) + 2, answers: map[string][]report{}}
	for i := range t.Rows {
		r := &t.Rows[i]
		if r.Forced || r.Supersede || r.Then == fsm.ThenIgnore {
			continue
		}
		for _, actor := range m.actors(r) {
			for _, from := range r.From {
				if t.States[from].Kind == fsm.Transitional {
					m.add(t.States[from].Name, report{Event: t.Events[r.Event], Actor: actor})
				}
			}
		}
	}
	return m
}

// add adds an answer of the peer in a state.
func (m *model) add(state string, r report) {
	if !slices.Contains(m.answers[state], r) {
		m.answers[state] = append(m.answers[state], r)
	}
}

// actors returns the actors that may fire a row, without the sweeper.
func (m *model) actors(r *fsm.TableRow) (list []fsm.Actor) {
	for i, a := range m.t.Actors {
		if a != fsm.Sweeper && (len(r.Actors) == 0 || slices.Contains(r.Actors, i)) {
			list = append(list, a)
		}
	}
	return list
}

// begin is the object in the beginning: absent, or added in any state in which the
// table lets it enter.
func (m *model) begin() (list []objectState) {
	for _, entry := range m.t.Entries() {
		s := objectState{Left: m.Operations}
		if m.t.States[entry].Kind != fsm.Absent {
			o, d := m.Decisions.Ask(m.t, s.Object, decide.Request{Verb: decide.Add, To: entry})
			s = m.moved(s, o, &d)
		}
		list = append(list, s)
	}
	return list
}

// moved is the object after a decision that writes.
func (m *model) moved(s objectState, o Object, d *decide.Decision) objectState {
	s.Object = o
	s.Operation = min(s.Operation, m.last)
	s.Name, s.Saved = "", false
	if o.Exists {
		s.Name = m.t.States[o.State].Name
	}
	// A new operation has a new owner, and nothing at rest has one.
	s.Dead = s.Dead && !d.Begins && !o.Rests(m.t)
	s.Asked = s.Dead
	return s
}

// rests reports whether the object needs no further move, except by an operator.
func (m *model) rests(s *objectState) bool {
	if s.Object.Rests(m.t) {
		return true
	}
	_, care := m.Decisions.Sweep(m.t, &s.Record, decide.Cause{Overdue: true})
	return care == decide.NeedsOperator && !slices.Contains(m.unattended, s.State)
}

// runnable returns a table that decisions accept, and the transitional states for which
// the table has neither a deadline nor an operator.
func runnable(t *fsm.Table) (_ *fsm.Table, unattended []int, err error) {
	named := func(a fsm.Actor) bool { return a != fsm.Sweeper }
	if !slices.ContainsFunc(slices.Concat(t.Actors, t.UndeclaredActors), named) {
		t = t.WithRows(t.Rows)
		t.Actors = append(slices.Clone(t.Actors), "any actor")
	}
	problems := t.Problems()
	for _, p := range problems {
		if !p.Demand {
			return nil, nil, fmt.Errorf("%w: %s", ErrTable, p)
		}
	}
	if len(problems) > 0 {
		// A copy meets the demands: it names an operator where the table has none.
		t = t.WithRows(t.Rows)
		t.States = slices.Clone(t.States)
		for _, p := range problems {
			s, _ := t.StateIndex(p.State)
			t.States[s].Manual = ""
			if p.Code == fsm.NoDeadline {
				t.States[s].Manual = "none"
				unattended = append(unattended, s)
			}
		}
	}
	var guards []fsm.Guard[struct{}]
	for i := range t.Rows {
		name := t.Rows[i].Guard
		if name != "" && !slices.ContainsFunc(guards, func(g fsm.Guard[struct{}]) bool { return g.Name() == name }) {
			guards = append(guards, fsm.When(name, func(context.Context, *struct{}, *struct{}) error { return nil }))
		}
	}
	m, err := fsm.Bind[struct{}, string, string](t, guards...)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrTable, err)
	}
	return m.Table(), unattended, nil
}

// asks are the users, and every other actor that moves an object at rest or supersedes
// an operation.
func (m *model) asks(s objectState, step func(string, objectState)) {
	verb := decide.Fire
	if !s.Exists {
		verb = decide.Create
	}
	for e := range m.t.Events {
		for _, actor := range m.t.Actors {
			if actor == fsm.Sweeper {
				continue
			}
			for o, d := range m.Decisions.AskAll(m.t, s.Object, decide.Request{Verb: verb, Event: e, Actor: actor}) {
				if !d.Write || !s.Object.Rests(m.t) && !d.Begins || d.Begins && s.Left == 0 {
					continue
				}
				next := m.moved(s, o, &d)
				if d.Begins {
					next.Left--
				}
				step(fmt.Sprintf("%s by %s", m.t.Events[e], actor), next)
			}
		}
	}
}

// sweeps is the sweeper.
func (m *model) sweeps(s objectState, step func(string, objectState)) {
	q, care := m.Decisions.Sweep(m.t, &s.Record, decide.Cause{Overdue: true, OwnerDead: s.Dead})
	if care != decide.FireEvent {
		return
	}
	for o, d := range m.Decisions.AskAll(m.t, s.Object, q) {
		if d.Write {
			step(m.t.Events[q.Event]+" by sweeper", m.moved(s, o, &d))
		}
	}
}

// orders asks the peer, once in each state of transition.
func (m *model) orders(s objectState, send func(string, order, objectState)) {
	if s.Object.Rests(m.t) || s.Asked || len(m.answers[s.Name]) == 0 {
		return
	}
	s.Asked = true
	send("", order{s.Name, s.Operation}, s)
}

// takes is the peer that gets an order: one of an older operation is too late.
func (m *model) takes(p peerState, o order, next func(string, peerState)) {
	if o.Operation >= p.At.Operation {
		next("", peerState{At: o, Owes: true})
	}
}

// answer is the peer, which answers with any report that the table does not ignore.
func (m *model) answer(p peerState, send func(string, report, peerState)) {
	if !p.Owes {
		return
	}
	for _, r := range m.answers[p.At.State] {
		r.Operation = p.At.Operation
		send("", r, peerState{At: order{Operation: p.At.Operation}})
	}
}

// hears is the object that gets a report.
func (m *model) hears(s objectState, r report, next func(string, objectState)) {
	e, _ := m.t.EventIndex(r.Event)
	q := decide.Request{Verb: decide.Report, Event: e, Actor: r.Actor, Operation: r.Operation}
	for o, d := range m.Decisions.AskAll(m.t, s.Object, q) {
		if !d.Write {
			continue
		}
		after := m.moved(s, o, &d)
		if r.Operation != s.Operation {
			after.Wrong = s.Operation
		}
		next("", after)
	}
}
