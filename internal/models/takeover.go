// The work of one object by processes that are owners: a process starts the work of an
// operation and writes its outcome. A process dies, or is slow and declared dead, and joins
// again with a new epoch. The sweeper of any living process finds the work of a dead owner
// and does it again.
//
// The model contains:
//   - the admission, the outcome and the heartbeat of work,
//   - work that continues after its process was declared dead,
//   - reports of an agent that come late,
//   - a store that loses its last commit, as a replica does that becomes the primary.
//
// The model knows which work and which report belong to the present operation without the
// operation id, the owner and the epoch. So it notices a decision that does not compare them.
//
// The model omits payloads, the records of owners, commit tokens, and the history in which
// a repeated report is found. Without tokens, the same process in the same epoch may get a
// lost operation id again: in the model it does one work at a time. The deadline passes
// only if no process does the work and the owner is alive: a dead owner is found by its
// heartbeats.

package models

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/explore"
	"github.com/interlock-go/interlock/internal/decide"
)

// Takeover is the model.
type Takeover struct {
	Decisions *Decisions // default: Shipped
	Limits    TakeoverLimits
}

// TakeoverLimits is how often each step happens in a run.
type TakeoverLimits struct {
	Operations uint8 // that users start
	Deaths     uint8 // of processes, with their work
	Slow       uint8 // processes that are declared dead, and whose work continues
	Reports    uint8 // of the agent; at most 2
	Lost       uint8 // commits
}

// jobs has the rows that decisions about owners and reports depend on: the deadline starts
// the work again, a failure may become a success, and an event of the agent starts an
// operation.
var jobs = fsm.Must[struct{}](fsm.Spec[string, string]{
	Name: "job", Initial: "ready", Actors: []fsm.Actor{"user", "worker", "agent"},
	States: []fsm.State[string]{{Name: "ready"}, {Name: "working", Kind: fsm.Transitional}, {Name: "broken", Kind: fsm.Failed}},
	Rows: fsm.Rows(
		fsm.Move("ready", "start", "working").AlsoFrom("broken").By("user"),
		fsm.Redo("working", "late", time.Minute),
		fsm.Move("working", "done", "ready").AlsoFrom("broken").By("worker", "agent"),
		fsm.Move("working", "failed", "broken").By("worker", "agent"),
		fsm.Move("ready", "failed", "working").By("agent"),
	),
}).Table()

// jobEvent returns the index of an event.
func jobEvent(name string) int {
	e, _ := jobs.EventIndex(name)
	return e
}

// takeover is one state of the object, its processes and the agent.
type takeover struct {
	Now, Last jobRecord // the present record, and the one before the last commit
	Begun     uint8     // operations
	Processes [2]jobProcess
	Jobs      [4]job       // by Serial; free places are zero
	Reports   [2]jobReport // that have not arrived; free places are zero
	Left      TakeoverLimits
	Wrong     string // what happened although it must not
}

// lastNumber bounds the model: all later operations have this number too.
const lastNumber = 9

// jobRecord is the record of the object. Serial identifies its operation: every start has
// another one, whatever the operation id is.
type jobRecord struct {
	object
	Serial uint8
}

