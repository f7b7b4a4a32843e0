package lattice_test

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

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/scripttest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/lattice"
	"github.com/interlock-go/interlock/lock"
)

// TestController runs testdata/controller/*.script. The trace has every change of a
// record, sorted by record. The backend's work takes until it is answered. The word
// "nothing" is an empty name. The commands beside those of scripttest:
//
//	create SYSTEM             delete SYSTEM
//	deploy SYSTEM ID [PATH]   teardown SYSTEM ID
//	service SYSTEM PATH STATE
//	answer WORK [fail=(TEXT)] ends work of the backend, such as "deploy shop/d1"
//	advance DURATION          virtual time passes, and the controller sweeps
//	sweep
//	crash                     the process dies, and the next one starts
//	stop                      the controller closes, and the next one starts
//	store down | up           the store refuses every commit, or works again
//	show                      all records, locks and running work
func TestController(t *testing.T) {
	scripttest.Run(t, "testdata/controller/*.script", func(t *testing.T) scripttest.Harness {
		w := &world{store: &lifecycle.MemoryStore{KeepHistory: -1}}
		w.start(t)
		return scripttest.Harness{Commands: w.commands(), Trace: w.trace, Close: func(t *testing.T) { w.kill(t) }}
	})
}

// world is the store, the present process and the work of its backend.
type world struct {
	store   *lifecycle.MemoryStore
	process *process

	mu      sync.Mutex
	changes []string
}

// process is one life of the controller.
type process struct {
	*lattice.Controller
	store *scripttest.Store
	work  map[string]chan error // running work; guarded by world.mu
	ended context.Context
	end   context.CancelFunc
}

func (w *world) start(t *testing.T) {
	p := &process{store: &scripttest.Store{MemoryStore: w.store}, work: map[string]chan error{}}
	p.ended, p.end = context.WithCancel(t.Context())
	owner, err := lifecycle.Join(t.Context(), p.store, "backend", time.Hour)
	require.NoError(t, err)
	w.process = p
	system := func(verb string) func(context.Context, lattice.SystemID) error {
		return func(ctx context.Context, s lattice.SystemID) error { return w.perform(ctx, p, verb+" "+string(s)) }
	}
	action := func(verb string) func(context.Context, lattice.Running) error {
		return func(ctx context.Context, r lattice.Running) error {
			return w.perform(ctx, p, verb+" "+string(r.System)+"/"+r.ID)
		}
	}
	p.Controller, err = lattice.Start(p.ended, p.store, lattice.Infrastructure{
		Initialize: system("initialize"), Remove: system("remove"),
		Build: action("build"), Deploy: action("deploy"), Teardown: action("teardown"),
	}, &lattice.Config{Owner: owner, Observer: lifecycle.Observer{Changed: w.changed}})
	require.NoError(t, err)
}

func (w *world) changed(_ context.Context, row lifecycle.CommittedChange) {
	from := row.From
	if from == "" {
		from = "none"
	}
	text := fmt.Sprintf("%s %s: %s -> %s", strings.TrimPrefix(row.Machine, "lattice-"), row.ID, from, row.To)
	if row.Reason != "" {
		text += ", " + row.Reason
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changes = append(w.changes, text)
}

// trace returns the changes since its last call.
func (w *world) trace() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.SortStableFunc(w.changes, func(a, b string) int {
		a, _, _ = strings.Cut(a, ":")
		b, _, _ = strings.Cut(b, ":")
		return strings.Compare(a, b)
	})
	text := strings.Join(w.changes, "\n")
	w.changes = nil
	return text
}

// perform is work of the backend. It takes until it is answered.
func (w *world) perform(ctx context.Context, p *process, what string) error {
	answer := make(chan error)
	w.mu.Lock()
	p.work[what] = answer
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(p.work, what)
	}()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-p.ended.Done():
		return p.ended.Err()
	}
}

// kill ends the process. Nothing of it reaches the store after that.
func (w *world) kill(t *testing.T) {
	w.process.store.Die(0)
	w.process.end()
	require.NoError(t, w.process.Close(context.WithoutCancel(t.Context())))
	synctest.Wait()
}

// nameOf returns the next word; "nothing" is an empty name.
func nameOf(a *scripttest.Args) string {
	word := a.Word()
	if word == "nothing" {
		return ""
	}
	return word
}

