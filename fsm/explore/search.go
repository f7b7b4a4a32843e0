package explore

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"unsafe"
)

// search visits the states level by level. A level is done in batches, a batch in
// two phases:
//
//	expand  workers take tasks, a few states of one shard each, and put the
//	        successors into buffers, by task and by shard of the successor
//	merge   workers take shards, and add what the buffers of that shard hold,
//	        task by task
//
// In a phase everybody reads what the phase before has written, and writes only
// what belongs to its task or shard: there is nothing to lock. Sizes of tasks and
// batches are fixed, so that states get the same numbers however many workers
// there are. What the tables lack is noted while expanding and filled in between,
// in order of tasks; then the tasks that lacked something are done again.
type search[K packed] struct {
	t       *tables
	workers int
	bound   Options
	verdict *Verdict
	shards  [shards]shard[K]
	edges   edgeList
	live    bool // resting states matter, and with them edges
	tasks   []*task[K]
	batch   []*task[K] // those of tasks that are in use
	hands   []*hand[K] // by worker
	broken  [shards]broken
}

const (
	taskStates = 128 // of a task, at most
	batchTasks = 32
	// inline is the number of states for which goroutines are not worth it.
	inline = 256
)

// task is a range of places in a shard, and what came out of expanding it.
type task[K packed] struct {
	shard    int
	from, to uint32
	out      [shards][]entry[K]
	begins   []uint32 // by state: edges of the task before its own, plus one; 0: it has none
	edges    uint32
	steps    int
	stuck    uint32 // the first state from which no step leads; nobody
	misses   []miss
}

// entry is a successor on the way to its shard.
type entry[K packed] struct {
	k      K
	parent uint32
	edge   uint32 // edge of the task plus one, lastEdge set for the last of a state; 0: a fault
}

// hand is what one worker works with.
type hand[K packed] struct {
	x        *expander[K]
	view     View
	property int // the invariant that is being called; -1: that of resting states
}

// broken is what came up in a shard while merging: the first state that breaks
// an invariant, or the function that panicked.
type broken struct {
	id       uint32
	property int
	problem  error
	err      error
}

func explore[K packed](ctx context.Context, t *tables, starts [][]uint32, o *Options) (*Verdict, error) {
	s := &search[K]{t: t, bound: *o, workers: o.Workers, live: t.sys.rests != nil}
	s.verdict = &Verdict{System: t.sys.name, Outcome: Inconclusive}
	if s.workers <= 0 {
		s.workers = runtime.GOMAXPROCS(0)
	}
	s.workers = min(s.workers, shards)
	s.bound.MaxBytes = o.bytes()
	for range s.workers {
		s.hands = append(s.hands, &hand[K]{
			x: newExpander[K](t), view: View{t: t, ids: make([]uint32, len(t.lay.fields))},
		})
	}
	for i := range s.shards {
		s.shards[i].most = maxPlaces
	}
	done, err := s.start(ctx, starts)
	var from, to [shards]uint32
	for level := 0; !done && err == nil; level++ {
		for i := range s.shards {
			from[i], to[i] = to[i], s.shards[i].n
		}
		if from == to {
			break
		}
		s.verdict.Depth = level
		done, err = s.level(ctx, from, to)
	}
	if err == nil && !done {
		err = s.finish(ctx)
	}
	if err != nil {
		return nil, err
	}
	for i := range s.shards {
		if s.shards[i].n > to[i] && to != [shards]uint32{} { // the verdict came in the middle of a level
			s.verdict.Depth++
			break
		}
	}
	s.count()
	return s.verdict, nil
}

// start adds the initial states.
func (s *search[K]) start(ctx context.Context, starts [][]uint32) (done bool, err error) {
	tk := s.task(0)
	for _, ids := range starts {
		var k K
		for i, f := range s.t.lay.fields {
			k = put(k, f, ids[i])
		}
		to := shardOfHash(hash(k))
		tk.out[to] = append(tk.out[to], entry[K]{k: k, parent: nobody})
	}
	s.batch = append(s.batch, tk)
	return s.merge(ctx, 1)
}

// level expands the states between these places. done: the verdict is found.
func (s *search[K]) level(ctx context.Context, from, to [shards]uint32) (done bool, err error) {
	s.batch = s.batch[:0]
	states := 0
	for i := range s.shards {
		for at := from[i]; at < to[i]; at += taskStates {
			tk := s.task(len(s.batch))
			tk.shard, tk.from, tk.to = i, at, min(at+taskStates, to[i])
			s.batch = append(s.batch, tk)
			states += int(tk.to - tk.from)
			if len(s.batch) == batchTasks {
				if done, err = s.one(ctx, states); done || err != nil {
					return done, err
				}
				s.batch, states = s.batch[:0], 0
			}
		}
	}
	if len(s.batch) > 0 {
		return s.one(ctx, states)
	}
	return false, nil
}

