package lattice_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/lattice"
	"github.com/interlock-go/interlock/lock"
)

// TestStories runs the stories of testdata/story: users, the backend and services
// on one side, every change of a record on the other, sorted by record. All
// objects of a file live in one memory store, and time is that of a bubble. What
// the backend does takes until it is answered. An empty name is written as
// nothing. The commands:
//
//	create SYSTEM             delete SYSTEM
//	deploy SYSTEM ID [PATH]   teardown SYSTEM ID
//	service SYSTEM PATH STATE (STATE "gone": it is not there any more)
//	answer WORK [fail=(TEXT)] the backend has done it, such as "deploy shop/d1"
//	advance DURATION          time passes, and the controller sweeps
//	sweep
//	crash                     the process dies, and the next one begins
//	stop                      the process ends in good order, and the next one begins
//	store down | up           the store refuses every commit, or works again
//	show                      what there is
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/story/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				datadriven.RunTest(t, file, w.run)
				w.end()
			})
		})
	}
}

// world is the store, the process that there is now, and the backend's work.
type world struct {
	t       *testing.T
	store   *lifecycle.MemoryStore
	process *process

	mu    sync.Mutex
	lines []string
}

// process is one life of the controller.
type process struct {
	*lattice.Controller
	link *link
	work map[string]chan error // what the backend is at; guarded by world.mu
	life context.Context       // ends when it dies
	die  context.CancelFunc
}

// link is a process' way to the store.
type link struct {
	*lifecycle.MemoryStore
	mu   sync.Mutex
	down error
}

func (l *link) set(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = err
}

func (l *link) up() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.down
}

func (l *link) Commit(ctx context.Context, c *lifecycle.Commit) error {
	if err := l.up(); err != nil {
		return err
	}
	return l.MemoryStore.Commit(ctx, c)
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, store: &lifecycle.MemoryStore{KeepHistory: -1}}
	w.begin()
	return w
}

// begin starts a process.
func (w *world) begin() {
	life, die := context.WithCancel(w.t.Context())
	p := &process{link: &link{MemoryStore: w.store}, work: map[string]chan error{}, life: life, die: die}
	owner, err := lifecycle.Join(w.t.Context(), p.link, "backend", time.Hour)
	require.NoError(w.t, err)
	w.process = p
	p.Controller, err = lattice.Start(life, p.link, lattice.Infrastructure{
		Initialize: func(ctx context.Context, s lattice.SystemID) error { return w.at(ctx, p, "initialize "+string(s)) },
		Remove:     func(ctx context.Context, s lattice.SystemID) error { return w.at(ctx, p, "remove "+string(s)) },
		Build:      func(ctx context.Context, r lattice.Running) error { return w.at(ctx, p, "build "+name(r)) },
		Deploy:     func(ctx context.Context, r lattice.Running) error { return w.at(ctx, p, "deploy "+name(r)) },
		Teardown:   func(ctx context.Context, r lattice.Running) error { return w.at(ctx, p, "teardown "+name(r)) },
	}, &lattice.Config{
		Owner: owner,
		Changed: func(_ context.Context, row lifecycle.HistoryRow) {
			text := fmt.Sprintf("%s %s: %s -> %s", strings.TrimPrefix(row.Machine, "lattice-"), row.ID, orNone(row.From), row.To)
			if row.Reason != "" {
				text += ", " + row.Reason
			}
			w.say("%s", text)
		},
	})
	require.NoError(w.t, err)
}

func name(r lattice.Running) string { return string(r.System) + "/" + r.ID }

func orNone(state string) string {
	if state == "" {
		return "none"
	}
	return state
}

func (w *world) say(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, fmt.Sprintf(format, args...))
}

// at is work of the backend: it takes until somebody answers.
func (w *world) at(ctx context.Context, p *process, what string) error {
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
	case <-p.life.Done():
		return p.life.Err()
	}
}

// kill ends a process: nothing of it reaches the store any more.
func (w *world) kill() {
	p := w.process
	p.link.set(errors.New("the process is dead"))
	p.die()
	require.NoError(w.t, p.Close(context.WithoutCancel(w.t.Context())))
}

func (w *world) end() {
	w.kill()
	synctest.Wait()
}

