package crashtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/suitetest"
	"github.com/interlock-go/interlock/lifecycle"
)

// bent is a memory store that changes commits or reads.
type bent struct {
	*lifecycle.MemoryStore
	commit func(ctx context.Context, c *lifecycle.Commit) error
	get    func(r *lifecycle.StoredRecord)
	close  error
}

func (b *bent) Close() error { return errors.Join(b.MemoryStore.Close(), b.close) }

func (b *bent) Commit(ctx context.Context, c *lifecycle.Commit) error {
	if b.commit == nil {
		return b.MemoryStore.Commit(ctx, c)
	}
	return b.commit(ctx, c)
}

func (b *bent) Get(ctx context.Context, k lifecycle.Key) (lifecycle.StoredRecord, error) {
	r, err := b.MemoryStore.Get(ctx, k)
	if b.get != nil && err == nil {
		b.get(&r)
	}
	return r, err
}

// planted is the scenario in which faults are planted: a VM is created and started.
type planted struct {
	Scenario[vms]
	handler func(p *Process) lifecycle.Handler
	config  func(c *lifecycle.Config[event])
	started func(ctx context.Context, p *Process, m vms) error
}

func plainPlanted() *planted {
	s := &planted{
		handler: func(p *Process) lifecycle.Handler {
			return func(ctx context.Context, _ []byte) error { return p.Effect(ctx) }
		},
	}
	s.Ends = map[lifecycle.Key][]string{key("a"): {"running"}}
	s.Start = func(ctx context.Context, p *Process) (vms, error) {
		if err := p.Join(ctx, 30*time.Second); err != nil {
			return nil, err
		}
		c := &lifecycle.Config[event]{
			WorkerActor: "worker", Done: []event{"done"}, Failed: []event{"fail"},
			Handlers: map[string]lifecycle.Handler{"work": s.handler(p)},
		}
		if s.config != nil {
			s.config(c)
		}
		m := Manage(p, vm, c)
		if s.started != nil {
			return m, s.started(ctx, p, m)
		}
		return m, nil
	}
	s.Script = func(_ context.Context, c *Clients[vms]) error {
		err := c.Insist("alpha", "create a", bring("a", "create", "stopped", "work"))
		if err == nil {
			err = c.Insist("alpha", "start a", bring("a", "start", "running", "work"))
		}
		return err
	}
	return s
}

// emitMessage adds a message to the creation of a.
func emitMessage(s *planted) {
	script := s.Script
	s.Script = func(ctx context.Context, c *Clients[vms]) error {
		_ = c.Ask("alpha", "create a", func(ctx context.Context, m vms) error {
			ticket, err := m.Do(ctx, "a", "create", "user", lifecycle.Named("work", nil), &lifecycle.Change[struct{}]{
				Messages: []lifecycle.Message{{Topic: "created", Key: "a"}},
			})
			if err == nil {
				_, err = ticket.Wait(ctx)
			}
			return err
		})
		return script(ctx, c)
	}
}

// onto makes a commit expect the record that is there, whether its owner is alive or not.
func (b *bent) onto(ctx context.Context, c *lifecycle.Commit) {
	c.Owner = lifecycle.OwnerRef{}
	for i := range c.Changes {
		ch := &c.Changes[i]
		now, _ := b.MemoryStore.Get(ctx, ch.To.Key)
		ch.Expect, ch.From, ch.FromOrigin = now.Revision, now.State, now.Origin
		ch.To.Sequence = now.Sequence + 1
		ch.To.Operation = max(ch.To.Operation, now.Operation)
	}
}

// isOutcome reports whether a commit is that of work that is done.
func isOutcome(c *lifecycle.Commit) bool { return c.Changes[0].To.Event == "done" }

// fault is a fault of a store, a process or a scenario, and the text that the failure
// contains.
type fault struct {
	want     string
	kinds    []Kind           // of faults at which it is found; nil: all
	store    func(b *bent)    // plants it in the store
	scenario func(s *planted) // plants it anywhere else
}

// inCommits is a fault of the store that changes every commit.
func inCommits(want string, change func(b *bent, c *lifecycle.Commit)) fault {
	return fault{want: want, store: func(b *bent) {
		b.commit = func(ctx context.Context, c *lifecycle.Commit) error {
			twin := *c
			change(b, &twin)
			return b.MemoryStore.Commit(ctx, &twin)
		}
	}}
}

// inState is a fault of the store that changes every record that enters a state.
func inState(want, state string, change func(to *lifecycle.StoredRecord)) fault {
	return inCommits(want, func(_ *bent, c *lifecycle.Commit) {
		if to := &c.Changes[0].To; to.State == state {
			change(to)
		}
	})
}

// inScript is a fault of the script. It replaces the script.
func inScript(want string, script func(s *planted, c *Clients[vms]) error) fault {
	return fault{want: want, scenario: func(s *planted) {
		s.Ends = nil
		s.Script = func(_ context.Context, c *Clients[vms]) error { return script(s, c) }
	}}
}