// jobProcess is a process as an owner.
type jobProcess struct {
	Alive bool
	Epoch uint64
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

// jobReport is a report of the agent.
type jobReport struct {
	Event     string
	Operation uint64
	Serial    uint8
}

func (s takeover) String() string {
	text := fmt.Sprintf("%s, operation %d", jobs.States[s.Now.State].Name, s.Now.Operation)
	if s.Now.Owner != "" {
		text += fmt.Sprintf(" of %s in epoch %d", s.Now.Owner, s.Now.Epoch)
	}
	for p, at := range s.Processes {
		if !at.Alive {
			text += fmt.Sprintf("; %s is dead", processName(p))
		}
	}
	for _, j := range s.Jobs {
		if j != (job{}) {
			text += fmt.Sprintf("; work of %v", j)
		}
	}
	return text
}

// executes reports whether a job is the work of the present operation.
func (s *takeover) executes(j job) bool { return j.Serial == s.Now.Serial && !s.Now.Rests(jobs) }

// living returns the epoch of an owner, 0 if it is dead.
func (s *takeover) living(owner string) uint64 {
	for p, at := range s.Processes {
		if processName(p) == owner && at.Alive {
			return at.Epoch
		}
	}
	return 0
}

func processName(p int) string { return string(rune('A' + p)) }

// takeovers is a Takeover with its defaults filled in.
type takeovers struct{ decisions Decisions }

// Model returns the model.
func (k Takeover) Model() *explore.Model[takeover] {
	m := &takeovers{orShipped(k.Decisions)}
	begin := takeover{Left: k.Limits, Processes: [2]jobProcess{{true, 1}, {true, 1}}}
	begin.Now.Record = decide.Record{Exists: true, State: jobs.Initial, Origin: jobs.Initial}
	return &explore.Model[takeover]{
		Name: "takeover", Initial: []takeover{begin},
		Next: func(s takeover, step func(string, bool, takeover)) {
			if s.Wrong != "" {
				return
			}
			for p := range s.Processes {
				m.processes(s, p, step)
			}
			for i, j := range s.Jobs {
				if j != (job{}) {
					m.works(s, i, step)
				}
			}
			m.reports(s, step)
			if s.Left.Lost > 0 && s.Last != s.Now && s.Last != (jobRecord{}) {
				s.Left.Lost--
				s.Now, s.Last = s.Last, jobRecord{}
				step("the store loses a commit", true, s)
			}
		},
		Always: map[string]func(takeover) error{
			"only the present operation moves the object": func(s takeover) error {
				if s.Wrong != "" {
					return errors.New(s.Wrong)
				}
				return nil
			},
		},
		Rests: func(s takeover) bool { return s.Now.Rests(jobs) },
	}
}

// ask decides about a request and commits the decision.
func (m *takeovers) ask(s takeover, q decide.Request) (takeover, decide.Decision) {
	o, d := m.decisions.Ask(jobs, s.Now.object, q, 0)
	if !d.Write || d.MetadataOnly {
		return s, d
	}
	if s.Left.Lost > 0 {
		s.Last = s.Now
	}
	s.Now.object = o
	s.Now.Operation = min(o.Operation, lastNumber)
	if q.Verb == decide.Fire && !o.Rests(jobs) {
		s.Begun = min(s.Begun+1, lastNumber)
		s.Now.Serial = s.Begun
	}
	return s, d
}

// processes are the steps of a process: it joins, starts work for a user, sweeps, and dies.
func (m *takeovers) processes(s takeover, p int, step func(string, bool, takeover)) {
	at, name := s.Processes[p], processName(p)
	if !at.Alive {
		s.Processes[p] = jobProcess{true, at.Epoch + 1}
		step(name+" joins", false, s)
		return
	}
	dead := s
	dead.Processes[p].Alive = false
	busy := func(j job) bool { return j.Owner == name && j.Epoch == at.Epoch }
	if works := slices.ContainsFunc(s.Jobs[:], busy); works && s.Left.Slow > 0 {
		slow := dead
		slow.Left.Slow--
		step(name+" is slow, and declared dead", true, slow)
	} else if !works {
		m.begins(s, p, step)
	}
	if s.Left.Deaths > 0 {
		dead.Left.Deaths--
		_ = slices.DeleteFunc(dead.Jobs[:], func(j job) bool { return j.Owner == name })
		step(name+" dies", true, dead)
	}
}

// begins starts work in a process: for a user, or because the sweeper finds the object.
func (m *takeovers) begins(s takeover, p int, step func(string, bool, takeover)) {
	name, epoch := processName(p), s.Processes[p].Epoch
	free := slices.Index(s.Jobs[:], job{})
	if free < 0 {
		return
	}
	begin := func(label string, s takeover, q decide.Request, works bool) {
		q.Owner, q.Epoch = name, epoch
		next, d := m.ask(s, q)
		if !d.Write {
			return
		}
		if works && (d.Work == decide.NewWork || d.Work == decide.Redo) {
			next.Jobs[free] = job{name, epoch, next.Now.Operation, next.Now.Serial}
		}
		step(name+label, false, next)
	}
	if s.Left.Operations > 0 {
		asked := s
		asked.Left.Operations--
		begin(" starts work", asked, decide.Request{Verb: decide.Fire, Event: jobEvent("start"), Actor: "user", Work: true}, true)
	}
	rec := &s.Now.Record
	living := s.living(rec.Owner)
	cause := decide.Cause{
		OwnerDead: rec.Owner != "" && m.decisions.OwnerDead(rec.Epoch, living),
		Overdue:   rec.Epoch == living && !slices.ContainsFunc(s.Jobs[:], s.executes),
	}
	if q, care := m.decisions.Sweep(jobs, rec, cause); care == decide.FireEvent {
		begin(" sweeps", s, q, m.decisions.Redoes(&q, jobs, rec))
	}
}

// works are the steps of work: its outcome, and a heartbeat that ends it.
func (m *takeovers) works(s takeover, i int, step func(string, bool, takeover)) {
	j, rec := s.Jobs[i], &s.Now.Record
	own := s.executes(j)
	over := s
	_ = slices.Delete(over.Jobs[:], i, i+1)
	report := decide.Request{
		Verb: decide.Report, Actor: "worker", Operation: j.Operation, Owned: true, Owner: j.Owner, Epoch: j.Epoch,
	}
	events := decide.Events{Done: []int{jobEvent("done")}, Failed: []int{jobEvent("failed")}}
	for _, o := range []struct {
		outcome decide.Outcome
		label   string
	}{{decide.Succeeded, "succeeds"}, {decide.Failed, "fails"}} {
		q, _ := m.decisions.Outcome(report, jobs, rec, o.outcome, events.Of(o.outcome))
		next, d := m.ask(over, q)
		if d.Write && !own {
			next.Wrong = fmt.Sprintf("the work of %v has lost the object, and moves it", j)
		}
		step(fmt.Sprintf("%v: %s", j, o.label), false, next)
	}
	report.Verb = decide.Heartbeat
	_, d := m.ask(s, report)
	switch {
	case d.Err != nil:
		step(fmt.Sprintf("%v: heartbeat refused", j), false, over)
	case !own:
		s.Wrong = fmt.Sprintf("the work of %v has lost the object, and extends its deadline", j)
		step(fmt.Sprintf("%v: heartbeat", j), false, s)
	}
}

// reports are the steps of the agent: it reports about the present operation, and the
// report arrives at any time.
func (m *takeovers) reports(s takeover, step func(string, bool, takeover)) {
	for i, r := range s.Reports {
		if r == (jobReport{}) {
			if s.Left.Reports > 0 && !s.Now.Rests(jobs) {
				s.Left.Reports--
				for _, e := range []string{"done", "failed"} {
					s.Reports[i] = jobReport{e, s.Now.Operation, s.Now.Serial}
					step(fmt.Sprintf("the agent reports %s in operation %d", e, s.Now.Operation), true, s)
				}
			}
			return
		}
		over := s
		_ = slices.Delete(over.Reports[:], i, i+1)
		next, d := m.ask(over, decide.Request{Verb: decide.Report, Event: jobEvent(r.Event), Actor: "agent", Operation: r.Operation})
		switch {
		case d.Write && r.Serial != s.Now.Serial:
			next.Wrong = fmt.Sprintf("a report about an earlier operation moves operation %d", s.Now.Operation)
		case d.Begins:
			next.Wrong = "a report starts an operation"
		}
		step(fmt.Sprintf("%s in operation %d arrives", r.Event, r.Operation), false, next)
	}
}
