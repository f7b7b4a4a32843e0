package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// load is the payload of the objects that managers move here.
type load struct {
	Weight int
	Marks  []string
}

var errHeavy = errors.New("too heavy")

// cranes is the table of these objects: with operations that end, fail and are
// superseded, a guard, a deadline, a forced row and an undo.
var cranes = fsm.Must[load](fsm.Spec[string, string]{
	Name: "crane of the suite", Initial: gone, Actors: []fsm.Actor{"user", "worker"},
	States: []fsm.State[string]{
		{Name: gone, Kind: fsm.Absent},
		{Name: idle},
		{Name: moving, Kind: fsm.Transitional, Target: new(idle)},
		{Name: "Parking", Kind: fsm.Transitional},
		{Name: broken, Kind: fsm.Failed},
	},
	Rows: fsm.Rows(
		fsm.Move(gone, "make", idle).By("user"),
		fsm.Move(idle, "lift", moving).By("user").If(fsm.When("light", func(_ context.Context, _, l *load) error {
			if l.Weight > 5 {
				return errHeavy
			}
			return nil
		})),
		fsm.Move(moving, "done", idle).By("worker"),
		fsm.Return(moving, "undo").By("user", "worker"),
		fsm.Move(moving, "fail", broken).AlsoFrom("Parking").By("worker"),
		fsm.Move(moving, "lost", broken).AlsoFrom("Parking").After(100*time.Hour),
		fsm.Move(moving, "park", "Parking").By("user").Superseding(),
		fsm.Move("Parking", "done", gone).By("worker"),
		fsm.Ignore(idle, "done").By("worker"),
		fsm.Move(broken, "repair", idle).By("user").OnlyForced(),
		fsm.FromAny("scrap", gone).Excluding(moving, "Parking").By("user"),
	),
})

var (
	craneEvents = []string{"make", "lift", "done", "undo", "fail", "park", "repair", "scrap", "no such event"}
	craneActors = []fsm.Actor{"user", "worker", "nobody"}
)

// errand is one call of a manager.
type errand struct {
	verb                 errandKind
	object, event, actor int
	apt                  bool // event and actor are taken from the rows of the object's state
	back                 int  // of a report: how many operations ago, -1 is to come
	weight               int  // edits the payload; 0 does not, 9 refuses to
	required             int  // object of a precondition; -1 none
	allowed              int  // state that it requires
	to                   int  // state
	force, fails         bool
	messages, limit      int
}

type errandKind uint8

const (
	createErrand errandKind = iota
	fireErrand
	reportErrand
	doErrand
	overrideErrand
	getErrand
	listErrand
	historyErrand
	explainErrand
	messagesErrand
	errandKinds
)

var errandNames = [errandKinds]string{"create", "fire", "report", "do", "override", "get", "list", "history", "explain", "messages"}

const craneObjects = 3

func drawErrand(n source, has lifecycle.Capabilities) errand {
	e := errand{
		verb: errandKind(n(int(errandKinds))), object: n(craneObjects), event: n(len(craneEvents)), actor: n(len(craneActors)),
		back: n(4) - 1, required: -1, to: n(len(cranes.Table().States)), force: n(2) == 0, fails: n(3) == 0, limit: 1 + n(4),
	}
	if n(3) > 0 { // what makes sense
		e.verb, e.apt, e.back = errandKind(n(int(overrideErrand))), true, max(0, n(6)-4)
	}
	if n(2) == 0 {
		e.weight = 1 + n(9)
	}
	if has.Changes > 1 && n(4) == 0 {
		e.required, e.allowed = n(craneObjects), n(len(cranes.Table().States))
	}
	if has.Messages {
		e.messages = max(0, n(4)-1)
	}
	return e
}

// String tells the errand as a line for people.
func (e errand) String() string {
	line := fmt.Sprintf("%s object %d", errandNames[e.verb], e.object)
	by := fmt.Sprintf("%s of %s", craneEvents[e.event], craneActors[e.actor])
	if e.apt {
		by = fmt.Sprintf("event %d of those of its state", e.event)
	}
	switch e.verb {
	case createErrand, fireErrand, doErrand:
		line += fmt.Sprintf(" by %s, weight %d, force %t, %d messages", by, e.weight, e.force, e.messages)
		if e.required >= 0 {
			line += fmt.Sprintf(", requires object %d in %s", e.required, cranes.Table().States[e.allowed].Name)
		}
		if e.verb == doErrand {
			line += fmt.Sprintf(", the work fails: %t", e.fails)
		}
	case reportErrand:
		line += fmt.Sprintf(": %s, about the operation %d before", by, e.back)
	case overrideErrand:
		line += fmt.Sprintf(" to %s", cranes.Table().States[e.to].Name)
	case listErrand:
		line += fmt.Sprintf(" and others in %s: %t, at most %d", cranes.Table().States[e.to].Name, e.force, e.limit)
	case getErrand, historyErrand, explainErrand, messagesErrand, errandKinds:
	}
	return line
}