// afterScript is a fault of a step at the end of the script.
func afterScript(want string, then func(c *Clients[vms]) error) fault {
	return fault{want: want, scenario: func(s *planted) {
		script := s.Script
		s.Script = func(ctx context.Context, c *Clients[vms]) error { return errors.Join(script(ctx, c), then(c)) }
	}}
}

// inHandler is a fault of the work.
func inHandler(want string, handler func(ctx context.Context, p *Process) error) fault {
	return fault{want: want, scenario: func(s *planted) {
		s.handler = func(p *Process) lifecycle.Handler {
			return func(ctx context.Context, _ []byte) error { return handler(ctx, p) }
		}
	}}
}

func (f fault) at(kinds ...Kind) fault {
	f.kinds = kinds
	return f
}

func (f fault) with(scenario func(s *planted)) fault {
	f.scenario = scenario
	return f
}

func ends(state string) func(s *planted) {
	return func(s *planted) { s.Ends[key("a")] = []string{state} }
}

var faults = map[string]fault{
	"an acknowledged commit is not written": {want: "it was acknowledged and is lost", store: func(b *bent) {
		b.commit = func(ctx context.Context, c *lifecycle.Commit) error {
			if !isOutcome(c) || c.Changes[0].To.State != "running" {
				return b.MemoryStore.Commit(ctx, c)
			}
			now, _ := b.MemoryStore.Get(ctx, c.Changes[0].To.Key)
			c.Changes[0].Stamp(now.Revision, time.Now())
			return nil
		}
	}},
	"outcomes are not compared": inCommits("illegal-step", func(b *bent, c *lifecycle.Commit) {
		if isOutcome(c) {
			c.Owner = lifecycle.OwnerRef{}
			b.onto(context.Background(), c)
		}
	}).at(Paused),
	"a repeated commit is written again": {want: "illegal-step", kinds: []Kind{LostAnswer}, store: func(b *bent) {
		seen := map[lifecycle.Token]bool{}
		b.commit = func(ctx context.Context, c *lifecycle.Commit) error {
			if seen[c.Token] && isOutcome(c) {
				c.Token = lifecycle.NewToken()
				b.onto(ctx, c)
			}
			seen[c.Token] = true
			return b.MemoryStore.Commit(ctx, c)
		}
	}},
	"a message is lost": inCommits(`the message created "a" "" is there 0 times, it was committed 1 times`,
		func(_ *bent, c *lifecycle.Commit) {
			c.Messages = nil
		}).with(emitMessage),
	"a message is sent twice": inCommits(`the message created "a" "" is there 2 times, it was committed 1 times`,
		func(_ *bent, c *lifecycle.Commit) { c.Messages = slices.Repeat(c.Messages, 2) }).with(emitMessage),
	"one commit has two rows": inCommits("one commit is written twice", func(_ *bent, c *lifecycle.Commit) {
		c.Token = lifecycle.Token{1}
	}),
	"a sequence number is missing": inState("#4 follows #2", "starting", func(to *lifecycle.StoredRecord) { to.Sequence++ }),
	"operations are not counted": inState("repeated-operation", "starting",
		func(to *lifecycle.StoredRecord) { to.Operation = 1 }),
	"the record is not the last row": {want: "the last row is", store: func(b *bent) {
		b.get = func(r *lifecycle.StoredRecord) {
			if r.State == "running" {
				r.Operation++
			}
		}
	}},
	"a move is not in the table": inState("illegal-step", "running",
		func(to *lifecycle.StoredRecord) { to.State, to.Origin = "failed", "failed" }).with(ends("failed")),

	"work is done twice": inHandler("is applied again", func(ctx context.Context, p *Process) error {
		return errors.Join(p.Effect(ctx), p.Effect(ctx))
	}),
	"work is not done": inHandler("it is recorded as done, and was not applied",
		func(context.Context, *Process) error { return nil }),
	"a sweeper does the work of others": {want: "is applied again", kinds: []Kind{Paused, CrashBefore}, scenario: func(s *planted) {
		s.Processes = []string{"alpha", "beta"}
		s.started = func(_ context.Context, p *Process, m vms) error {
			p.Every(func(ctx context.Context) error { return applyEverything(ctx, p, m) })
			return nil
		}
	}},
	"a dead owner is not noticed": {want: `vm "a" is still starting in the end`, kinds: []Kind{CrashAfter}, scenario: func(s *planted) {
		s.Ends = nil
		s.config = func(c *lifecycle.Config[event]) {
			c.Observe = func(context.Context, lifecycle.StoredRecord) (event, fsm.Actor, error) {
				return "", "", errors.New("no view")
			}
		}
	}},
	"an object ends in a wrong state": {
		want: `vm "a" is running in the end, allowed are ["stopped"]`, scenario: ends("stopped"),
	},
	"an object does not exist": {
		want: `vm "z" is absent in the end`, scenario: func(s *planted) { s.Ends[key("z")] = []string{"stopped"} },
	},
	"a request has no answer": afterScript("no answer of alpha: wait", func(c *Clients[vms]) error {
		return c.Ask("alpha", "wait", func(ctx context.Context, _ vms) error {
			if !c.Faultless() {
				<-ctx.Done()
			}
			return nil
		})
	}).at(Refused),
	"work never ends": afterScript("work waits or runs in alpha", func(c *Clients[vms]) error {
		return c.Ask("alpha", "stop a", func(ctx context.Context, m vms) error {
			_, err := m.Do(ctx, "a", "stop", "user", lifecycle.Func(func(context.Context) error {
				time.Sleep(3 * time.Hour) // longer than all rounds, whatever the context
				return nil
			}), nil)
			return err
		})
	}),

	"a script differs every time": {want: "the write is not reached", scenario: func(s *planted) {
		n := 0
		s.Ends = nil
		s.Script = func(_ context.Context, c *Clients[vms]) error {
			n++
			return c.Insist("alpha", "create", bring(fmt.Sprint("v", n), "create", "stopped", "work"))
		}
	}},
	"a script fails": inScript("without any fault: the script: out of order",
		func(*planted, *Clients[vms]) error { return errors.New("out of order") }),
	"a client notices a lost answer": afterScript("the script: once is enough", func(c *Clients[vms]) error {
		c.sim.mu.Lock()
		defer c.sim.mu.Unlock()
		if c.sim.hit {
			return errors.New("once is enough")
		}
		return nil
	}).at(LostAnswer),
	"a process cannot start": {want: "without any fault: no process lives", scenario: func(s *planted) {
		s.started = func(context.Context, *Process, vms) error { return errors.New("no disk") }
	}},
	"a client never succeeds": inScript("failed a hundred times", func(_ *planted, c *Clients[vms]) error {
		return c.Insist("alpha", "fly", func(context.Context, vms) error { return errors.New("no wings") })
	}),
	"a client asks an unknown process": inScript(`crashtest: the scenario has no process "omega"`,
		func(_ *planted, c *Clients[vms]) error {
			return c.Ask("omega", "anything", func(context.Context, vms) error { return nil })
		}),
	"a script kills an unknown process": inScript(`without any fault: crashtest: the scenario has no process "omega"`,
		func(_ *planted, c *Clients[vms]) error { c.Kill("omega"); return nil }),
	"the check of the scenario fails": {want: "without any fault: a is blue", scenario: func(s *planted) {
		s.Check = func(context.Context, vms) error { return errors.New("a is blue") }
	}},
	"a script reports": afterScript("without any fault: a is 1 too many", func(c *Clients[vms]) error {
		c.Errorf("a is %d too many", 1)
		return nil
	}),
	"the store cannot be closed": {want: "without any fault: Close: disk full", store: func(b *bent) { b.close = errors.New("disk full") }},
	"there are no points":        {want: "there are no points", kinds: []Kind{}},
}

