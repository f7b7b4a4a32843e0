// The work of one object by processes that are owners: a process starts the work of an
// operation and writes its outcome. A process dies, or is slow and declared dead, and joins
// again with a new epoch. The sweeper of any living process finds the work of a dead owner
// and does it again.
//
// The model contains work that continues after its process was declared dead, a late report
// of an agent, and a store that loses its last commit, as a replica does that becomes the
// primary. The model knows which work and which report belong to the present operation
// without operation id, owner and epoch: it notices a decision that does not compare them.
//
// The model omits payloads, heartbeats, the records of owners, commit tokens, and the
// history in which a repeated report is found. Without tokens, the same process in the same
// epoch may get a lost operation id again: in the model it does one work at a time, and no
// version has both reports and lost commits. A deadline passes only if no process does the
// work and the owner is alive: the sweeper finds a dead owner before the deadline.

package models

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/explore"
	"github.com/interlock-go/interlock/internal/decide"
)

// Takeover is the model: how often each step happens in a run.
type Takeover struct {
	Operations uint8 // that users start
	Deaths     uint8 // of processes, declared or real; at most 2. Work survives a declared one
	Reports    uint8 // of the agent, one at a time
	Lost       uint8 // commits
	Checked    bool  // the store refuses what a dead owner writes; else only the decisions protect the object
}

// jobMachine has the rows that decisions about owners and reports depend on: the deadline
// starts the work again, a failure may become a success, and an event of the agent starts
// an operation.
var jobMachine = fsm.Must[struct{}](fsm.Spec[string, string]{
	Name: "job", Initial: "ready", Actors: []fsm.Actor{"user", "worker", "agent"},
	States: []fsm.State[string]{{Name: "ready"}, {Name: "working", Kind: fsm.Transitional}, {Name: "broken", Kind: fsm.Failed}},
	Rows: fsm.Rows(
		fsm.Move("ready", "start", "working").AlsoFrom("broken").By("user"),
		fsm.Redo("working", "late", time.Minute),
		fsm.Move("working", "done", "ready").AlsoFrom("broken").By("worker"),
		fsm.Move("working", "failed", "broken").By("worker", "agent"),
		fsm.Move("ready", "failed", "working").By("agent"),
	),
})

var jobs = jobMachine.Table()

// takeover is one state of the object, its processes and the agent.
type takeover struct {
	Now, Last jobRecord // the present record, and the one before the last commit
	Begun     uint8     // operations
	Alive     [2]bool   // processes, by index; so are the epochs
	Epochs    [2]uint64
	Jobs      [4]job // in order of their start; free places are zero
	Report    job    // of the agent, without an owner; it has not arrived
	Left      Takeover
	Moved     bool // by a report about an operation that is over
	Started   bool // by a report
}

// jobRecord is the record of the object. Serial identifies its operation: every start has
// another one, whatever the operation id is.
type jobRecord struct {
	object
	Serial uint8
}

// job is the work of an operation in a process.
type job struct {
	Owner            string
	Epoch, Operation uint64
	Serial           uint8
}

func (j job) String() string {
	return fmt.Sprintf("%s in epoch %d, operation %d", j.Owner, j.Epoch, j.Operation)
}

func (s takeover) String() string {
	text := fmt.Sprintf("%s, operation %d", jobs.States[s.Now.State].Name, s.Now.Operation)
	if s.Now.Owner != "" {
		text += fmt.Sprintf(" of %s in epoch %d", s.Now.Owner, s.Now.Epoch)
	}
	for _, j := range s.Jobs {
		if j != (job{}) {
			text += fmt.Sprintf("; work of %v", j)
		}
	}
	return text
}

// processes are the names of the processes.
var processes = [2]string{"A", "B"}

// living returns the epoch of an owner, 0 if it is dead.
func (s *takeover) living(owner string) uint64 {
	if p := slices.Index(processes[:], owner); p >= 0 && s.Alive[p] {
		return s.Epochs[p]
	}
	return 0
}

// executes reports whether a job is the work of the present operation.
func (s *takeover) executes(j job) bool { return j.Serial == s.Now.Serial && !s.Now.Rests(jobs) }

// takeovers are the decisions of the model.
type takeovers struct{ decisions *Decisions }

// Model returns the model with its decisions, nil: the shipped ones.
func (k Takeover) Model(d *Decisions) *explore.Model[takeover] {
	m := &takeovers{orShipped(d)}
	begin := takeover{Left: k, Alive: [2]bool{true, true}, Epochs: [2]uint64{1, 1}}
	begin.Now.Record = decide.Record{Exists: true, State: jobs.Initial, Origin: jobs.Initial}
	moved := func(s takeover) bool { return s.Moved }
	started := func(s takeover) bool { return s.Started }
	rests := func(s takeover) bool { return s.Now.Rests(jobs) }
	return &explore.Model[takeover]{
		Name: "takeover", Initial: []takeover{begin}, Next: m.next,
		Always: map[string]func(takeover) error{
			"reports are about the present operation": never(moved, "a report about an operation that is over moves the object"),
			"reports start no operation":              never(started, "a report starts an operation"),
		},
		Rests:   rests,
		LeadsTo: map[string]explore.LeadsTo[takeover]{"every operation ends": {To: rests}},
		Fair:    func(label string) bool { return !strings.HasSuffix(label, " starts work") }, // users need not
	}
}