func (s *search[K]) task(i int) *task[K] {
	if i == len(s.tasks) {
		s.tasks = append(s.tasks, &task[K]{})
	}
	tk := s.tasks[i]
	tk.reset()
	return tk
}

func (tk *task[K]) reset() {
	for i := range tk.out {
		tk.out[i] = tk.out[i][:0]
	}
	tk.begins, tk.misses = tk.begins[:0], tk.misses[:0]
	tk.edges, tk.steps, tk.stuck = 0, 0, nobody
}

// one does one batch.
func (s *search[K]) one(ctx context.Context, states int) (done bool, err error) {
	workers := s.workers
	if states < inline {
		workers = 1
	}
	if done, err := s.expand(ctx, workers); done || err != nil {
		return done, err
	}
	stuck := uint32(nobody)
	for _, tk := range s.batch {
		s.verdict.Steps += tk.steps
		if stuck == nobody {
			stuck = tk.stuck
		}
		s.lay(tk)
	}
	done, err = s.merge(ctx, workers)
	s.t.forget()
	if err == nil && stuck != nobody {
		// It is nearer than what the merge has found, of which nothing remains.
		s.verdict.Property, s.verdict.Problem, s.verdict.Reason = "", nil, nil
		return true, s.found(Stuck, stuck)
	}
	return done, err
}

// lay gives the edges of a task their place in the list. Its entries are turned
// from numbers within the task to those of the list by merge.
func (s *search[K]) lay(tk *task[K]) {
	base := s.edges.reserve(int(tk.edges))
	if tk.edges == 0 {
		return
	}
	nodes := &s.shards[tk.shard].nodes
	for i, at := range tk.begins {
		if at != 0 {
			nodes.at(tk.from + uint32(i)).edges = uint32(base) + at
		}
	}
	tk.edges = uint32(base)
}

// expand does the first phase, as often as it takes until nothing is missing.
func (s *search[K]) expand(ctx context.Context, workers int) (done bool, err error) {
	todo := s.batch
	for {
		stopped := parallel(ctx, workers, len(todo), func(worker, i int) {
			s.expandTask(s.hands[worker].x, todo[i])
		})
		if stopped != nil {
			return true, s.stop(stopped)
		}
		var misses []miss
		var again []*task[K]
		for _, tk := range todo {
			if len(tk.misses) > 0 {
				misses = append(misses, tk.misses...)
				again = append(again, tk)
			}
		}
		if len(misses) == 0 {
			return false, nil
		}
		if stopped, err := s.t.fill(ctx, workers, misses); stopped != nil || err != nil {
			if err == nil {
				err = s.stop(stopped)
			}
			return true, err
		}
		if s.t.outgrown() {
			return true, errOutgrown
		}
		for _, tk := range again {
			tk.reset()
		}
		todo = again
	}
}

func (s *search[K]) expandTask(x *expander[K], tk *task[K]) {
	sh := &s.shards[tk.shard]
	for place := tk.from; place < tk.to; place++ {
		k, id := sh.nodes.at(place).k, idOf(tk.shard, place)
		x.expand(k)
		if tk.misses = append(tk.misses, x.misses...); len(tk.misses) > 0 {
			continue
		}
		tk.steps += len(x.out)
		free, before := 0, tk.edges
		last := -1 // shard of the last edge
		for i := range x.out {
			next := &x.out[i]
			to := shardOfHash(hash(next.k))
			edge := uint32(0)
			if s.live && !next.fault {
				free++
				if next.k != k { // or it leads nowhere
					tk.edges++
					edge, last = tk.edges, to
				}
			}
			tk.out[to] = append(tk.out[to], entry[K]{k: next.k, parent: id, edge: edge})
		}
		if !s.live {
			continue
		}
		if last >= 0 {
			markLast(tk.out[last])
			tk.begins = append(tk.begins, before+1)
		} else {
			tk.begins = append(tk.begins, 0)
		}
		if free == 0 && tk.stuck == nobody && !sh.resting(place) {
			tk.stuck = id
		}
	}
}

// markLast marks the last edge. Faults of the same state may be behind it.
func markLast[K packed](out []entry[K]) {
	i := len(out) - 1
	for out[i].edge == 0 {
		i--
	}
	out[i].edge |= lastEdge
}

