package explore

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sync/errgroup"
)

// search visits the states breadth first, in batches of three phases:
//
//	expand   workers take chunks, a few states each, and list the successors
//	merge    one goroutine adds the successors, chunk by chunk, to the store
//	inspect  workers take the new states and call the invariants
//
// A phase reads what the phases before it wrote, and each chunk writes to its own
// memory, so there is nothing to lock. Chunks have a fixed size and merge in order,
// so that states get the same numbers with any number of workers. If the tables
// lack results of handlers, expand notes them, calls the handlers, and expands the
// chunks concerned once more.
type search struct {
	t       *tables
	config  Config
	workers int
	verdict *Verdict
	live    bool    // the system has resting states, so the search keeps the edges
	leads   []*lead // properties to check
	store   *store
	rests   bits         // by state
	pass    int64        // bytes that a pass needs; 0: none has begun
	edges   slab[uint32] // of each state in turn: the next state, and the mark if there are properties
	ends    slab[uint32] // by state: the place in edges where its own end
	chunks  []*chunk
}

const (
	chunkStates = 128
	batchChunks = 32
)

// chunk is a range of states with the results of one worker.
type chunk struct {
	from, to uint32
	x        *expander
	// The successors, those of one state behind those of the one before it.
	states []byte
	hashes []uint64
	marks  []uint32
	ends   []int  // by state of the chunk
	stuck  uint32 // the first state without a step; noState: none
	broken broken
}

// broken is the first state that violates an invariant, or the error of a function
// that panicked.
type broken struct {
	id       uint32
	property int
	problem  error
	err      error
}

func newSearch(t *tables, config *Config) *search {
	s := &search{
		t: t, config: *config, workers: config.Workers, live: t.sys.rests != nil,
		verdict: &Verdict{System: t.sys.name}, store: newStore(t.lay.size),
		edges: slab[uint32]{each: 1}, ends: slab[uint32]{each: 1},
	}
	if !config.SkipLeadsTo {
		for _, p := range t.sys.leads {
			s.leads = append(s.leads, &lead{leadsTo: p})
		}
		s.edges.each = 1 + min(1, len(s.leads))
	}
	if s.workers <= 0 {
		s.workers = runtime.GOMAXPROCS(0)
	}
	s.config.MaxBytes = config.maxBytes()
	for range batchChunks {
		c := &chunk{x: newExpander(t)}
		c.x.waits = len(s.leads) > 0
		c.x.emit = func(next []byte, m move) {
			c.states = append(c.states, next...)
			c.hashes = append(c.hashes, s.store.hash(next))
			c.marks = append(c.marks, m.mark)
		}
		s.chunks = append(s.chunks, c)
	}
	return s
}

// run explores everything and returns the verdict.
func (s *search) run(ctx context.Context, starts [][]byte) (*Verdict, error) {
	for _, state := range starts {
		s.store.add(state, s.store.hash(state), noState)
	}
	done, err := s.inspect(ctx, 0)
	for from := 0; !done && err == nil && from < s.store.n; {
		to := min(s.store.n, from+batchChunks*chunkStates)
		done, err = s.batch(ctx, from, to)
		from = to
		s.progress("explore", from, s.store.n)
	}
	if err == nil && !done {
		err = s.finish(ctx)
	}
	switch {
	case err != nil && ctx.Err() != nil && err == ctx.Err():
		s.verdict.Reason = err
	case err != nil:
		return nil, err
	}
	s.verdict.States = s.store.n
	s.verdict.Depth = len(s.store.path(uint32(s.store.n-1))) - 1
	return s.verdict, nil
}

// batch expands a range of states. done: the verdict is found.
func (s *search) batch(ctx context.Context, from, to int) (done bool, err error) {
	n := s.split(from, to)
	if err := s.expand(ctx, s.chunks[:n]); err != nil {
		return true, err
	}
	before := s.store.n
	for _, c := range s.chunks[:n] {
		s.merge(c)
	}
	for _, c := range s.chunks[:n] {
		if c.stuck != noState { // nearer than every new state
			s.found(Stuck, s.store.path(c.stuck), nil)
			return true, nil
		}
	}
	if done, err := s.inspect(ctx, before); done || err != nil {
		return done, err
	}
	return s.bounded(), nil
}

// split gives the states of a range to chunks and returns how many chunks it uses.
func (s *search) split(from, to int) (n int) {
	for ; from < to && n < len(s.chunks); n++ {
		c := s.chunks[n]
		c.from, c.to = uint32(from), uint32(min(from+chunkStates, to))
		from = int(c.to)
	}
	return n
}

// expand expands chunks until the tables have all results.
func (s *search) expand(ctx context.Context, chunks []*chunk) error {
	for len(chunks) > 0 {
		err := parallel(ctx, s.workers, len(chunks), func(i int) { s.expandChunk(chunks[i]) })
		if err != nil {
			return err
		}
		var misses []miss
		var again []*chunk
		for _, c := range chunks {
			if len(c.x.misses) > 0 {
				misses = append(misses, c.x.misses...)
				again = append(again, c)
			}
		}
		if err := s.t.fill(ctx, s.workers, misses); err != nil {
			return err
		}
		chunks = again
	}
	return nil
}

func (s *search) expandChunk(c *chunk) {
	c.states, c.hashes, c.marks, c.ends = c.states[:0], c.hashes[:0], c.marks[:0], c.ends[:0]
	c.x.misses, c.stuck = c.x.misses[:0], noState
	for id := c.from; id < c.to; id++ {
		before := len(c.marks)
		c.x.expand(s.store.state(id))
		c.ends = append(c.ends, len(c.marks))
		if c.stuck == noState && !(s.live && s.rests.has(id)) && !slices.ContainsFunc(c.marks[before:], isStep) {
			c.stuck = id
		}
	}
}

