package crashtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// simulation is one performance of a scenario, in one bubble.
type simulation struct {
	t        testing.TB
	harness  *Harness
	scenario *Scenario[any]
	inner    fullStore
	fault    *point // nil: none
	ctx      context.Context
	cancel   context.CancelCauseFunc
	all      sync.WaitGroup // goroutines

	// mu guards everything below, and the guarded fields of processes. No call of a
	// store runs under it.
	mu        sync.Mutex
	changed   *sync.Cond // of mu: a process, an answer or the time has changed
	processes []*Process // all of them, in order of their start
	roles     map[string]*Process
	wanted    map[string]bool // roles that a client waits for
	elapsed   time.Duration
	passed    time.Duration // elapsed, as clients see it: all processes have had their tick
	finished  bool          // the script has returned scriptErr
	scriptErr error
	done      bool // later writes are not counted

	hit          bool           // the fault has happened
	writes       []string       // in order, see writeOf
	times        map[string]int // of every text
	tokens       map[lifecycle.Token]bool
	unanswered   map[lifecycle.Token]bool // commits that are never answered
	keys         map[lifecycle.Key]bool
	acknowledged []lifecycle.HistoryRow // to a process
	sent         map[string]int         // messages that were committed
	managers     map[string]manager     // by machine
	outside      outside

	reporting sync.Mutex // guards problems; taken last
	problems  []string
}

// everything is a limit that is greater than any result.
const everything = 1_000_000

// await waits until ready returns true. It returns an error if the point is over before.
// ready is called under s.mu.
func (s *simulation) await(ready func() bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !ready() {
		if s.ctx.Err() != nil {
			return context.Cause(s.ctx)
		}
		s.changed.Wait()
	}
	return nil
}

func newSimulation(t testing.TB, harness *Harness, scenario *Scenario[any], inner fullStore, fault *point) *simulation {
	ctx, cancel := context.WithCancelCause(context.Background())
	s := &simulation{
		t: t, harness: harness, scenario: scenario, inner: inner, fault: fault, ctx: ctx, cancel: cancel,
		roles: map[string]*Process{}, wanted: map[string]bool{},
		times: map[string]int{}, tokens: map[lifecycle.Token]bool{}, unanswered: map[lifecycle.Token]bool{},
		keys: map[lifecycle.Key]bool{}, sent: map[string]int{}, managers: map[string]manager{},
		outside: outside{map[operation]string{}, map[lifecycle.Key]lifecycle.OpID{}},
	}
	s.changed = sync.NewCond(&s.mu)
	return s
}

// errOver is the cause of all contexts at the end of a point.
var errOver = errors.New("crashtest: the point is over")

// report notes a problem, each text once. The caller may hold s.mu.
func (s *simulation) report(format string, args ...any) {
	s.reporting.Lock()
	defer s.reporting.Unlock()
	if text := fmt.Sprintf(format, args...); !slices.Contains(s.problems, text) {
		s.problems = append(s.problems, text)
	}
}

// unnoticed reports whether clients must get the same answers as without a fault.
// REQUIRES: s.mu.
func (s *simulation) unnoticed() bool {
	return !s.hit || s.fault.kind == LostRequest || s.fault.kind == LostAnswer
}

// drive performs the scenario until nothing moves any more. Time passes only here, when
// all goroutines wait. Then synctest.Wait has ordered what they did, and the functions that
// drive calls read without a lock. They start or resume one process at a time.
func (s *simulation) drive() {
	for _, role := range s.scenario.Processes {
		s.launch(role, role, false)
		synctest.Wait() // so that the writes of the processes have an order
	}
	s.all.Go(func() {
		err := s.scenario.Script(s.ctx, &Clients[any]{s})
		s.mu.Lock()
		defer s.mu.Unlock()
		s.finished, s.scriptErr = true, err
	})
	for range maxRounds {
		synctest.Wait()
		switch {
		case s.replaceOne():
		case len(s.unrest()) == 0:
			return
		default:
			s.tick()
		}
	}
	synctest.Wait()
	s.report("not at rest after %v: %s", s.elapsed, strings.Join(s.unrest(), "; "))
}