// merge does the second phase, and looks at what it brought.
func (s *search[K]) merge(ctx context.Context, workers int) (done bool, err error) {
	stopped := parallel(ctx, workers, shards, func(worker, i int) { s.mergeShard(s.hands[worker], i) })
	if stopped != nil {
		return true, s.stop(stopped)
	}
	for i := range s.broken {
		if err := s.broken[i].err; err != nil {
			return true, err
		}
	}
	for i := range s.broken {
		if b := &s.broken[i]; b.problem != nil {
			s.verdict.Property, s.verdict.Problem = s.t.sys.always[b.property].name, b.problem
			return true, s.found(Violated, b.id)
		}
	}
	return s.bounded(), nil
}

func (s *search[K]) mergeShard(w *hand[K], at int) {
	sh, view := &s.shards[at], &w.view
	returned := false
	defer func() {
		if !returned {
			part := "resting states"
			if w.property >= 0 {
				part = partName("invariant", s.t.sys.always[w.property].name)
			}
			s.broken[at].err = panicked(s.t.sys, part, view.String(), recover())
		}
	}()
	for _, tk := range s.batch {
		for i := range tk.out[at] {
			e := &tk.out[at][i]
			place, known := sh.find(e.k, hash(e.k), e.parent)
			if e.edge != 0 {
				*s.edges.at(uint64(tk.edges) + uint64(e.edge&^lastEdge) - 1) = idOf(at, place) | e.edge&lastEdge
			}
			if !known {
				for f, field := range s.t.lay.fields {
					view.ids[f] = field.of(e.k[field.word])
				}
				s.look(w, at, place)
			}
		}
	}
	returned = true
}

// look calls what the system has to say about a new state.
func (s *search[K]) look(w *hand[K], at int, place uint32) {
	for i := range s.t.sys.always {
		p := &s.t.sys.always[i]
		w.property = i
		if err := p.holds(&w.view); err != nil && s.broken[at].problem == nil {
			s.broken[at] = broken{id: idOf(at, place), property: i, problem: err}
		}
	}
	if s.live {
		w.property = -1
		s.shards[at].setRests(place, s.t.sys.rests(&w.view))
	}
}

const defaultMaxBytes = 1 << 30

// bounded reports whether a bound is reached.
func (s *search[K]) bounded() bool {
	s.count()
	v := s.verdict
	full := s.edges.n >= 1<<31
	for i := range s.shards {
		full = full || s.shards[i].full
	}
	switch {
	case s.bound.MaxStates > 0 && v.States > s.bound.MaxStates:
		v.Reason = fmt.Errorf("%w: %d", ErrMaxStates, s.bound.MaxStates)
	case full || v.Bytes > s.bound.MaxBytes:
		v.Reason = fmt.Errorf("%w: %d", ErrMaxBytes, s.bound.MaxBytes)
	}
	return v.Reason != nil
}

func (s *search[K]) stop(reason error) error {
	s.verdict.Reason = reason
	return nil
}

// count sums up states and bytes. What the end of the search needs is part of
// them from the beginning, so that it cannot fail for lack of memory.
func (s *search[K]) count() {
	v, n, searching := s.verdict, s.t.bytes+s.edges.bytes(), int64(0)
	v.States = 0
	for i := range s.shards {
		sh := &s.shards[i]
		v.States += int(sh.n)
		n += sh.nodes.bytes() + 8*int64(cap(sh.rests))
		searching += 4 * int64(len(sh.table))
	}
	for _, tk := range s.tasks {
		searching += 4*int64(cap(tk.begins)) + int64(unsafe.Sizeof(*tk))
		for i := range tk.out {
			searching += int64(cap(tk.out[i])) * int64(unsafe.Sizeof(entry[K]{}))
		}
	}
	if s.live {
		searching = max(searching, s.finishBytes(v.States))
	}
	v.Bytes = max(v.Bytes, n+searching)
}

// found completes the verdict with the way to a state.
func (s *search[K]) found(o Outcome, id uint32) (err error) {
	var run []K
	for ; id != nobody; id = s.node(id).parent {
		run = append(run, s.node(id).k)
	}
	slices.Reverse(run)
	x, loop := newExpander[K](s.t), 0
	if o == Livelock {
		again, err := x.loopFrom(run[len(run)-1])
		if err != nil {
			return err
		}
		run, loop = append(run, again...), len(again)
	}
	v := s.verdict
	v.Outcome = o
	if v.Trace, err = x.trace(run, loop); err != nil {
		return err
	}
	v.Trace.Outcome, v.Trace.Property = o, v.Property
	if v.Problem != nil {
		v.Trace.Problem = v.Problem.Error()
	}
	return nil
}

func (s *search[K]) node(id uint32) *node[K] { return s.shards[shardOf(id)].nodes.at(placeOf(id)) }