// next yields the steps of the system.
func (m *takeovers) next(s takeover, step func(string, bool, takeover)) {
	if s.Moved || s.Started {
		return
	}
	for p := range processes {
		m.process(s, p, step)
	}
	for i, j := range s.Jobs {
		if j != (job{}) {
			m.outcomes(s, i, step)
		}
	}
	if s.Left.Lost > 0 && s.Last != (jobRecord{}) {
		lost := s
		lost.Left.Lost--
		lost.Now, lost.Last = s.Last, jobRecord{}
		step("the store loses a commit", true, lost)
	}
	switch r := s.Report; {
	case r != job{}:
		s.Report = job{}
		q := decide.Request{Verb: decide.Report, Event: jobMachine.EventIndex("failed"), Actor: "agent", Operation: r.Operation}
		step(fmt.Sprintf("the report about operation %d arrives", r.Operation), false, m.report(s, q, r.Serial == s.Now.Serial))
	case s.Left.Reports > 0 && !s.Now.Rests(jobs):
		s.Left.Reports--
		s.Report = job{Operation: s.Now.Operation, Serial: s.Now.Serial}
		step(fmt.Sprintf("the agent reports a failure in operation %d", s.Now.Operation), true, s)
	}
}

// lastNumber bounds the model: all later operations have this number too.
const lastNumber = 9

// ask decides about a request and commits the decision.
func (m *takeovers) ask(s takeover, q decide.Request) (takeover, decide.Decision) {
	o, d := m.decisions.Ask(jobs, s.Now.object, q)
	if !d.Write {
		return s, d
	}
	if s.Left.Lost > 0 {
		s.Last = s.Now
	}
	s.Now.object = o
	s.Now.Operation = min(o.Operation, lastNumber)
	if q.Verb == decide.Fire {
		s.Begun = min(s.Begun+1, lastNumber)
		s.Now.Serial = s.Begun
	}
	return s, d
}

// report is a report that arrives. It is about the present operation or an earlier one.
func (m *takeovers) report(s takeover, q decide.Request, present bool) takeover {
	next, d := m.ask(s, q)
	next.Moved, next.Started = d.Write && !present, d.Begins
	return next
}

// process are the steps of a process: it joins, starts work, and dies.
func (m *takeovers) process(s takeover, p int, step func(string, bool, takeover)) {
	name := processes[p]
	if !s.Alive[p] {
		s.Alive[p] = true
		s.Epochs[p]++
		step(name+" joins", false, s)
		return
	}
	if !slices.ContainsFunc(s.Jobs[:], func(j job) bool { return j.Owner == name && j.Epoch == s.Epochs[p] }) {
		m.starts(s, name, s.Epochs[p], step)
	}
	if s.Left.Deaths > 0 {
		s.Left.Deaths--
		s.Alive[p] = false
		step(name+" is slow, and declared dead", true, s)
		_ = slices.DeleteFunc(s.Jobs[:], func(j job) bool { return j.Owner == name })
		step(name+" dies", true, s)
	}
}

// starts starts work in a process: for a user, or because its sweeper finds the object.
func (m *takeovers) starts(s takeover, name string, epoch uint64, step func(string, bool, takeover)) {
	rec := &s.Now.Record
	start := func(label string, q decide.Request) {
		q.Owner, q.Epoch = name, epoch
		next, d := m.ask(s, q)
		if !d.Write {
			return
		}
		if d.Work == decide.NewWork || d.Work == decide.Redo && m.decisions.Redoes(&q, jobs, rec) {
			next.Jobs[slices.Index(s.Jobs[:], job{})] = job{name, epoch, next.Now.Operation, next.Now.Serial}
		}
		step(name+label, false, next)
	}
	living := s.living(rec.Owner)
	cause := decide.Cause{
		OwnerDead: rec.Owner != "" && m.decisions.OwnerDead(rec.Epoch, living),
		Overdue:   rec.Epoch == living && !slices.ContainsFunc(s.Jobs[:], s.executes),
	}
	if q, care := m.decisions.Sweep(jobs, rec, cause); care == decide.FireEvent {
		start(" sweeps", q)
	}
	if s.Left.Operations > 0 {
		s.Left.Operations--
		start(" starts work", decide.Request{Verb: decide.Fire, Event: jobMachine.EventIndex("start"), Actor: "user", Work: true})
	}
}

// outcomes are the two outcomes of a job.
func (m *takeovers) outcomes(s takeover, i int, step func(string, bool, takeover)) {
	j, over := s.Jobs[i], s
	_ = slices.Delete(over.Jobs[:], i, i+1)
	if s.Left.Checked && s.living(j.Owner) != j.Epoch {
		step(fmt.Sprintf("%v: refused by the store", j), false, over)
		return
	}
	report := decide.Request{Actor: "worker", Operation: j.Operation, Owned: true, Owner: j.Owner, Epoch: j.Epoch}
	events := decide.Events{Done: []int{jobMachine.EventIndex("done")}, Failed: []int{jobMachine.EventIndex("failed")}}
	for _, event := range []string{"done", "failed"} {
		next := over
		if q, ok := m.decisions.Outcome(report, jobs, &s.Now.Record, event == "done", events); ok {
			next = m.report(over, q, s.executes(j))
		}
		step(fmt.Sprintf("%v: %s", j, event), false, next)
	}
}