// tick lets time pass for the store, the processes and the clients. Every live process
// sends a heartbeat and sweeps: one after the other until the script has ended, so that
// the writes have an order, and then all at once.
func (s *simulation) tick() {
	time.Sleep(s.scenario.Tick)
	if s.harness.Age != nil {
		s.harness.Age(s.t, s.inner, s.scenario.Tick)
	}
	s.mu.Lock()
	s.elapsed += s.scenario.Tick
	inOrder := !s.finished
	idle := slices.DeleteFunc(slices.Clone(s.processes), func(p *Process) bool { return !p.lives() || p.ticking })
	s.mu.Unlock()
	for _, p := range idle {
		p.tick()
		if inOrder {
			synctest.Wait()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passed = s.elapsed
	s.changed.Broadcast()
}

// launch starts a process in a role.
func (s *simulation) launch(role, name string, successor bool) {
	p := &Process{
		sim: s, role: role, name: name, successor: successor,
		queue: queue.Must(&queue.Config[lifecycle.Key]{Base: s.ctx}), pending: map[*string]bool{},
	}
	p.store = &simulatedStore{s.inner, p}
	s.mu.Lock()
	s.processes = append(s.processes, p)
	s.roles[role] = p
	delete(s.wanted, role)
	s.changed.Broadcast()
	s.mu.Unlock()
	p.start()
}

// replaceOne starts a process for one that has ended or stalls, or for a role that needs
// one, or resumes a paused process after other processes have taken over its operations. It
// reports whether it did so.
func (s *simulation) replaceOne() bool {
	for _, p := range s.processes {
		ended := p.state != running || p.failed
		replace := ended && !p.replaced && s.roles[p.role] == p
		p.replaced = p.replaced || ended
		switch {
		case replace:
			name := p.name
			if p.state == paused || p.state == gone && p.hit && (s.fault.kind == DeathBefore || s.fault.kind == DeathAfter) {
				name += "-2" // no process of this name starts again
			}
			s.launch(p.role, name, true)
			return true
		case p.state == paused && s.takenOver(p):
			p.become(running)
			return true
		}
	}
	// A client waits for the role, or the script has ended and no process is left.
	left := slices.ContainsFunc(s.processes, func(p *Process) bool {
		return p.state == running && !p.left && !p.failed
	})
	for i, role := range s.scenario.Processes {
		if s.wanted[role] && s.roles[role] == nil || s.finished && !left && i == 0 {
			s.launch(role, role, true)
			return true
		}
	}
	return false
}

// takenOver reports whether the other processes consider a paused process dead, and no
// operation of its is left.
func (s *simulation) takenOver(p *Process) bool {
	switch {
	case !slices.ContainsFunc(s.processes, (*Process).lives):
		return false
	case p.owner == nil:
		return len(s.inTransition()) == 0
	}
	owner := lifecycle.OwnerRef{Name: p.owner.Name(), Epoch: p.owner.Epoch()}
	now, err := s.inner.Get(context.Background(), owner.Key())
	if err != nil {
		s.report("Get: %v", err)
		return true
	}
	return !owner.Alive(&now) && !slices.ContainsFunc(s.inTransition(), func(r lifecycle.StoredRecord) bool {
		return r.Owner == owner.Name && r.Epoch == owner.Epoch
	})
}

// unrest returns what is not at rest yet.
func (s *simulation) unrest() (why []string) {
	if !s.finished {
		why = append(why, "the script has not ended")
	}
	s.mu.Lock()
	s.done = s.finished
	s.mu.Unlock()
	for _, p := range s.processes {
		switch p.state {
		case paused:
			why = append(why, p.name+" is paused, and no process has taken over")
		case running:
			why = append(why, p.waiting()...)
		case gone, over:
		}
	}
	for _, r := range s.inTransition() {
		why = append(why, nameOf(r.Key)+" is "+r.State)
	}
	return why
}

// inTransition returns the records that have to move on: those in transitional states,
// unless the table names the state Manual or the scenario allows it as an end.
func (s *simulation) inTransition() (list []lifecycle.StoredRecord) {
	for _, machine := range slices.Sorted(maps.Keys(s.managers)) {
		t := s.managers[machine].table
		records, err := s.inner.List(context.Background(), lifecycle.Query{Machine: machine, Limit: everything})
		if err != nil {
			s.report("List: %v", err)
		}
		for _, r := range records {
			i, ok := t.StateIndex(r.State)
			if ok && t.States[i].Kind == fsm.Transitional && t.States[i].Manual == "" &&
				!slices.Contains(s.scenario.Ends[r.Key], r.State) {
				list = append(list, r)
			}
		}
	}
	return list
}

// end ends all goroutines of the point. A goroutine that ignores its context is a
// problem, and the bubble waits for it.
func (s *simulation) end() {
	s.cancel(errOver)
	s.mu.Lock()
	s.changed.Broadcast()
	all := slices.Clone(s.processes)
	s.mu.Unlock()
	for _, p := range all {
		p.become(over)
		p.queue.Abort(errOver)
	}
	for _, p := range all {
		ctx, stop := context.WithTimeout(context.Background(), time.Minute)
		if err := p.queue.Terminate(ctx); err != nil {
			s.report("work in %s does not end with its context: %v", p.name, err)
			_ = p.queue.Terminate(context.Background())
		}
		stop()
	}
	s.all.Wait()
}

func nameOf(k lifecycle.Key) string { return fmt.Sprintf("%s %q", k.Machine, k.ID) }
