// The protocol of the document "State Transitions for ClusterInst/AppInst": a user
// requests changes of one instance, a controller keeps its record and sends orders to a
// CRM, and the CRM works and reports.
//
// The model contains:
//   - the table of lifecycle/edgecloud and the decisions of its manager,
//   - the order of an operation, which the controller repeats until a report answers it,
//   - the CRM, which works on the cloudlet and reports the start and the result,
//   - the account of its objects that a CRM sends first when it connects again.
//
// A CRM that crashes loses everything except the content of the cloudlet.
//
// The model omits other instances and the conditions on cloudlets and ClusterInsts,
// forced rows, and the history. It does not distinguish a report without effect from a
// repeated one. Content is its version, the number of the operation that requested it.
// A connection that breaks loses its messages, and so does the connection of a CRM that
// crashes. The CRM changes the cloudlet and sends its report in one step: a crash
// between them equals a crash after a report that is lost.
//
// A deadline is a fault with a budget. Without a budget the controller repeats its order
// without limit. A failure of the platform changes nothing. A repeated order that was
// executed before a crash is not a failure.

package models

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/explore"
	"github.com/interlock-go/interlock/internal/decide"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// Part is one of four parts of the protocol of lifecycle. The protocol of the document
// has none of them.
type Part uint8

// The parts.
const (
	Fence    Part = 1 << iota // messages carry the operation id, and the controller compares it
	Outcomes                  // the account of a CRM lists operations with their results; the existence of an object is not a report
	Memory                    // the CRM executes no operation twice, and none that is older than its last one
	Resend                    // the controller repeats an order without a report

	Document Part = 0
	Complete      = Fence | Outcomes | Memory | Resend
)

// EdgeCloud is the protocol as a model. The zero EdgeCloud is the protocol of the
// document, without users and faults.
type EdgeCloud struct {
	Parts      Part
	Decisions  *Decisions // default: shipped
	Absent     bool       // the object does not exist at the start; default: it is Ready in version 1
	Operations uint8      // that the user requests
	Ordered    bool       // the channels keep the order
	Forgets    bool       // the CRM forgets reported removals, as edgecloud.ResourceManager does after 4096 others
	Durable    bool       // what is sent outlives a crash of the CRM, as in a queue between the two
	Capacity   int        // of each channel; default 2

	// Budgets: the maximum number of each fault.
	Loss, Duplicate, Disconnect, Crash int
	Failures                           uint8 // of the platform
	Deadlines                          uint8 // that pass while the CRM works
}

// order is what the controller orders. Its version is the number of its operation.
type order struct {
	Verb      edgecloud.Event
	Operation uint8
}

func (o order) String() string { return fmt.Sprintf("%s %d", o.Verb, o.Operation) }

// info is a report of the CRM: the state of the object at the CRM.
type info struct {
	State     edgecloud.State
	Operation uint8 // 0: unknown
}

func (i info) String() string {
	if i.Operation == 0 {
		return string(i.State)
	}
	return fmt.Sprintf("%s in operation %d", i.State, i.Operation)
}

// versioned is a record with the versions of its payload: the present one, and the saved one.
type versioned struct {
	object
	Content, Before uint8
}

// controller is the record and the remaining requests of the users.
type controller struct {
	versioned
	Left uint8
	Late uint8 // remaining deadlines
	Sent bool  // the order was sent, and is not repeated
}

func (c controller) String() string {
	if !c.Exists {
		return "NotPresent"
	}
	text := fmt.Sprintf("%s, version %d", clusters.States[c.State].Name, c.Content)
	if c.Rests(clusters) {
		return text
	}
	return fmt.Sprintf("%s, operation %d", text, c.Operation)
}

// agent is the CRM and the content of its cloudlet.
type agent struct {
	There uint8 // the version on the cloudlet, 0: none; survives a crash

	Link     link
	Known    order // the last order; without an operation: none
	At       progress
	Reported bool // the start, or the result, was reported
	Fails    uint8
}

