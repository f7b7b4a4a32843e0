package crashtest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// bent is a memory store whose commits, or reads, are tampered with.
type bent struct {
	*lifecycle.MemoryStore
	commit func(ctx context.Context, c *lifecycle.Commit) error
	get    func(r *lifecycle.StoredRecord)
}

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

// onto makes a commit one that expects whatever is there.
func (b *bent) onto(ctx context.Context, c *lifecycle.Commit) {
	for i := range c.Changes {
		ch := &c.Changes[i]
		now, _ := b.MemoryStore.Get(ctx, ch.To.Key)
		ch.Expect, ch.From, ch.FromOrigin = now.Revision, now.State, now.Origin
		ch.To.Sequence = now.Sequence + 1
		ch.To.Operation = max(ch.To.Operation, now.Operation)
	}
}

// outcome reports whether a commit is that of work that is done.
func outcome(c *lifecycle.Commit) bool { return c.Changes[0].To.Event == "done" }

// fault is something wrong with a store, a process or a scenario, and what the
// kit has to say about it.
type fault struct {
	name  string
	says  string
	kinds []Kind           // at which it shows; nil: all are tried
	plant func(b *bent)    // in the store
	in    func(s *planted) // anywhere else
	ends  string           // of a; "": running
}

// planted is the scenario in which faults are planted: a VM is made and started.
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
	s.Rounds = 100
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
	s.Script = func(_ context.Context, w *World[vms]) error {
		err := w.Insist("alpha", "create a", bring("a", "create", "stopped", "work"))
		if err == nil {
			err = w.Insist("alpha", "start a", bring("a", "start", "running", "work"))
		}
		return err
	}
	return s
}

// tellsMaking adds a message to the making of a.
func tellsMaking(s *planted) {
	script := s.Script
	s.Script = func(ctx context.Context, w *World[vms]) error {
		_ = w.Ask("alpha", "create a", func(ctx context.Context, m vms) error {
			h, err := m.Do(ctx, "a", "create", "user", lifecycle.Named("work", nil), &lifecycle.Change[struct{}]{
				Messages: []lifecycle.Message{{Topic: "made", Key: "a"}},
			})
			if err == nil {
				_, err = h.Wait(ctx)
			}
			return err
		})
		return script(ctx, w)
	}
}

