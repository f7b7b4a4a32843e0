// The protocol of the document "State Transitions for ClusterInst/AppInst": a
// user asks for changes of one instance, a controller keeps its record and asks a
// CRM, the CRM works and answers.
//
// What is there: the table of lifecycle/edgecloud and the decisions that its
// manager performs; the order of an operation, which is sent as long as nobody has
// answered it; the CRM, which works on the cloudlet, may say that it has begun, and
// says how it ended; the account that it gives first when it has connected again.
// A CRM that crashes forgets everything but what is on the cloudlet.
//
// What is not: other instances, and with them the conditions on cloudlets and
// ClusterInsts; rows that are forced; content but its version, which is the number
// of the operation that asked for it; the history, so that a report which changes
// nothing is not told apart from one that was accepted before. A connection that
// breaks loses what is in it, and so does one whose CRM crashes. The time that a
// CRM needs between the change of the cloudlet and its answer is none: a crash in
// between is one right after the answer was sent, which is lost with it.
//
// A deadline is a fault, with a budget: with none the sweeper sends again for as
// long as it takes. A platform that fails has changed nothing, and what it is asked
// for again, after a crash, is no failure where it is done already.

package models

import (
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/check"
	"github.com/interlock-go/interlock/internal/decide"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// Part is one of the four things that the protocol of lifecycle has, and that of
// the document has not.
type Part uint8

// The parts.
const (
	Fence    Part = 1 << iota // messages name the operation they are about, and the controller compares it
	Outcomes                  // what a CRM accounts for names operations and how they ended; that an object is there is no answer
	Memory                    // the CRM does no operation twice and none that is older than one it knows
	Resend                    // an order without answer is sent again

	Document Part = 0
	Complete      = Fence | Outcomes | Memory | Resend
)

// EdgeCloud is the protocol as a model. The zero EdgeCloud is that of the document,
// without users and faults.
type EdgeCloud struct {
	Parts      Part
	Decisions  *Decisions // default: Shipped
	Absent     bool       // the object is not there in the beginning, instead of Ready in version 1
	Operations uint8      // that the user asks for
	Ordered    bool       // the channels keep the order
	Forgets    bool       // the CRM forgets reported removals, as edgecloud.ResourceManager does after edgecloud.MaxRemembered others
	Durable    bool       // what is sent outlives a crash of the CRM, as in a queue between the two
	Capacity   int        // of each channel; default 2

	// Budgets: how often it happens, at most.
	Loss, Duplicate, Disconnect, Crash int
	Failures                           uint8 // the CRM gives up, and nothing has changed
	Deadlines                          uint8 // the sweeper gives up, and nobody tells the CRM
}

// order is what the CRM is asked for. Its version is the number of its operation.
type order struct {
	Verb      edgecloud.Event
	Operation uint8
}

func (o order) String() string { return fmt.Sprintf("%s %d", o.Verb, o.Operation) }

// info is what the CRM says: the state that it has the object in.
type info struct {
	State     edgecloud.State
	Operation uint8 // 0: it does not know, or does not say
}

func (i info) String() string {
	if i.Operation == 0 {
		return string(i.State)
	}
	return fmt.Sprintf("%s in operation %d", i.State, i.Operation)
}

// controller is the record, and what the users still will ask for.
type controller struct {
	object
	Left uint8
	Late uint8 // deadlines that may still pass
	Sent bool  // the order is sent, and not again
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

// agent is the CRM, and what is on its cloudlet.
type agent struct {
	There uint8 // the version that is on the cloudlet, 0: none. It outlives a crash

	Link  link
	Known order // the last; of no operation: none
	At    progress
	Told  bool // that it has begun, or how it ended
	Fails uint8
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

// link is the CRM's connection.
type link uint8

const (
	connected link = iota
	broken         // it is there again, and an account comes first
	crashed        // there is no CRM
)

func (l link) String() string { return [...]string{"connected", "connection broken", "crashed"}[l] }

// progress is how far a CRM is with what it was last asked for.
type progress uint8

const (
	idle progress = iota
	working
	done
	failed
)

func (p progress) String() string { return [...]string{"idle", "working", "done", "failed"}[p] }

// clusters is the table that runs.
var clusters = edgecloud.ClusterInst.Table()

// edge is an EdgeCloud with its defaults.
type edge struct {
	EdgeCloud
	decisions Decisions
}

func (p EdgeCloud) edge() *edge {
	e := &edge{EdgeCloud: p, decisions: Shipped()}
	if p.Decisions != nil {
		e.decisions = *p.Decisions
	}
	if p.Parts&Fence == 0 {
		e.decisions = e.decisions.Unfenced()
	}
	if e.Capacity == 0 {
		e.Capacity = 2
	}
	return e
}

func (e *edge) has(p Part) bool { return e.Parts&p != 0 }

// begin is the object in the beginning, on both sides.
func (e *edge) begin() (controller, agent) {
	c, a := controller{Left: e.Operations, Late: e.Deadlines}, agent{Fails: e.Failures}
	if !e.Absent {
		ready := state(edgecloud.Ready)
		c.object = object{Record: decide.Record{Exists: true, State: ready, Origin: ready, Operation: 1}, Content: 1}
		a.There = 1
	}
	return c, a
}

// fire has an event fired at the record. Content of an operation that begins is
// named after it.
func (e *edge) fire(c controller, q decide.Request) (next controller, ok bool) {
	o, d := e.decisions.Ask(clusters, c.object, q, uint8(c.Operation)+1)
	c.object = o
	if d.Write {
		c.Sent = false
	}
	return c, d.Write
}

// asks are the operations that the user may ask for.
func (e *edge) asks(c controller, step func(string, controller)) {
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

// coordinates are the moves that the controller owes: it prepares a delete, and
// undoes what has failed.
func (e *edge) coordinates(c controller, step func(string, controller)) {
	for _, ev := range []edgecloud.Event{edgecloud.Prepared, edgecloud.PrepareFailed, edgecloud.Undo} {
		q := decide.Request{Verb: decide.Fire, Event: event(ev), Actor: edgecloud.Controller, Undo: ev == edgecloud.Undo}
		if next, ok := e.fire(c, q); ok {
			step(string(ev), next)
		}
	}
}

// sweeps is the sweeper that finds a deadline over: of what was asked of nobody
// any time, of an order as often as the budget says.
func (e *edge) sweeps(c controller, step func(string, controller)) {
	q, care := e.decisions.Sweep(clusters, &c.Record, decide.Cause{Overdue: true})
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

// order is what the CRM is to be asked for.
func (e *edge) order(c controller) (order, bool) {
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

// sends sends the order, once or again and again.
func (e *edge) sends(c controller, send func(string, order, controller)) {
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

// hears is the controller that gets what a CRM says: a report of the event that
// leads a CRM to the state it says.
func (e *edge) hears(c controller, i info, next func(string, controller)) {
	about := uint64(i.Operation)
	if about == 0 && !e.has(Outcomes) {
		about = c.Operation // being there is taken for an answer
	}
	ev, ok := tells(i.State)
	if !ok {
		return
	}
	q := decide.Request{Verb: decide.Report, Event: ev, Actor: edgecloud.CRM, Operation: about}
	o, d := e.decisions.Ask(clusters, c.object, q, 0)
	if !d.Write || o.Exists && o.State != state(i.State) || !o.Exists && i.State != edgecloud.NotPresent {
		return // what an operation cannot lead to is not said by its CRM
	}
	// What was sent stays sent: the operation goes on.
	c.object = o
	next("", c)
}

// takes is the CRM that gets an order.
func (e *edge) takes(a agent, o order, next func(string, agent)) {
	switch {
	case a.Link == crashed:
		return // nobody is there
	case !e.has(Memory), o.Operation > a.Known.Operation:
		a.Known, a.At, a.Told = o, working, false
		next("", a)
	case o == a.Known && a.Told:
		a.Told = false // what is known is said again
		next("", a)
	}
}

// answers is what the CRM says: that it works, how it has ended, all that it has.
func (e *edge) answers(a agent, say func(string, info, agent)) {
	send := func(label string, i info, next agent) {
		if e.Forgets && i.State == edgecloud.NotPresent {
			next.Known, next.At, next.Told = order{}, idle, false
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
		case a.Known.Operation != 0 && a.says() != edgecloud.NotPresent: // which is said again when it is asked for
			send("account", named(a.says()), a)
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
		ended.At, ended.Told = done, true
		ended.There = a.Known.Operation
		if a.Known.Verb == edgecloud.Delete {
			ended.There = 0
		}
		send("", named(ended.says()), ended)
		if a.Fails > 0 && a.There != ended.There {
			ended := a
			ended.At, ended.Told, ended.Fails = failed, true, a.Fails-1
			send("", named(ended.says()), ended)
		}
	}
	if a.At != idle && !a.Told {
		a.Told = true
		send("", named(a.says()), a)
	}
}

// says is the state that the CRM is in with what it was last asked for.
func (a *agent) says() edgecloud.State { return sayings[a.Known.Verb][a.At] }

// sayings are the words of a CRM.
var sayings = map[edgecloud.Event][4]edgecloud.State{
	edgecloud.Create: {working: edgecloud.Creating, done: edgecloud.Ready, failed: edgecloud.CreateError},
	edgecloud.Update: {working: edgecloud.Updating, done: edgecloud.Ready, failed: edgecloud.UpdateError},
	edgecloud.Delete: {working: edgecloud.Deleting, done: edgecloud.NotPresent, failed: edgecloud.DeleteError},
}

// is is whether the object is there.
func (a *agent) is() edgecloud.State {
	if a.There == 0 {
		return edgecloud.NotPresent
	}
	return edgecloud.Ready
}

// has is the state that a CRM has an object in, whatever it was asked for.
func (a *agent) has() edgecloud.State {
	if a.At == working {
		return a.says()
	}
	return a.is()
}

// restarts is the CRM that is started after a crash.
func (e *edge) restarts(a agent, step func(string, agent)) {
	if a.Link == crashed {
		a.Link = broken
		step("restart", a)
	}
}

// System returns the model for package check.
func (p EdgeCloud) System() *check.System {
	e := p.edge()
	c, a := e.begin()
	sys := check.NewSystem("edge cloud")
	lose, twice := sys.Budget("loss", p.Loss), sys.Budget("duplicate", p.Duplicate)
	ctl := check.NewActor(sys, "controller", c)
	crm := check.NewActor(sys, "crm", a)
	channel := check.Channel{Capacity: e.Capacity, Ordered: p.Ordered, Lose: lose, Duplicate: twice}
	orders := check.NewChannel[order](sys, "orders", channel)
	answers := check.NewChannel[info](sys, "answers", channel)

	ctl.Acts(e.asks)
	ctl.Acts(e.coordinates)
	ctl.Acts(e.sweeps)
	crm.Acts(e.restarts)
	check.Sends(ctl, orders, e.sends)
	check.Receives(crm, orders, e.takes)
	check.Sends(crm, answers, e.answers)
	check.Receives(ctl, answers, e.hears)

	disconnect := sys.Fault("disconnect", sys.Budget("disconnect", p.Disconnect), orders, answers)
	check.Strikes(disconnect, crm, func(a agent) (agent, bool) {
		ok := a.Link == connected
		a.Link = broken
		return a, ok
	})
	lost := []check.Channels{orders, answers}
	if p.Durable {
		lost = nil
	}
	crash := sys.Fault("crash", sys.Budget("crash", p.Crash), lost...)
	check.Strikes(crash, crm, func(a agent) (agent, bool) {
		ok := a.Link != crashed
		return agent{There: a.There, Fails: a.Fails, Link: crashed}, ok
	})

	sys.Always("at rest, what is recorded is there", func(v *check.View) error { return e.agree(ctl.In(v), crm.In(v)) })
	sys.Rests(func(v *check.View) bool { c := ctl.In(v); return c.Rests(clusters) })
	return sys
}

// agree is what the protocol is for: an object at rest is in the cloudlet as its
// record says. What has failed is nobody's word for anything.
func (e *edge) agree(c controller, a agent) error {
	if c.Exists && (!c.Rests(clusters) || clusters.States[c.State].Kind == fsm.Failed) || c.Content == a.There {
		return nil
	}
	return fmt.Errorf("the controller has version %d, the cloudlet version %d", c.Content, a.There)
}

// state and event are the indexes of what is in the table.
func state(s edgecloud.State) int { return edgecloud.ClusterInst.StateIndex(s) }
func event(e edgecloud.Event) int { return edgecloud.ClusterInst.EventIndex(e) }

// tells is the event that a CRM's state tells: the one by which it leads there.
func tells(s edgecloud.State) (ev int, ok bool) {
	for r := range edgecloud.ClusterInst.Rows() {
		if r.To == s && slices.Contains(r.Actors, edgecloud.CRM) {
			return event(r.Event), true
		}
	}
	return 0, false
}