func (a agent) String() string {
	text := "nothing there"
	if a.There != 0 {
		text = fmt.Sprintf("version %d there", a.There)
	}
	if a.Link != connected {
		text += ", " + a.Link.String()
	}
	if a.Known.Operation != 0 {
		text += fmt.Sprintf(", %v: %v", a.Known, a.At)
	}
	return text
}

// link is the connection of the CRM.
type link uint8

const (
	connected link = iota
	broken         // connected again; the account comes first
	crashed        // the CRM does not run
)

func (l link) String() string { return [...]string{"connected", "connection broken", "crashed"}[l] }

// progress is the progress of the CRM with its last order.
type progress uint8

const (
	idle progress = iota
	working
	done
	failed
)

func (p progress) String() string { return [...]string{"idle", "working", "done", "failed"}[p] }

// clusters is the table of ClusterInsts.
var clusters = edgecloud.ClusterInst.Table()

func (e *EdgeCloud) has(p Part) bool { return e.Parts&p == p }

// begin returns the initial object on both sides.
func (e *EdgeCloud) begin() (controller, agent) {
	c, a := controller{Left: e.Operations, Late: e.Deadlines}, agent{Fails: e.Failures}
	if !e.Absent {
		ready := state(edgecloud.Ready)
		c.Record, c.Content = decide.Record{Exists: true, State: ready, Origin: ready, Operation: 1}, 1
		a.There = 1
	}
	return c, a
}

// ask decides about a request. The content is that of a new object and of an edit.
func (e *EdgeCloud) ask(o versioned, q decide.Request, content uint8) (versioned, decide.Decision) {
	decisions := orShipped(e.Decisions)
	next, d := decisions.Ask(clusters, o.object, q)
	if !d.Write {
		return o, d
	}
	after := versioned{next, o.Content, o.Before}
	if d.Saves {
		after.Before = o.Content
	} else if decisions.Restores(&q, &o.Record) {
		after.Content = o.Before
	}
	if !d.Saved {
		after.Before = 0
	}
	if q.Edits || !o.Exists {
		after.Content = content
	}
	if d.Removes {
		after.Content = 0
	}
	return after, d
}

// fire fires an event at the record. The content of a new operation has the number of
// the operation.
func (e *EdgeCloud) fire(c controller, q decide.Request) (next controller, ok bool) {
	o, d := e.ask(c.versioned, q, uint8(c.Operation)+1)
	c.versioned = o
	if d.Write {
		c.Sent = false
	}
	return c, d.Write
}

// asks are the requests of the user.
func (e *EdgeCloud) asks(c controller, step func(string, controller)) {
	if c.Left == 0 {
		return
	}
	for _, verb := range []edgecloud.Event{edgecloud.Create, edgecloud.Update, edgecloud.Delete} {
		q := decide.Request{
			Verb: decide.Fire, Event: event(verb), Actor: edgecloud.User, Edits: verb == edgecloud.Update,
		}
		if verb == edgecloud.Create {
			q.Verb = decide.Create
		}
		if next, ok := e.fire(c, q); ok {
			next.Left--
			step(string(verb), next)
		}
	}
}

// coordinates are the events of the controller: it prepares a delete, and undoes a
// failed operation.
func (e *EdgeCloud) coordinates(c controller, step func(string, controller)) {
	for _, ev := range []edgecloud.Event{edgecloud.Prepared, edgecloud.PrepareFailed, edgecloud.Undo} {
		q := decide.Request{
			Verb: decide.Fire, Event: event(ev), Actor: edgecloud.Controller, Undo: ev == edgecloud.Undo, Force: ev == edgecloud.PrepareFailed,
		}
		if next, ok := e.fire(c, q); ok {
			step(string(ev), next)
		}
	}
}

// sweeps is the sweeper after a deadline. The deadline of a preparation passes at any
// time, the deadline of an order within the budget.
func (e *EdgeCloud) sweeps(c controller, step func(string, controller)) {
	q, care := orShipped(e.Decisions).Sweep(clusters, &c.Record, decide.Cause{Overdue: true})
	_, asked := e.order(c)
	if care != decide.FireEvent || asked && c.Late == 0 {
		return
	}
	if next, ok := e.fire(c, q); ok {
		if asked {
			next.Late--
		}
		step(clusters.Events[q.Event], next)
	}
}