func faults() []fault {
	return []fault{
		{
			name: "the store forgets what it acknowledged", says: "it was acknowledged and is lost",
			plant: func(b *bent) {
				b.commit = func(ctx context.Context, c *lifecycle.Commit) error {
					if outcome(c) && c.Changes[0].To.State == "running" {
						now, _ := b.MemoryStore.Get(ctx, c.Changes[0].To.Key)
						c.Changes[0].Stamp(now.Revision, time.Now())
						return nil
					}
					return b.MemoryStore.Commit(ctx, c)
				}
			},
		},
		{
			name: "outcomes are written whatever has happened since", says: "not allowed",
			kinds: []Kind{Paused},
			plant: func(b *bent) {
				b.commit = func(ctx context.Context, c *lifecycle.Commit) error {
					if outcome(c) {
						b.onto(ctx, c)
					}
					return b.MemoryStore.Commit(ctx, c)
				}
			},
		},
		{
			name: "a commit that is sent again is written again", says: "not allowed",
			kinds: []Kind{LostAnswer},
			plant: func(b *bent) {
				seen := map[lifecycle.Token]bool{}
				b.commit = func(ctx context.Context, c *lifecycle.Commit) error {
					if again := *c; seen[c.Token] && outcome(c) {
						again.Token = lifecycle.NewToken()
						b.onto(ctx, &again)
						return b.MemoryStore.Commit(ctx, &again)
					}
					seen[c.Token] = true
					return b.MemoryStore.Commit(ctx, c)
				}
			},
		},
		{
			name: "a message is lost", says: `the message made "a" "" is there 0 times, it was committed 1 times`,
			in: tellsMaking,
			plant: func(b *bent) {
				b.commit = func(ctx context.Context, c *lifecycle.Commit) error {
					silent := *c
					silent.Messages = nil
					return b.MemoryStore.Commit(ctx, &silent)
				}
			},
		},
		{
			name: "a message is sent twice", says: `the message made "a" "" is there 2 times, it was committed 1 times`,
			in: tellsMaking,
			plant: func(b *bent) {
				b.commit = func(ctx context.Context, c *lifecycle.Commit) error {
					loud := *c
					loud.Messages = append(loud.Messages[:len(loud.Messages):len(loud.Messages)], loud.Messages...)
					return b.MemoryStore.Commit(ctx, &loud)
				}
			},
		},
		{
			name: "one commit has two rows", says: "one commit is written twice",
			plant: func(b *bent) {
				b.commit = func(ctx context.Context, c *lifecycle.Commit) error {
					c.Token = lifecycle.Token{1}
					return b.MemoryStore.Commit(ctx, c)
				}
			},
		},
		{
			name: "sequence numbers have gaps", says: "#4 follows #2",
			plant: func(b *bent) {
				b.commit = func(ctx context.Context, c *lifecycle.Commit) error {
					if to := &c.Changes[0].To; to.State == "starting" {
						to.Sequence++
					}
					return b.MemoryStore.Commit(ctx, c)
				}
			},
		},
		{
			name: "operations are not counted", says: "the operation is another one",
			plant: func(b *bent) {
				b.commit = func(ctx context.Context, c *lifecycle.Commit) error {
					if to := &c.Changes[0].To; to.State == "starting" {
						to.Operation = 1
					}
					return b.MemoryStore.Commit(ctx, c)
				}
			},
		},
		{
			name: "records are not what the history says", says: "the last row is",
			plant: func(b *bent) {
				b.get = func(r *lifecycle.StoredRecord) {
					if r.State == "running" {
						r.Operation++
					}
				}
			},
		},
		{
			name: "the store leads where the table does not", says: "the table leads elsewhere", ends: "failed",
			plant: func(b *bent) {
				b.commit = func(ctx context.Context, c *lifecycle.Commit) error {
					if to := &c.Changes[0].To; to.State == "running" {
						to.State, to.Origin = "failed", "failed"
					}
					return b.MemoryStore.Commit(ctx, c)
				}
			},
		},
		{
			name: "work is done twice", says: "is applied 2 times",
			in: func(s *planted) {
				s.handler = func(p *Process) lifecycle.Handler {
					return func(ctx context.Context, _ []byte) error {
						return errors.Join(p.Effect(ctx), p.Effect(ctx))
					}
				}
			},
		},
		{
			name: "a sweeper works at what is not its own", says: "is applied 2 times",
			kinds: []Kind{Paused, CrashBefore},
			in: func(s *planted) {
				s.started = func(_ context.Context, p *Process, m vms) error {
					p.Every(func(ctx context.Context) error {
						for rec, err := range m.All(ctx, lifecycle.Select[state]{States: []state{"starting", "creating"}}) {
							if err != nil {
								return err
							}
							if err := p.Apply(key(rec.ID), rec.Operation); err != nil {
								return err
							}
						}
						return nil
					})
					return nil
				}
				s.Processes = []string{"alpha", "beta"}
			},
		},
		{
			name: "work says that it is done, and is not", says: "it is recorded as done, and was not applied",
			in: func(s *planted) {
				s.handler = func(*Process) lifecycle.Handler {
					return func(context.Context, []byte) error { return nil }
				}
			},
		},
		{
			name: "nobody finds what a dead process has left", says: `vm "a" is still starting in the end`,
			kinds: []Kind{CrashAfter},
			in: func(s *planted) {
				s.Ends = nil
				s.config = func(c *lifecycle.Config[event]) {
					c.Observe = func(context.Context, lifecycle.StoredRecord) (event, fsm.Actor, error) {
						return "", "", errors.New("no view")
					}
				}
			},
		},
		{
			name: "an object ends where it must not", says: `vm "a" is running in the end, allowed are ["stopped"]`, ends: "stopped",
		},
		{
			name: "an object does not exist", says: `vm "z" is absent in the end`,
			in: func(s *planted) { s.Ends[key("z")] = []string{"stopped"} },
		},
		{
			name: "a waiter is forgotten", says: "no answer of alpha: wait",
			kinds: []Kind{Refused},
			in: func(s *planted) {
				script := s.Script
				s.Script = func(ctx context.Context, w *World[vms]) error {
					err := script(ctx, w)
					return errors.Join(err, w.Ask("alpha", "wait", func(ctx context.Context, _ vms) error {
						if w.Faultless() {
							return nil
						}
						<-ctx.Done() // for an answer that does not come
						return nil
					}))
				}
			},
		},
		{
			name: "work never ends", says: "work waits or runs in alpha",
			in: func(s *planted) {
				script := s.Script
				s.Script = func(ctx context.Context, w *World[vms]) error {
					err := script(ctx, w)
					return errors.Join(err, w.Ask("alpha", "stop a", func(ctx context.Context, m vms) error {
						// Longer than the patience of the scenario, and deaf.
						_, err := m.Do(ctx, "a", "stop", "user", lifecycle.Func(func(context.Context) error {
							time.Sleep(3 * time.Hour)
							return nil
						}), nil)
						return err
					}))
				}
			},
		},
		{
			name: "a script does something else every time", says: "the write is not reached",
			in: func(s *planted) {
				n := 0
				s.Ends = nil
				s.Script = func(_ context.Context, w *World[vms]) error {
					n++
					id := fmt.Sprint("v", n)
					return w.Insist("alpha", "create", bring(id, "create", "stopped", "work"))
				}
			},
		},
		{
			name: "a script fails", says: "without any fault: the script: out of order",
			in: func(s *planted) {
				s.Script = func(context.Context, *World[vms]) error { return errors.New("out of order") }
			},
		},
		{
			name: "a client notices that an answer was lost", says: "the script: once is enough",
			kinds: []Kind{LostAnswer},
			in: func(s *planted) {
				script := s.Script
				s.Script = func(ctx context.Context, w *World[vms]) error {
					err := script(ctx, w)
					w.w.mu.Lock()
					defer w.w.mu.Unlock()
					if w.w.hits > 0 {
						return errors.New("once is enough")
					}
					return err
				}
			},
		},
		{
			name: "a process cannot start", says: "without any fault: no process lives",
			in: func(s *planted) {
				s.started = func(context.Context, *Process, vms) error { return errors.New("no disk") }
			},
		},
		{
			name: "a client is never served", says: "failed a hundred times",
			in: func(s *planted) {
				s.Rounds = 0
				s.Script = func(_ context.Context, w *World[vms]) error {
					return w.Insist("alpha", "fly", func(context.Context, vms) error { return errors.New("no wings") })
				}
			},
		},
		{
			name: "a client asks a process that there is not", says: `without any fault: crashtest: the scenario has no process "omega"`,
			in: func(s *planted) {
				s.Script = func(_ context.Context, w *World[vms]) error {
					return w.Ask("omega", "anything", func(context.Context, vms) error { return nil })
				}
			},
		},
		{
			name: "a script kills a process that there is not", says: `without any fault: crashtest: the scenario has no process "omega"`,
			in: func(s *planted) {
				s.Ends = nil
				s.Script = func(_ context.Context, w *World[vms]) error { w.Kill("omega"); return nil }
			},
		},
		{
			name: "the check of the scenario finds something", says: "without any fault: a is blue",
			in: func(s *planted) {
				s.Check = func(context.Context, vms) error { return errors.New("a is blue") }
			},
		},
		{
			name: "a script blames", says: "without any fault: a is 1 too many",
			in: func(s *planted) {
				script := s.Script
				s.Script = func(ctx context.Context, w *World[vms]) error {
					w.Blame("a is %d too many", 1)
					return script(ctx, w)
				}
			},
		},
		{
			name: "there is nothing to try", says: "0 points found",
			kinds: []Kind{},
		},
	}
}