func (w *world) commands() map[string]scripttest.Command {
	command := func(f func(ctx context.Context, p *process, a *scripttest.Args) error) scripttest.Command {
		return func(t *testing.T, a *scripttest.Args) string {
			if err := f(t.Context(), w.process, a); err != nil {
				synctest.Wait()
				return scripttest.Error(err)
			}
			return ""
		}
	}
	return map[string]scripttest.Command{
		"create": command(func(ctx context.Context, p *process, a *scripttest.Args) error {
			_, err := p.CreateSystem(ctx, lattice.SystemID(nameOf(a)), nil)
			return err
		}),
		"delete": command(func(ctx context.Context, p *process, a *scripttest.Args) error {
			_, err := p.DeleteSystem(ctx, lattice.SystemID(nameOf(a)))
			return err
		}),
		"deploy": command(func(ctx context.Context, p *process, a *scripttest.Args) error {
			system, id, path := nameOf(a), nameOf(a), lock.Path{}
			for _, word := range a.Words() {
				path = lock.MustParse(word)
			}
			_, err := p.Deploy(ctx, lattice.SystemID(system), lattice.DeployID(id), path, nil)
			return err
		}),
		"teardown": command(func(ctx context.Context, p *process, a *scripttest.Args) error {
			_, err := p.Teardown(ctx, lattice.SystemID(nameOf(a)), lattice.TeardownID(nameOf(a)), nil)
			return err
		}),
		"service": command(func(ctx context.Context, p *process, a *scripttest.Args) error {
			return p.SetService(ctx, lattice.SystemID(nameOf(a)), lock.MustParse(a.Word()), lattice.ServiceState(nameOf(a)))
		}),
		"advance": command(func(ctx context.Context, p *process, a *scripttest.Args) error {
			d, err := time.ParseDuration(a.Word())
			if err == nil {
				time.Sleep(d)
				_, err = p.Sweep(ctx)
			}
			return err
		}),
		"sweep": command(func(ctx context.Context, p *process, _ *scripttest.Args) error {
			_, err := p.Sweep(ctx)
			return err
		}),
		"store": command(func(_ context.Context, p *process, a *scripttest.Args) error {
			p.store.Before(nil)
			if a.Word() == "down" {
				p.store.Refuse(scripttest.Call{Method: "Commit"}, lifecycle.ErrUnavailable)
			}
			return nil
		}),
		"answer": w.answer,
		"crash": func(t *testing.T, _ *scripttest.Args) string {
			w.kill(t)
			w.start(t)
			return ""
		},
		"stop": func(t *testing.T, _ *scripttest.Args) string {
			require.NoError(t, w.process.Close(t.Context()))
			w.start(t)
			return ""
		},
		"show": w.show,
	}
}

func (w *world) answer(_ *testing.T, a *scripttest.Args) string {
	what := strings.Join(a.Words(), " ")
	w.mu.Lock()
	answer := w.process.work[what]
	w.mu.Unlock()
	if answer == nil {
		a.Fatalf("the backend has no work %q", what)
	}
	if text := a.Value("fail"); text != "" {
		answer <- errors.New(text)
	} else {
		answer <- nil
	}
	return ""
}

func (w *world) show(t *testing.T, _ *scripttest.Args) string {
	p, ctx := w.process, t.Context()
	var out strings.Builder
	for r, err := range p.Systems().All(ctx, lifecycle.Select[lattice.State]{}) {
		require.NoError(t, err)
		fmt.Fprintf(&out, "system %s is %s\n", r.ID, r.State)
	}
	for r, err := range p.Services().All(ctx, lifecycle.Select[lattice.ServiceState]{}) {
		require.NoError(t, err)
		fmt.Fprintf(&out, "service %s is %s\n", r.ID, r.State)
	}
	for r, err := range p.Deploys().All(ctx, lifecycle.Select[lattice.ActionState]{}) {
		require.NoError(t, err)
		fmt.Fprintf(&out, "deploy %s of %v is %s\n", r.ID, r.Payload.Path, r.State)
	}
	for r, err := range p.Teardowns().All(ctx, lifecycle.Select[lattice.ActionState]{}) {
		require.NoError(t, err)
		fmt.Fprintf(&out, "teardown %s is %s\n", r.ID, r.State)
	}
	for system := range p.Actions().Systems() {
		holders, err := p.Actions().Holders(ctx, system, lock.Root())
		require.NoError(t, err)
		for _, h := range holders {
			fmt.Fprintf(&out, "%s: %s holds %v at %v\n", system, h.Owner, h.Mode, h.Path)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, what := range slices.Sorted(maps.Keys(p.work)) {
		fmt.Fprintf(&out, "running: %s\n", what)
	}
	return out.String()
}