// applyEverything applies the operations of all objects in transition.
func applyEverything(ctx context.Context, p *Process, m vms) error {
	for rec, err := range m.All(ctx, lifecycle.Select[state]{States: []state{"starting", "creating"}}) {
		if err != nil {
			return err
		}
		if err := p.Apply(key(rec.ID), rec.Operation); err != nil {
			return err
		}
	}
	return nil
}

func TestFaultsAreFound(t *testing.T) {
	for name, f := range faults {
		t.Run(name, func(t *testing.T) {
			s := plainPlanted()
			if f.scenario != nil {
				f.scenario(s)
			}
			h := Harness{Kinds: f.kinds, New: func(testing.TB) lifecycle.Store {
				b := &bent{MemoryStore: lifecycle.NewMemoryStore()}
				if f.store != nil {
					f.store(b)
				}
				return b
			}}
			text, _ := judge(t, h, s.Scenario)
			require.Contains(t, text, f.want)
		})
	}
}

// judge runs a scenario and returns the failures.
func judge(t *testing.T, h Harness, s Scenario[vms]) (failures string, writes int) {
	r := suitetest.Record(t, func(tb testing.TB) {
		writes = runPoints(tb, &h, s.untyped(), func(try func(t testing.TB)) {
			synctest.Test(t, func(*testing.T) { try(tb) })
		})
	})
	if !r.Failed() {
		return "", writes
	}
	return r.Text(), writes
}

// Without a fault no problem is found.
func TestSoundScenario(t *testing.T) {
	text, writes := judge(t, memoryHarness(), plainPlanted().Scenario)
	require.Empty(t, text)
	require.Equal(t, 7, writes)
}

// A run ends after 20 failed points.
func TestTooManyFailures(t *testing.T) {
	s := plainPlanted()
	script := s.Script
	s.Script = func(ctx context.Context, c *Clients[vms]) error {
		if err := script(ctx, c); err != nil || c.Faultless() {
			return err
		}
		c.Errorf("a fault has happened")
		return nil
	}
	text, _ := judge(t, memoryHarness(), s.Scenario)
	require.Contains(t, text, "crashtest: failures at 20 points of ")
}
