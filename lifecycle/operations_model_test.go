package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/lifecycle"
)

// TestOperationsModel plays random scripts on a few objects with a few processes
// that die and come back. It remembers every commit and its writer, and checks:
//   - the history of an object is a path of the table, except for overrides;
//   - only the owner of an operation writes its outcome;
//   - a ticket returns the outcome that was written;
//   - in the end every object is at rest.
func TestOperationsModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		script := rapid.SliceOfN(rapid.Custom(drawAct), 1, 40).Draw(rt, "script")
		var wrong string
		synctest.Test(t, func(t *testing.T) { wrong = play(t, script) })
		if wrong != "" {
			rt.Fatal(wrong)
		}
	})
}

// act is one line of a script.
type act struct {
	What            string
	Object, Process int
	Event           event
	To              state
	How             int // how a work ends, or what a report is about
}

func drawAct(t *rapid.T) act {
	return act{
		What: rapid.SampledFrom([]string{
			"do", "do", "do", "do", "do", "fire", "report", "finish", "finish", "finish", "finish",
			"sweep", "sweep", "sweep", "override", "crash", "restart", "heartbeat", "sleep", "cancel",
		}).Draw(t, "what"),
		Object:  rapid.IntRange(0, 1).Draw(t, "object"),
		Process: rapid.IntRange(0, 2).Draw(t, "process"),
		Event:   rapid.SampledFrom([]event{"create", "start", "stop", "reboot", "delete", "rename", "inspect"}).Draw(t, "event"),
		To:      rapid.SampledFrom([]state{"none", "stopped", "running", "starting", "rebooting", "failed"}).Draw(t, "to"),
		How:     rapid.IntRange(0, 3).Draw(t, "how"),
	}
}

// mortal is the store as a process sees it that can die.
type mortal struct {
	*lifecycle.MemoryStore
	dead atomic.Bool
}

var errDead = errors.New("the process is dead")

func (s *mortal) Get(ctx context.Context, k lifecycle.Key) (lifecycle.StoredRecord, error) {
	if s.dead.Load() {
		return lifecycle.StoredRecord{}, errDead
	}
	return s.MemoryStore.Get(ctx, k)
}

func (s *mortal) Commit(ctx context.Context, c *lifecycle.Commit) error {
	if s.dead.Load() {
		return errDead
	}
	return s.MemoryStore.Commit(ctx, c)
}

func (s *mortal) List(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
	if s.dead.Load() {
		return nil, errDead
	}
	return s.MemoryStore.List(ctx, q)
}

// life is one life of a process.
type life struct {
	store *mortal
	owner *lifecycle.Owner
	m     *sizedManager
}

func (l *life) crash() {
	l.store.dead.Store(true)
	halt(l.m)
}

// job is work that runs until the test ends it.
type job struct {
	end chan int
}

// playground is what a script is played on.
type playground struct {
	store   *lifecycle.MemoryStore
	lives   [3]*life
	peer    *sizedManager
	tickets []held

	mu     sync.Mutex
	jobs   []*job
	over   bool                            // work ends at once
	writer map[lifecycle.Token]processLife // of every observed commit
	wrong  string
}

type held struct {
	h  *lifecycle.Ticket[state, size]
	by *life
	id string
}

// processLife is a name and an epoch of a process. The zero processLife is the peer.
type processLife struct {
	owner string
	epoch uint64
}

func (p *playground) fault(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wrong == "" {
		p.wrong = fmt.Sprintf(format, args...)
	}
}

// work is the handler of every process.
func (p *playground) work(ctx context.Context, args []byte) error {
	j := &job{end: make(chan int, 1)}
	p.mu.Lock()
	if p.over {
		p.mu.Unlock()
		return nil
	}
	p.jobs = append(p.jobs, j)
	p.mu.Unlock()
	how := 0
	select {
	case <-ctx.Done():
		return ctx.Err()
	case how = <-j.end:
	}
	switch how {
	case 1:
		return errBoom
	case 2:
		panic(errBoom)
	}
	return nil
}

// watch records which process wrote which commit.
func (p *playground) watch(l processLife) func(context.Context, lifecycle.CommittedChange) {
	return func(_ context.Context, row lifecycle.CommittedChange) {
		p.mu.Lock()
		p.writer[row.Token] = l
		p.mu.Unlock()
	}
}

func (p *playground) join(t *testing.T, i int) {
	s := &mortal{MemoryStore: p.store}
	o := join(t, s, fmt.Sprint("p", i), 20*time.Second)
	w := processLife{o.Name(), o.Epoch()}
	p.lives[i] = &life{store: s, owner: o, m: workers(&guarded{s, p, w}, lifecycle.Config[event]{
		Owner: o, Handlers: map[string]lifecycle.Handler{"work": p.work}, Observer: lifecycle.Observer{Changed: p.watch(w)},
	})}
}

// guarded checks every outcome when it is written.
type guarded struct {
	*mortal
	p *playground
	w processLife
}

func (g *guarded) Commit(ctx context.Context, c *lifecycle.Commit) error {
	ch := &c.Changes[0]
	before, err := g.MemoryStore.Get(ctx, ch.To.Key)
	written := g.mortal.Commit(ctx, c)
	if err == nil && written == nil && !ch.MetadataOnly && ch.To.Actor == "worker" && (before.Owner != g.w.owner || before.Epoch != g.w.epoch) {
		g.p.fault("%v wrote the outcome of %v, which %s of epoch %d owned", g.w, ch.To.Key, before.Owner, before.Epoch)
	}
	return written
}