// Every planted fault is found, and told in its own words.
func TestFaultsAreFound(t *testing.T) {
	for _, f := range faults() {
		t.Run(f.name, func(t *testing.T) {
			s := plainPlanted()
			if f.ends != "" {
				s.Ends[key("a")] = []string{f.ends}
			}
			if f.in != nil {
				f.in(s)
			}
			if s.Rounds == 0 {
				s.Rounds = 1000
			}
			h := Harness{Synctest: true, Kinds: f.kinds, New: func(testing.TB) lifecycle.Store {
				b := &bent{MemoryStore: lifecycle.NewMemoryStore()}
				if f.plant != nil {
					f.plant(b)
				}
				return b
			}}
			r, _ := judge(t, h, s.Scenario)
			require.Contains(t, r.text(), f.says)
			t.Log(r.text())
		})
	}
}

// Without a fault, nothing is found: what is found above is the fault.
func TestSoundScenario(t *testing.T) {
	s := plainPlanted()
	h := Harness{Synctest: true, New: func(testing.TB) lifecycle.Store {
		return &bent{MemoryStore: lifecycle.NewMemoryStore()}
	}}
	r, c := judge(t, h, s.Scenario)
	require.Empty(t, r.failures)
	require.Equal(t, Coverage{Writes: 5, Found: 45, Covered: 45}, c)
	require.Equal(t, []string{"crashtest: 5 writes, 45 points found, 45 covered"}, r.logs)
}