// merge adds the successors of a chunk to the store, and the edges.
func (s *search) merge(c *chunk) {
	size, i, keep := s.t.lay.size, 0, s.live || len(s.leads) > 0
	for n, end := range c.ends {
		for ; i < end; i++ {
			next := c.from + uint32(n)
			if c.marks[i]&waits == 0 {
				s.verdict.Steps++
				next, _ = s.store.add(c.states[i*size:(i+1)*size], c.hashes[i], next)
			}
			switch {
			case len(s.leads) > 0:
				copy(s.edges.push(), []uint32{next, c.marks[i]})
			case s.live && isStep(c.marks[i]):
				s.edges.push()[0] = next
			}
		}
		if keep {
			s.ends.push()[0] = uint32(s.edges.n)
		}
	}
}

// inspect calls the checks for every state, from a number on.
func (s *search) inspect(ctx context.Context, from int) (done bool, err error) {
	if s.live {
		s.rests.grow(s.store.n)
	}
	for _, p := range s.leads {
		p.begun.grow(s.store.n)
		p.fulfilled.grow(s.store.n)
	}
	for from < s.store.n {
		// Chunks of a multiple of 64 states write to different words of rests.
		aligned := from - from%64
		n := s.split(aligned, s.store.n)
		chunks := s.chunks[:n]
		chunks[0].from = uint32(from)
		from = int(chunks[n-1].to)
		if err := parallel(ctx, s.workers, n, func(i int) { s.inspectChunk(chunks[i]) }); err != nil {
			return true, err
		}
		for _, c := range chunks {
			if c.broken.err != nil {
				return true, c.broken.err
			}
		}
		for _, c := range chunks {
			if c.broken.problem != nil {
				s.verdict.Property, s.verdict.Problem = s.t.sys.always[c.broken.property].name, c.broken.problem
				s.found(Violated, s.store.path(c.broken.id), nil)
				return true, nil
			}
		}
	}
	return false, nil
}

func (s *search) inspectChunk(c *chunk) {
	c.broken = broken{}
	view := View{t: s.t}
	part, returned := "", false
	defer func() {
		if !returned {
			c.broken.err = panicked(s.t.sys, part, view.String(), recover())
		}
	}()
	for id := c.from; id < c.to; id++ {
		view.state = s.store.state(id)
		for i := range s.t.sys.always {
			p := &s.t.sys.always[i]
			part = partName("invariant", p.name)
			if err := p.holds(&view); err != nil && c.broken.problem == nil {
				c.broken = broken{id: id, property: i, problem: err}
			}
		}
		part = "resting states"
		if s.live && s.t.sys.rests(&view) {
			s.rests.add(id)
		}
		for _, p := range s.leads {
			part = partName("property", p.name)
			if p.to(&view) {
				p.fulfilled.add(id)
			} else if p.from == nil || p.from(&view) {
				p.begun.add(id)
			}
		}
	}
	returned = true
}

// bounded reports whether the search has reached the bound on memory.
func (s *search) bounded() bool {
	v := s.verdict
	v.Bytes = max(v.Bytes, s.bytes())
	if v.Bytes > s.config.MaxBytes || s.store.n >= noState/2 || s.edges.n >= noState/2 {
		v.Reason = fmt.Errorf("%w: %d", ErrMaxBytes, s.config.MaxBytes)
	}
	return v.Reason != nil
}

// bytes returns the memory that the search has.
func (s *search) bytes() int64 {
	n := s.t.bytes() + s.store.bytes() + s.edges.bytes() + s.ends.bytes() + 8*int64(cap(s.rests))
	for _, p := range s.leads {
		n += 8 * int64(cap(p.begun)+cap(p.fulfilled))
	}
	for _, c := range s.chunks {
		n += int64(cap(c.states)) + 4*int64(cap(c.marks)) + 8*int64(cap(c.hashes)+cap(c.ends)) + int64(unsafe.Sizeof(*c))
	}
	return n + s.pass
}

// progress reports how many states are done, and of how many.
func (s *search) progress(what string, done, total int) {
	if s.config.Progress != nil {
		s.config.Progress(what+" "+s.t.sys.name, done, total)
	}
}

// found completes the verdict with the trace of a run and of its loop. Both stand in
// reverse order.
func (s *search) found(o Outcome, reversed [][]byte, loop []edge) {
	v := s.verdict
	v.Outcome = o
	v.Trace = s.trace(reversed, loop)
	v.Trace.Outcome, v.Trace.Property = o, v.Property
	if v.Problem != nil {
		v.Trace.Problem = v.Problem.Error()
	}
}

// holds completes the verdict of a system without a violation.
func (s *search) holds() {
	happened := make([]bool, len(s.chunks[0].x.happened))
	for _, c := range s.chunks {
		for i, yes := range c.x.happened {
			happened[i] = happened[i] || yes
		}
	}
	s.verdict.Outcome, s.verdict.Unused = Holds, s.t.unused(happened)
	for _, p := range s.leads {
		s.verdict.Live = append(s.verdict.Live, p.name)
	}
}

// parallel calls do(i) for every i below n with the given number of workers. It returns
// after all workers have ended. If the context ends, it skips the rest and returns the
// error of the context.
func parallel(ctx context.Context, workers, n int, do func(i int)) error {
	var group errgroup.Group
	group.SetLimit(workers)
	for i := range n {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error {
			do(i)
			return nil
		})
	}
	return cmp.Or(group.Wait(), ctx.Err())
}