func (w *world) run(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	w.mu.Lock()
	w.lines = nil
	w.mu.Unlock()
	var words []string
	for _, arg := range d.CmdArgs {
		if len(arg.Vals) == 0 {
			words = append(words, arg.Key)
		}
	}
	err := w.do(t, d, words)
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if d.Cmd != "show" {
		slices.SortStableFunc(w.lines, func(a, b string) int {
			a, _, _ = strings.Cut(a, ":")
			b, _, _ = strings.Cut(b, ":")
			return strings.Compare(a, b)
		})
	}
	if err != nil {
		w.lines = append(w.lines, fmt.Sprintf("HTTP %d: %v", lifecycle.HTTPStatus(err), err))
	}
	if len(w.lines) == 0 {
		return "nothing\n"
	}
	return strings.Join(w.lines, "\n") + "\n"
}

func (w *world) do(t *testing.T, d *datadriven.TestData, words []string) error {
	t.Helper()
	ctx, p := t.Context(), w.process
	arg := func(i int) string {
		require.Greater(t, len(words), i, "%s: %q", d.Pos, words)
		if words[i] == "nothing" {
			return ""
		}
		return words[i]
	}
	var err error
	switch d.Cmd {
	case "create":
		_, err = p.CreateSystem(ctx, lattice.SystemID(arg(0)))
	case "delete":
		_, err = p.DeleteSystem(ctx, lattice.SystemID(arg(0)))
	case "deploy":
		path := lock.Path{}
		if len(words) > 2 {
			path = lock.MustParse(arg(2))
		}
		_, err = p.Deploy(ctx, lattice.SystemID(arg(0)), lattice.DeployID(arg(1)), path)
	case "teardown":
		_, err = p.Teardown(ctx, lattice.SystemID(arg(0)), lattice.TeardownID(arg(1)))
	case "service":
		system, path := lattice.SystemID(arg(0)), lock.MustParse(arg(1))
		if arg(2) == "gone" {
			return p.RemoveService(ctx, system, path)
		}
		err = p.SetService(ctx, system, path, lattice.ServiceState(arg(2)))
	case "answer":
		w.mu.Lock()
		answer := p.work[strings.Join(words, " ")]
		w.mu.Unlock()
		require.NotNil(t, answer, "%s: the backend is not at %q", d.Pos, words)
		var text string
		d.MaybeScanArgs(t, "fail", &text)
		if text == "" {
			answer <- nil
		} else {
			answer <- errors.New(text)
		}
	case "advance":
		pause, e := time.ParseDuration(arg(0))
		require.NoError(t, e)
		time.Sleep(pause)
		err = p.Sweep(ctx)
	case "sweep":
		err = p.Sweep(ctx)
	case "crash":
		w.kill()
		w.begin()
	case "stop":
		require.NoError(t, p.Close(ctx))
		w.begin()
	case "store":
		if arg(0) == "down" {
			p.link.set(errors.New("the store is down"))
		} else {
			p.link.set(nil)
		}
	case "show":
		w.show(t)
	default:
		t.Fatalf("%s: no command %q", d.Pos, d.Cmd)
	}
	return err
}

// show tells all there is: the records, the locks, and what the backend is at.
func (w *world) show(t *testing.T) {
	t.Helper()
	p, ctx := w.process, t.Context()
	for r, err := range p.Systems().All(ctx, lifecycle.Select[lattice.State]{}) {
		require.NoError(t, err)
		w.say("system %s is %s", r.ID, r.State)
	}
	for r, err := range p.Services().All(ctx, lifecycle.Select[lattice.ServiceState]{}) {
		require.NoError(t, err)
		w.say("service %s is %s", r.ID, r.State)
	}
	for r, err := range p.Deploys().All(ctx, lifecycle.Select[lattice.ActionState]{}) {
		require.NoError(t, err)
		w.say("deploy %s of %v is %s", r.ID, r.Payload.Path, r.State)
	}
	for r, err := range p.Teardowns().All(ctx, lifecycle.Select[lattice.ActionState]{}) {
		require.NoError(t, err)
		w.say("teardown %s is %s", r.ID, r.State)
	}
	for system := range p.Actions().Systems() {
		holders, err := p.Actions().Holders(ctx, system, lock.Root())
		require.NoError(t, err)
		for _, h := range holders {
			w.say("%s: %v at %v is held by %s", system, h.Mode, h.Path, h.Owner)
		}
	}
	w.mu.Lock()
	var at []string
	for what := range p.work {
		at = append(at, what)
	}
	w.mu.Unlock()
	slices.Sort(at)
	for _, what := range at {
		w.say("the backend is at %q", what)
	}
}