// order returns the order for the present operation.
func (e *EdgeCloud) order(c controller) (order, bool) {
	if !c.Exists {
		return order{}, false
	}
	var verb edgecloud.Event
	switch edgecloud.State(clusters.States[c.State].Name) {
	case edgecloud.CreateRequested, edgecloud.Creating:
		verb = edgecloud.Create
	case edgecloud.UpdateRequested, edgecloud.Updating:
		verb = edgecloud.Update
	case edgecloud.DeleteRequested, edgecloud.Deleting:
		verb = edgecloud.Delete
	default:
		return order{}, false
	}
	return order{verb, uint8(c.Operation)}, true
}

// sends sends the order, once or repeatedly.
func (e *EdgeCloud) sends(c controller, send func(string, order, controller)) {
	o, ok := e.order(c)
	switch {
	case !ok:
	case e.has(Resend):
		send("order", o, c)
	case !c.Sent:
		c.Sent = true
		send("order", o, c)
	}
}

// receives is the controller that receives a report: the event that leads to the state
// in the report.
func (e *EdgeCloud) receives(c controller, i info, next func(string, controller)) {
	about := uint64(i.Operation)
	if about == 0 && !e.has(Fence|Outcomes) {
		about = c.Operation // the report, or the existence of the object, counts for any operation
	}
	ev, ok := eventTo(i.State)
	if !ok {
		return
	}
	q := decide.Request{Verb: decide.Report, Event: ev, Actor: edgecloud.CRM, Operation: about}
	o, d := e.ask(c.versioned, q, 0)
	if !d.Write || o.Exists && o.State != state(i.State) || !o.Exists && i.State != edgecloud.NotPresent {
		return // the CRM reports only results of the operation
	}
	// The operation continues, so that its order stays sent.
	c.versioned = o
	next("", c)
}

// takes is the CRM that receives an order.
func (e *EdgeCloud) takes(a agent, o order, next func(string, agent)) {
	switch {
	case a.Link == crashed:
		return // no CRM runs
	case !e.has(Memory), o.Operation > a.Known.Operation:
		a.Known, a.At, a.Reported = o, working, false
		next("", a)
	case o == a.Known && a.Reported:
		a.Reported = false // the CRM reports the result again
		next("", a)
	}
}

// answers are the reports of the CRM: the start, the result, and the account.
func (e *EdgeCloud) answers(a agent, say func(string, info, agent)) {
	send := func(label string, i info, next agent) {
		if e.Forgets && i.State == edgecloud.NotPresent {
			next.Known, next.At, next.Reported = order{}, idle, false
		}
		say(label, i, next)
	}
	named := func(s edgecloud.State) info {
		if !e.has(Fence) {
			return info{State: s}
		}
		return info{s, a.Known.Operation}
	}
	if a.Link == broken {
		a.Link = connected
		switch {
		case !e.has(Outcomes):
			send("account", info{State: a.has()}, a)
		case a.Known.Operation != 0 && a.reported() != edgecloud.NotPresent: // it reports a removal again only on request
			send("account", named(a.reported()), a)
		default:
			send("account", info{State: a.is()}, a)
		}
		return
	}
	if a.Link == crashed {
		return
	}
	if a.At == working {
		ended := a
		ended.At, ended.Reported = done, true
		ended.There = a.Known.Operation
		if a.Known.Verb == edgecloud.Delete {
			ended.There = 0
		}
		send("", named(ended.reported()), ended)
		if a.Fails > 0 && a.There != ended.There {
			ended := a
			ended.At, ended.Reported, ended.Fails = failed, true, a.Fails-1
			send("", named(ended.reported()), ended)
		}
	}
	if a.At != idle && !a.Reported {
		a.Reported = true
		send("", named(a.reported()), a)
	}
}

// reported is the state that the CRM reports for its last order.
func (a *agent) reported() edgecloud.State { return reports[a.Known.Verb][a.At] }