func differManagers(t testing.TB, reference, other *Harness) {
	t.Helper()
	stores, both := two(t, reference, other)
	differ(t, reference, 25,
		func(n source) errand { return drawErrand(n, both) },
		func(run int) (players [2]func(errand) string) {
			for i := range stores {
				players[i] = newForeman(t, stores[i], both, run).take
			}
			return players
		})
}

// foreman makes the calls of a sequence to a manager over one store.
type foreman struct {
	testing.TB
	has    lifecycle.Capabilities
	m      *lifecycle.Manager[string, string, load]
	outbox *player // of the store itself
	run    int
	base   [craneObjects]lifecycle.Record[string, load] // where this life began
	names  names[revision]
	tokens names[lifecycle.Token]
	calls  int
}

func newForeman(t testing.TB, store lifecycle.Store, has lifecycle.Capabilities, run int) *foreman {
	return &foreman{
		TB: t, has: has, run: run, outbox: newPlayer(t, store, has, run),
		names: names[revision]{}, tokens: names[lifecycle.Token]{},
		m: lifecycle.Must(cranes, store, &lifecycle.Config[string]{
			Undo: []string{"undo"}, WorkerActor: "worker", Done: []string{"done"}, Failed: []string{"fail"},
		}),
	}
}

func (f *foreman) id(o int) string { return fmt.Sprintf("run %d object %d", f.run, o) }

func (f *foreman) take(e errand) string {
	f.calls++
	ctx, id, event, actor := f.Context(), f.id(e.object), craneEvents[e.event], craneActors[e.actor]
	if e.apt {
		event, actor = f.apt(e)
	}
	switch e.verb {
	case createErrand:
		r, err := f.m.Create(ctx, id, event, actor, load{Weight: e.weight})
		if err == nil {
			f.base[e.object] = r
		}
		return f.tell(e.object, r, err)
	case fireErrand:
		r, err := f.m.Fire(ctx, id, event, actor, f.change(e))
		return f.tell(e.object, r, err)
	case doErrand:
		return f.do(e, event, actor)
	case reportErrand:
		return f.report(e, event, actor)
	case overrideErrand:
		r, err := f.m.Override(ctx, id, cranes.Table().States[e.to].Name, actor, f.reason(), f.change(e))
		return f.tell(e.object, r, err)
	case getErrand:
		r, err := f.m.Get(ctx, id)
		return f.tell(e.object, r, err)
	case listErrand:
		return f.list(e)
	case historyErrand:
		return f.history(e.object)
	case explainErrand:
		return f.explain(e)
	case messagesErrand, errandKinds:
	}
	return tellMessages(f.outbox.outbox(all))
}

// apt picks an event that the table has in the object's state, and its actor.
func (f *foreman) apt(e errand) (event string, actor fsm.Actor) {
	state := gone
	if r, err := f.m.Get(f.Context(), f.id(e.object)); err == nil {
		state = r.State
	}
	table := cranes.Table()
	var rows []int
	for i := range table.Rows {
		for _, s := range table.Rows[i].From {
			if table.States[s].Name == state && len(table.Rows[i].Actors) > 0 {
				rows = append(rows, i)
			}
		}
	}
	row := &table.Rows[rows[e.event%len(rows)]]
	return table.Events[row.Event], table.Actors[row.Actors[e.actor%len(row.Actors)]]
}

// report tells the verdict. Repeated and refused only a history tells apart, and
// what is kept of an object that was removed is the store's to say.
func (f *foreman) report(e errand, event string, actor fsm.Actor) string {
	id := f.id(e.object)
	r, err := f.outbox.store.Get(f.Context(), lifecycle.Key{Machine: cranes.Table().Name, ID: id})
	if err != nil {
		f.Fatalf("Get: %v", err)
	}
	if r.Exists() && r.Operation == f.base[e.object].Operation {
		return "" // none has begun in this life: what the number means depends on the lives before
	}
	v, err := f.m.Report(f.Context(), id, lifecycle.OpID(max(0, int(r.Operation)-e.back)), event, actor, f.reason())
	if v != lifecycle.Applied && (!r.Exists() || v != lifecycle.Stale && !f.has.History) {
		return "not applied, " + class(err)
	}
	return v.String() + ", " + class(err)
}

func (f *foreman) reason() string { return fmt.Sprint("call ", f.calls) }

var errEdit = fmt.Errorf("%w: nobody lifts that", lifecycle.ErrInvalid)

