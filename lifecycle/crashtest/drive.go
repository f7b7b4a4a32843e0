package crashtest

import (
	"context"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// drive performs the scenario until nothing moves any more. Time passes here only,
// when all goroutines wait.
func (w *world) drive() {
	for _, role := range w.s.processes {
		w.launch(role, role, false)
		w.settle() // one after the other, so that their writes have an order
	}
	w.all.Go(func() {
		err := w.s.script(w.ctx, w)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.finished, w.scriptErr = true, err
	})
	for range w.s.rounds {
		w.settle()
		if w.supervise() {
			continue
		}
		if len(w.unrest()) == 0 {
			return
		}
		w.pass(w.s.tick)
		w.tick()
	}
	w.settle()
	w.blame("not at rest after %v: %s", w.elapsed, strings.Join(w.unrest(), "; "))
}

// settle waits until all other goroutines wait.
func (w *world) settle() {
	if w.h.Synctest {
		synctest.Wait()
		return
	}
	calm := w.h.Calm
	if calm == 0 {
		calm = 30 * time.Millisecond
	}
	for before := uint64(0); ; {
		w.mu.Lock()
		now, calling := w.activity, w.calling
		w.mu.Unlock()
		if now == before && calling == 0 {
			return
		}
		before = now
		time.Sleep(calm)
	}
}

// pass lets time pass for the store and for goroutines that sleep.
func (w *world) pass(d time.Duration) {
	if w.h.Synctest {
		time.Sleep(d)
	}
	if w.h.Age != nil {
		w.h.Age(w.t, w.inner, d)
	}
}

// tick makes every live process send a heartbeat and sweep: one after the other
// until the script has ended, so that writes have an order; then all at once.
func (w *world) tick() {
	w.mu.Lock()
	all := slices.Clone(w.processes)
	w.elapsed += w.s.tick
	inOrder := !w.finished
	w.mu.Unlock()
	for _, p := range all {
		w.mu.Lock()
		idle := p.lives() && !p.ticking
		w.mu.Unlock()
		if !idle {
			continue
		}
		p.tick()
		if inOrder {
			w.settle()
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sleepers = slices.DeleteFunc(w.sleepers, func(s sleeper) bool {
		if s.until > w.elapsed {
			return false
		}
		close(s.wake)
		return true
	})
}

// supervise starts a process for each that has ended or stalls, and releases a
// paused process that others have taken over. It reports whether it has done
// anything.
func (w *world) supervise() (did bool) {
	w.mu.Lock()
	all := slices.Clone(w.processes)
	w.mu.Unlock()
	for _, p := range all {
		w.mu.Lock()
		state, news, plays := p.state, !p.heeded, w.roles[p.role] == p
		fails := p.failed != nil || p.lost
		name := p.name
		if state == paused || state == gone && p.forGood {
			name += "-heir"
		}
		if news && (state != runs || fails) {
			p.heeded = true
		}
		w.mu.Unlock()
		switch {
		case news && plays && (state != runs || fails):
			w.launch(p.role, name, true)
			did = true
		case state == paused && w.takenOver(p):
			w.mu.Lock()
			// The process is replaced already. It learns at its next heartbeat that its
			// ownership is lost.
			p.heeded = false
			w.mu.Unlock()
			p.goOn(runs)
			did = true
		}
	}
	w.mu.Lock()
	var roles []string
	for _, role := range w.s.processes {
		if w.wanted[role] && w.roles[role] == nil {
			roles = append(roles, role)
		}
	}
	if w.finished && !slices.ContainsFunc(w.processes, func(p *Process) bool { return p.state == runs && !p.left && !p.lost && p.failed == nil }) {
		roles = w.s.processes[:1]
	}
	w.mu.Unlock()
	for _, role := range roles {
		w.launch(role, role, true)
		did = true
	}
	return did
}

// takenOver reports whether the other processes consider a paused process dead, and
// no operation of its is left.
func (w *world) takenOver(p *Process) bool {
	w.mu.Lock()
	others := slices.ContainsFunc(w.processes, (*Process).lives)
	tables := w.known()
	w.mu.Unlock()
	if !others {
		return false
	}
	if p.owner == nil {
		return len(w.inTransition(tables)) == 0
	}
	now, err := w.inner.Get(context.Background(), p.alive.Key)
	if err != nil {
		w.blame("Get: %v", err)
		return true
	}
	if now.State == p.alive.State && now.Operation == p.alive.Operation {
		return false
	}
	return !slices.ContainsFunc(w.inTransition(tables), func(r lifecycle.StoredRecord) bool {
		return r.Owner == p.owner.Name() && r.Epoch == p.owner.Epoch()
	})
}

// unrest returns what is not at rest yet.
func (w *world) unrest() (why []string) {
	w.mu.Lock()
	if !w.finished {
		why = append(why, "the script has not ended")
	} else {
		w.done = true
	}
	for _, p := range w.processes {
		if p.state == paused {
			why = append(why, p.name+" is paused, and no process has taken over")
		}
		if p.state == runs {
			why = append(why, p.waiters()...)
		}
	}
	tables := w.known()
	w.mu.Unlock()
	for _, r := range w.inTransition(tables) {
		why = append(why, nameOf(r.Key)+" is "+r.State)
	}
	return why
}

// waiters returns the requests and the work that a process has not ended. REQUIRES:
// w.mu.
func (p *Process) waiters() (list []string) {
	for r := range p.pending {
		list = append(list, "no answer of "+p.name+": "+r.what)
	}
	if s := p.queue.Stats(); s.Running+s.Waiting+s.Blocked > 0 {
		list = append(list, "work waits or runs in "+p.name)
	}
	slices.Sort(list)
	return list
}

// known returns the tables by name. REQUIRES: w.mu.
func (w *world) known() []managed {
	var list []managed
	for _, m := range w.tables {
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b managed) int { return strings.Compare(a.table.Name, b.table.Name) })
	return list
}

// inTransition returns the records that may not stay as they are: in transitional
// states, unless the table names the state Manual or the scenario allows it as an
// end.
func (w *world) inTransition(tables []managed) (list []lifecycle.StoredRecord) {
	for _, m := range tables {
		for _, r := range w.records(m.table.Name) {
			i, ok := m.table.StateIndex(r.State)
			if ok && m.table.States[i].Kind == fsm.Transitional && m.table.States[i].Manual == "" &&
				!slices.Contains(w.s.ends[r.Key], r.State) {
				list = append(list, r)
			}
		}
	}
	return list
}

// records reads all objects of a machine, past the processes.
func (w *world) records(machine string) (list []lifecycle.StoredRecord) {
	q := lifecycle.Query{Machine: machine, Limit: 500}
	for {
		found, err := w.inner.List(context.Background(), q)
		if err != nil {
			w.blame("List: %v", err)
			return list
		}
		list = append(list, found...)
		if len(found) < q.Limit {
			return list
		}
		q.After = found[len(found)-1].ID
	}
}

// end ends all goroutines of the point.
func (w *world) end() {
	w.cancel(errOver)
	w.mu.Lock()
	all := slices.Clone(w.processes)
	w.mu.Unlock()
	for _, p := range all {
		w.mu.Lock()
		waits := p.state == paused || p.state == gone
		w.mu.Unlock()
		if waits {
			p.goOn(over)
		}
		p.queue.Abort(errOver) // settles waiting work in this goroutine
	}
	ends := true
	for _, p := range all {
		ctx, stop := context.WithTimeout(context.Background(), w.h.patience())
		err := p.queue.Terminate(ctx)
		stop()
		if err == nil {
			continue
		}
		w.blame("work in %s does not end with its context: %v", p.name, err)
		if w.h.Synctest { // no goroutine may survive the bubble
			ctx, stop := context.WithTimeout(context.Background(), forever)
			ends = p.queue.Terminate(ctx) == nil && ends
			stop()
		}
	}
	if !w.quits() {
		w.blame("the script or one of its requests does not end with its context: %s", strings.Join(w.unrest(), "; "))
		ends = !w.h.Synctest
	}
	if ends {
		return
	}
	// The bubble panics because a goroutine never ends, and Run reports nothing then.
	for _, text := range w.wrong {
		w.t.Errorf("%s: %s", nameOfRun(w.faults), text)
	}
}

// forever is longer than any goroutine takes that ends at all. It costs nothing in a
// bubble.
const forever = 10000 * time.Hour

// quits waits for all goroutines of the kit and reports whether they have ended.
func (w *world) quits() bool {
	ended := make(chan struct{})
	go func() {
		w.all.Wait()
		close(ended)
	}()
	limit := w.h.patience()
	if w.h.Synctest {
		limit = forever
	}
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-ended:
		return true
	case <-late.C:
		return false
	}
}