func play(t *testing.T, script []act) string {
	ctx := t.Context()
	p := &playground{store: &lifecycle.MemoryStore{KeepHistory: -1}, writer: map[lifecycle.Token]processLife{}}
	for i := range p.lives {
		p.join(t, i)
	}
	p.peer = workers(p.store, lifecycle.Config[event]{})
	for i, a := range script {
		p.step(ctx, t, a)
		synctest.Wait()
		if p.wrong != "" {
			return fmt.Sprintf("step %d, %+v: %s", i, a, p.wrong)
		}
	}
	p.finish(ctx, t)
	return p.wrong
}

func (p *playground) step(ctx context.Context, t *testing.T, a act) {
	id, l := fmt.Sprint("vm", a.Object), p.lives[a.Process]
	switch a.What {
	case "do":
		p.do(ctx, l, id, a.Event)
	case "fire":
		_, _ = p.peer.Fire(ctx, id, a.Event, user, nil)
	case "report":
		now, err := p.store.Get(ctx, lifecycle.Key{Machine: "work-vm", ID: id})
		require.NoError(t, err)
		about := now.Operation - min(now.Operation, lifecycle.OpID(a.How))
		v, err := p.peer.Report(ctx, id, about, "done", "worker", nil)
		if err != nil || v == lifecycle.Applied && about != now.Operation {
			p.fault("a report about %d of %d is %v, %v", about, now.Operation, v, err)
		}
	case "finish":
		p.mu.Lock()
		var j *job
		if n := len(p.jobs); n > 0 {
			k := a.Object % n
			j = p.jobs[k]
			p.jobs = slices.Delete(p.jobs, k, k+1)
		}
		p.mu.Unlock()
		if j != nil {
			j.end <- a.How
		}
	case "sweep":
		_, err := l.m.Sweep(ctx)
		p.unless(l, err)
	case "override":
		_, _ = p.peer.Override(ctx, id, a.To, "ann", "because", nil)
	case "crash":
		l.crash()
	case "restart":
		l.crash()
		p.join(t, a.Process)
	case "heartbeat":
		for _, l := range p.lives {
			_ = l.owner.Heartbeat(ctx)
		}
	case "sleep":
		time.Sleep(time.Duration(1+a.How) * 10 * time.Second)
	case "cancel":
		if n := len(p.tickets); n > 0 {
			p.tickets[a.How%n].h.Cancel(errBoom)
		}
	}
}

// unless faults an error that a process has while it lives.
func (p *playground) unless(l *life, err error) {
	if err != nil && !l.store.dead.Load() {
		p.fault("%v", err)
	}
}

// do compares the admission with what the table permits.
func (p *playground) do(ctx context.Context, l *life, id string, e event) {
	rec, err := p.peer.Get(ctx, id)
	status := rec.Status
	if errors.Is(err, lifecycle.ErrNotFound) {
		status = workVM.At("none")
	}
	next, refused := workVM.Next(ctx, status, e, user, nil)
	table := workVM.Table()
	begins := refused == nil && !next.Ignored && !rests(next.State) && (rests(status.State) || table.Rows[next.Row].Supersede)
	self := lifecycle.OwnerRef{Name: l.owner.Name(), Epoch: l.owner.Epoch()}
	owner, err := p.store.Get(ctx, self.Key())
	lost := err != nil || !self.Alive(&owner)
	ticket, err := l.m.Do(ctx, id, e, user, lifecycle.Named("work", nil), nil)
	if want := begins && !lost && !l.store.dead.Load(); want != (err == nil) {
		p.fault("%v in %v: admitted should be %v, and is %v", e, status, want, err)
	}
	if err == nil {
		p.tickets = append(p.tickets, held{ticket, l, id})
	}
}

// finish lets all work end and checks what is left.
func (p *playground) finish(ctx context.Context, t *testing.T) {
	p.mu.Lock()
	p.over = true
	jobs := p.jobs
	p.mu.Unlock()
	for _, j := range jobs {
		j.end <- 0
	}
	synctest.Wait()
	p.join(t, 0) // one process at least lives
	for range 5 {
		time.Sleep(time.Hour)
		_, err := p.lives[0].m.Sweep(ctx)
		require.NoError(t, err)
		synctest.Wait()
		p.join(t, 0)
	}
	for i := range 2 {
		id := fmt.Sprint("vm", i)
		rows, err := p.store.History(ctx, lifecycle.Key{Machine: "work-vm", ID: id}, 0, 10000)
		require.NoError(t, err)
		p.checkPath(rows)
		if now, err := p.peer.Get(ctx, id); err == nil && !rests(now.State) && now.State != "inspecting" && (now.State != "rebooting" || now.Owner != "") {
			// Rebooting without work, by Fire or Override, is begun anew for ever.
			p.fault("%s is %v in the end", id, now)
		}
		for _, h := range p.tickets {
			if h.id == id {
				p.checkTicket(ctx, h, rows)
			}
		}
	}
	for _, l := range p.lives {
		l.store.dead.Store(false)
	}
}

func rests(s state) bool {
	return workVM.Table().States[workVM.StateIndex(s)].Kind.Resting()
}
