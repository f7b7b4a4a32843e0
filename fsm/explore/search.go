package explore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"

	"golang.org/x/sync/errgroup"
)

// Config bounds an exploration. nil is the zero Config, which has the defaults.
type Config struct {
	// Workers is the number of goroutines. Default: GOMAXPROCS.
	Workers int
	// MaxBytes is the memory in bytes that states, edges and tables may take, as
	// [Verdict.Bytes] counts it. Default: 1 GiB. Explore checks the bound after every
	// batch of a few thousand states and may exceed it by one batch.
	MaxBytes int64
	// SkipLeadsTo leaves the properties of [System.LeadsTo] unchecked. Without them an
	// exploration needs less time and memory. Default: false.
	SkipLeadsTo bool
	// Progress receives how far the exploration is: what it does, how many states are done,
	// and of how many. While the exploration searches for states, the total is the number of
	// states that it has found. Progress runs in the goroutine of the caller of Explore,
	// after every few thousand states. Default: none.
	Progress func(what string, done, total int)
}

const defaultMaxBytes = 1 << 30

// search visits the states breadth first, in batches. Workers expand the states of a batch:
// each takes chunks of a few states and lists their successors. Then one goroutine adds the
// successors to the store, chunk by chunk, checks the new states, and calls the functions of
// actors for them. The workers only read what that goroutine writes, and each chunk writes to
// its own memory, so there is nothing to lock. Chunks have a fixed size, so that states get
// the same numbers with any number of workers.
type search struct {
	t        *tables
	config   Config
	verdict  *Verdict
	leads    []*lead // properties to check
	store    *store
	rests    []bool // by state
	reserved int64  // bytes that a pass needs; 0: none has begun
	edges    slab   // of each state in turn: the next state, and the mark if there are properties
	firsts   slab   // by state: the place of its first edge; the last entry is the end of all
	chunks   []*chunk
	view     View
	calling  calling
}

const (
	chunkStates = 128
	batchChunks = 32
)

// chunk is a range of states with their successors.
type chunk struct {
	*expander
	from, to uint32
	states   []uint32 // the successors, those of one state behind those of the one before it
	marks    []uint32
	ends     []int // by state of the chunk
}

// lead is a liveness property in a search, with its states.
type lead struct {
	property
	begun     []bool // by state: of from, and does not fulfil it
	fulfilled []bool // by state: of to
}

// calling is the function of the system that the search calls: of an actor, or a check of
// the state of the view.
type calling struct {
	label string // empty: none
	argument
}