// reports are the states that a CRM reports.
var reports = map[edgecloud.Event][4]edgecloud.State{
	edgecloud.Create: {working: edgecloud.Creating, done: edgecloud.Ready, failed: edgecloud.CreateError},
	edgecloud.Update: {working: edgecloud.Updating, done: edgecloud.Ready, failed: edgecloud.UpdateError},
	edgecloud.Delete: {working: edgecloud.Deleting, done: edgecloud.NotPresent, failed: edgecloud.DeleteError},
}

// is reports whether the object exists.
func (a *agent) is() edgecloud.State {
	if a.There == 0 {
		return edgecloud.NotPresent
	}
	return edgecloud.Ready
}

// has returns the state of the object at the CRM, without regard to the order.
func (a *agent) has() edgecloud.State {
	if a.At == working {
		return a.reported()
	}
	return a.is()
}

// restarts is the start of the CRM after a crash.
func (e *EdgeCloud) restarts(a agent, step func(string, agent)) {
	if a.Link == crashed {
		a.Link = broken
		step("restart", a)
	}
}

// System returns the model.
func (e EdgeCloud) System() *explore.System {
	c, a := e.begin()
	sys := explore.New("edge cloud")
	lose, twice := sys.Budget("loss", e.Loss), sys.Budget("duplicate", e.Duplicate)
	ctl := explore.NewActor(sys, "controller", c)
	crm := explore.NewActor(sys, "crm", a)
	channel := explore.ChannelSpec{Capacity: cmp.Or(e.Capacity, 2), Ordered: e.Ordered, Lose: lose, Duplicate: twice}
	orders := explore.NewChannel[order](sys, "orders", channel)
	answers := explore.NewChannel[info](sys, "answers", channel)

	ctl.Acts(e.asks)
	ctl.Acts(e.coordinates).Fair()
	ctl.Acts(e.sweeps).Fair()
	crm.Acts(e.restarts).Fair()
	explore.Sends(ctl, orders, e.sends).Fair()
	explore.Receives(crm, orders, e.takes).Fair()
	explore.Sends(crm, answers, e.answers).Fair()
	explore.Receives(ctl, answers, e.receives).Fair()

	disconnect := sys.Fault("disconnect", sys.Budget("disconnect", e.Disconnect), orders, answers)
	explore.Strikes(disconnect, crm, func(a agent) (agent, bool) {
		ok := a.Link == connected
		a.Link = broken
		return a, ok
	})
	lost := []explore.AnyChannel{orders, answers}
	if e.Durable {
		lost = nil
	}
	crash := sys.Fault("crash", sys.Budget("crash", e.Crash), lost...)
	explore.Strikes(crash, crm, func(a agent) (agent, bool) {
		ok := a.Link != crashed
		return agent{There: a.There, Fails: a.Fails, Link: crashed}, ok
	})

	sys.Always("at rest, what is recorded is there", func(v *explore.View) error { return e.agree(ctl.In(v), crm.In(v)) })
	rests := func(v *explore.View) bool { c := ctl.In(v); return c.Rests(clusters) }
	sys.Rests(rests)
	sys.LeadsTo("every operation ends", nil, rests)
	return sys
}

// agree is the purpose of the protocol: an object at rest is in the cloudlet in the
// state of its record. A failed object may have any content.
func (e *EdgeCloud) agree(c controller, a agent) error {
	if c.Exists && (!c.Rests(clusters) || clusters.States[c.State].Kind == fsm.Failed) || c.Content == a.There {
		return nil
	}
	return fmt.Errorf("the controller has version %d, the cloudlet version %d", c.Content, a.There)
}

// state and event return the indexes in the table.
func state(s edgecloud.State) int { return edgecloud.ClusterInst.StateIndex(s) }
func event(e edgecloud.Event) int { return edgecloud.ClusterInst.EventIndex(e) }

// eventTo returns the event of the row that leads the CRM to a state.
func eventTo(s edgecloud.State) (ev int, ok bool) {
	crm, _ := edgecloud.ClusterInst.Table().ActorIndex(edgecloud.CRM)
	for _, r := range edgecloud.ClusterInst.Table().Rows {
		if r.To == state(s) && slices.Contains(r.Actors, crm) {
			return r.Event, true
		}
	}
	return 0, false
}