func (f *foreman) change(e errand) *lifecycle.Change[load] {
	c := &lifecycle.Change[load]{Reason: f.reason(), Force: e.force}
	if e.weight > 0 {
		mark := f.reason()
		c.Edit = func(l *load) error {
			if e.weight == 9 {
				return errEdit
			}
			l.Weight, l.Marks = e.weight, append(l.Marks, mark)
			return nil
		}
	}
	if e.required >= 0 {
		c.Require = append(c.Require, f.m.Require(f.id(e.required), cranes.Table().States[e.allowed].Name))
	}
	for i := range e.messages {
		c.Messages = append(c.Messages, lifecycle.Message{Topic: "t", Key: fmt.Sprint(e.object), Payload: fmt.Append(nil, f.calls, "/", i)})
	}
	return c
}

var errWork = errors.New("the work failed")

// do does an operation to its end.
func (f *foreman) do(e errand, event string, actor fsm.Actor) string {
	existed := true
	if _, err := f.m.Get(f.Context(), f.id(e.object)); errors.Is(err, lifecycle.ErrNotFound) {
		existed = false
	}
	h, err := f.m.Do(f.Context(), f.id(e.object), event, actor, lifecycle.Func(func(context.Context) error {
		if e.fails {
			return errWork
		}
		return nil
	}), f.change(e))
	if err != nil {
		return "not admitted: " + class(err)
	}
	if !existed {
		f.base[e.object] = h.Admitted()
	}
	line := "admitted: " + f.tell(e.object, h.Admitted(), nil)
	r, err := h.Wait(f.Context())
	if outcome, ok := errors.AsType[*lifecycle.OutcomeError](err); ok {
		return fmt.Sprintf("%s; %v, %v, %s: %s", line, outcome.Outcome, outcome.Err, class(outcome.Unwritten), f.tell(e.object, r, nil))
	}
	return line + "; ended: " + f.tell(e.object, r, err)
}

// tell describes a record, or why there is none.
func (f *foreman) tell(o int, r lifecycle.Record[string, load], err error) string {
	if err != nil {
		line := class(err)
		if winner, ok := f.m.Current(err); ok {
			line += ": " + f.tell(o, winner, nil)
		}
		return line
	}
	line := fmt.Sprintf("%s from %s, target %q, #%d, operation %d, revision %d, owner %q %d, by %s with %q: %q, %+v",
		r.State, r.Origin, r.Target, r.Sequence-f.base[o].Sequence, r.Operation-f.base[o].Operation, f.names.of(revision{o, r.Revision}),
		r.Owner, r.Epoch, r.Actor, r.Event, r.Reason, r.Payload)
	if !r.Deadline.IsZero() {
		line += fmt.Sprintf(", due after %v", r.Deadline.Sub(r.ChangedAt))
	}
	return line
}

func (f *foreman) list(e errand) string {
	sel := lifecycle.Select[string]{Limit: e.limit, After: fmt.Sprintf("run %d", f.run)}
	if e.force {
		sel.States = []string{cranes.Table().States[e.to].Name, idle}
	}
	found, err := f.m.List(f.Context(), sel)
	lines := []string{class(err)}
	for _, r := range found {
		if o := strings.TrimPrefix(r.ID, fmt.Sprintf("run %d object ", f.run)); len(o) == 1 { // not of another run
			lines = append(lines, r.ID[len(r.ID)-1:]+" "+f.tell(int(o[0]-'0'), r, nil))
		}
	}
	return strings.Join(lines, "; ")
}

func (f *foreman) history(o int) string {
	if _, err := f.m.Get(f.Context(), f.id(o)); err != nil || !f.has.History {
		return class(err) // what is kept of a removed object is the store's to say
	}
	rows, err := f.m.History(f.Context(), f.id(o), f.base[o].Sequence, 0)
	lines := []string{class(err)}
	for _, row := range rows[max(0, len(rows)-kept):] {
		lines = append(lines, fmt.Sprintf("#%d revision %d token %d operation %d from %q/%q to %s/%s by %s with %q: %q",
			row.Sequence-f.base[o].Sequence, f.names.of(revision{o, row.Revision}), f.tokens.of(row.Token), row.Operation-f.base[o].Operation,
			row.From, row.FromOrigin, row.To, row.Origin, row.Actor, row.Event, row.Reason))
	}
	return strings.Join(lines, "; ")
}

func (f *foreman) explain(e errand) string {
	var require []lifecycle.Precondition
	if e.required >= 0 {
		require = append(require, f.m.Require(f.id(e.required), cranes.Table().States[e.allowed].Name))
	}
	x, err := f.m.Explain(f.Context(), f.id(e.object), require...)
	if err != nil {
		return class(err)
	}
	x.Operation -= f.base[e.object].Operation
	x.Since, x.Deadline = time.Time{}, time.Time{}
	text, err := json.Marshal(x)
	if err != nil {
		f.Fatalf("an explanation that cannot be written: %v", err)
	}
	return string(text)
}