// Explore visits every state that the system can reach, breadth first, and
// returns the verdict. An error reports a faulty description of the system and
// matches [ErrModel]. An invariant that does not hold, a bound and a context that
// ended are in the verdict: use [Verdict.Err]. A nil config is the default.
//
// Explore starts goroutines and returns after all of them have ended.
func (s *System) Explore(ctx context.Context, config *Config) (v *Verdict, err error) {
	problems := slices.Clone(s.problems)
	if len(s.actors) == 0 {
		problems = append(problems, fmt.Errorf("%w: system %q: no actor", ErrModel, s.name))
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	x := newSearch(s, config)
	defer func() {
		if x.calling.label == "" {
			return
		}
		if value := recover(); value != nil {
			v, err = nil, x.panicked(value)
		}
	}()
	x.run(ctx)
	x.verdict.States = x.store.n
	x.verdict.Depth = max(0, len(x.store.path(uint32(x.store.n-1)))-1)
	return x.verdict, nil
}

func newSearch(sys *System, config *Config) *search {
	t := newTables(sys)
	s := &search{
		t: t, config: *cmp.Or(config, &Config{}), verdict: &Verdict{System: sys.name, Outcome: Inconclusive},
		store: &store{states: slab{each: t.lay.size}, parents: slab{each: 1}},
		edges: slab{each: 1}, firsts: slab{each: 1}, view: View{t: t},
	}
	s.firsts.push() // the first edge of state 0
	if s.config.MaxBytes <= 0 {
		s.config.MaxBytes = defaultMaxBytes
	}
	if s.config.Workers <= 0 {
		s.config.Workers = runtime.GOMAXPROCS(0)
	}
	if !s.config.SkipLeadsTo && len(sys.leads) > 0 {
		s.edges.each = 2
		for _, p := range sys.leads {
			s.leads = append(s.leads, &lead{property: p})
		}
	}
	for range batchChunks {
		c := &chunk{}
		c.expander = newExpander(t, func(next []uint32, m move) {
			c.states = append(c.states, next...)
			c.marks = append(c.marks, m.mark)
		})
		c.waits = len(s.leads) > 0
		s.chunks = append(s.chunks, c)
	}
	return s
}

// run explores everything and completes the verdict.
func (s *search) run(ctx context.Context) {
	starts := s.t.starts(s.config.MaxBytes)
	if starts == nil {
		s.outgrown()
	}
	for _, state := range starts {
		s.reach(state, noState)
	}
	for from := 0; from < s.store.n; {
		if s.limits(ctx); s.ended() {
			return
		}
		to := min(s.store.n, from+batchChunks*chunkStates)
		s.expand(from, to)
		for _, c := range s.chunks {
			s.merge(c)
		}
		from = to
		s.progress("explore", from, s.store.n)
	}
	if s.limits(ctx); !s.ended() {
		s.finish(ctx)
	}
}

// ended reports whether the verdict is found.
func (s *search) ended() bool { return s.verdict.Trace != nil || s.verdict.Reason != nil }

// expand lists the successors of a range of states in the chunks.
func (s *search) expand(from, to int) {
	var group errgroup.Group
	group.SetLimit(s.config.Workers)
	for i, c := range s.chunks {
		c.from, c.to = uint32(min(to, from+i*chunkStates)), uint32(min(to, from+(i+1)*chunkStates))
		group.Go(func() error {
			c.states, c.marks, c.ends = c.states[:0], c.marks[:0], c.ends[:0]
			for id := c.from; id < c.to; id++ {
				c.expand(s.store.state(id))
				c.ends = append(c.ends, len(c.marks))
			}
			return nil
		})
	}
	_ = group.Wait() // no worker returns an error
}

// merge adds the successors of a chunk to the store, and the edges, until the verdict is
// found.
func (s *search) merge(c *chunk) {
	size, i, keep := s.t.lay.size, 0, s.t.sys.rests != nil || len(s.leads) > 0
	for n, end := range c.ends {
		id := c.from + uint32(n)
		if !s.ended() && !s.rests[id] && !slices.ContainsFunc(c.marks[i:end], isStep) {
			s.found(Stuck, s.store.path(id), nil)
		}
		for ; i < end && !s.ended(); i++ {
			next := id
			if c.marks[i]&waits == 0 {
				s.verdict.Steps++
				next = s.reach(c.states[i*size:(i+1)*size], id)
			}
			switch {
			case len(s.leads) > 0:
				e := s.edges.push()
				e[0], e[1] = next, c.marks[i]
			case keep && isStep(c.marks[i]):
				s.edges.push()[0] = next
			}
		}
		if keep {
			s.firsts.push()[0] = uint32(s.edges.n)
		}
	}
}

// reach adds a state to the store, and returns its number. It checks a new state, and calls
// the functions of the steps that are possible in it.
func (s *search) reach(state []uint32, parent uint32) uint32 {
	id, added := s.store.add(state, parent)
	if !added || s.ended() {
		return id
	}
	s.view.state = s.store.state(id)
	s.check(id)
	s.calling = calling{}
	for _, r := range s.t.sys.functions {
		if r.kind != StepDeliver {
			s.call(argument{r, state[r.actor], 0})
			continue
		}
		for _, m := range s.t.deliverable(state, r.channel) {
			s.call(argument{r, state[r.actor], m})
		}
	}
	return id
}

// call calls the function of an actor, unless the tables have its results.
func (s *search) call(a argument) {
	if !s.t.known(a) {
		s.calling = calling{a.rule.label, a}
		s.t.call(a)
		s.calling = calling{}
	}
}

// check calls the checks for a new state.
func (s *search) check(id uint32) {
	sys := s.t.sys
	for _, p := range sys.always {
		s.calling = calling{label: p.label}
		if err := p.holds(&s.view); err != nil && !s.ended() {
			s.verdict.Property, s.verdict.Problem = p.name, err
			s.found(Violated, s.store.path(id), nil)
		}
	}
	s.calling = calling{label: restingStates}
	s.rests = append(s.rests, sys.rests != nil && sys.rests(&s.view))
	for _, l := range s.leads {
		s.calling = calling{label: l.label}
		fulfilled := l.to(&s.view)
		l.fulfilled = append(l.fulfilled, fulfilled)
		l.begun = append(l.begun, !fulfilled && (l.from == nil || l.from(&s.view)))
	}
}

// panicked returns the error about a function that panicked.
func (s *search) panicked(value any) error {
	err, ok := value.(error)
	if !ok {
		err = fmt.Errorf("%v", value)
	}
	state := ""
	if c := s.calling; c.rule == nil {
		state = s.view.String()
	} else {
		state = s.t.locals[c.rule.actor].text(c.local)
		if c.message != 0 {
			state += ", message " + s.t.messages[c.rule.channel].text(c.message)
		}
	}
	return fmt.Errorf("%w: system %q: %s in %s: panic: %w\n%s", ErrModel, s.t.sys.name, s.calling.label, state, err, debug.Stack())
}

// limits ends the search if the context has ended or the memory is used up.
func (s *search) limits(ctx context.Context) {
	s.verdict.Bytes = max(s.verdict.Bytes, s.bytes())
	if s.ended() {
		return
	}
	s.verdict.Reason = ctx.Err()
	if !s.ended() && (s.verdict.Bytes > s.config.MaxBytes || s.store.n >= noState/2 || s.edges.n >= noState/2) {
		s.outgrown()
	}
}

func (s *search) outgrown() { s.verdict.Reason = fmt.Errorf("%w: %d", ErrMaxBytes, s.config.MaxBytes) }

// bytes returns the memory that the search has.
func (s *search) bytes() int64 {
	n := s.reserved + s.t.bytes() + s.store.bytes() + s.edges.bytes() + s.firsts.bytes() + int64(cap(s.rests))
	for _, l := range s.leads {
		n += int64(cap(l.begun) + cap(l.fulfilled))
	}
	for _, c := range s.chunks {
		n += 4*int64(cap(c.states)+cap(c.marks)) + 8*int64(cap(c.ends))
	}
	return n
}

// progress reports how many states are done, and of how many.
func (s *search) progress(what string, done, total int) {
	if s.config.Progress != nil {
		s.config.Progress(what+" "+s.t.sys.name, done, total)
	}
}

// found completes the verdict with the trace of a run and of its loop.
func (s *search) found(o Outcome, run []uint32, loop []edge) {
	v := s.verdict
	v.Outcome = o
	v.Trace = s.trace(run, loop)
	v.Trace.Outcome, v.Trace.Property = o, v.Property
	if v.Problem != nil {
		v.Trace.Problem = v.Problem.Error()
	}
}
