package explore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm/explore"
	"github.com/interlock-go/interlock/fsm/internal/tabletest"
)

// sketch is a random system as data. The test builds the system from it, and the
// reference walks through it. Local states and messages are small numbers.
type sketch struct {
	locals   int // local states of an actor
	starts   [][]int
	acts     [][][]int // by actor and local state: what it may become
	fair     []bool    // by actor: its acts are
	channels []sketchChannel
	sends    []sketchSend
	receives []sketchReceive
	faults   []sketchFault
	budgets  []int
	bad      [][]int // a local state of each actor
	rests    []bool  // by local state of the first actor
	quiet    bool    // resting needs empty channels
	idle     int     // actors without a part
	live     bool
	from, to []bool // by local state of the first actor: the property
}

type sketchChannel struct {
	capacity   int
	ordered    bool
	lose, copy int // budgets, -1: none
	start      []int
}

type sketchSend struct {
	actor, channel int
	fair           bool
	by             [][][2]int // by local state: messages, and what the actor becomes
}

type sketchReceive struct {
	actor, channel int
	fair           bool
	by             [][][]int // by local state and message: what the actor may become
}

type sketchFault struct {
	budget  int
	empties []int
	strikes map[int][]int // by actor and local state: what it becomes, -1: cannot happen
}

const sketchMessages = 3

func drawSketch(t *rapid.T) *sketch {
	draw := func(from, to int, what string) int { return rapid.IntRange(from, to).Draw(t, what) }
	s := &sketch{locals: draw(1, 3, "locals"), quiet: rapid.Bool().Draw(t, "quiet"), live: draw(0, 3, "live") > 0}
	local := func() int { return draw(0, s.locals-1, "local") }
	fair := func() bool { return draw(0, 3, "fair") > 0 }
	actors := draw(1, 3, "actors")
	for range actors {
		starts := []int{local()}
		if draw(0, 3, "two starts") == 0 {
			starts = append(starts, local())
		}
		s.starts = append(s.starts, starts)
		acts := make([][]int, s.locals)
		for l := range acts {
			if draw(0, 3, "acts") == 0 {
				acts[l] = append(acts[l], local())
			}
		}
		s.acts = append(s.acts, acts)
		s.fair = append(s.fair, fair())
	}
	for range draw(0, 3, "budgets") {
		s.budgets = append(s.budgets, draw(0, 2, "budget"))
	}
	budget := func() int { return draw(-1, len(s.budgets)-1, "of budget") }
	for i := range draw(0, 2, "channels") {
		c := sketchChannel{capacity: draw(1, 3, "capacity"), ordered: rapid.Bool().Draw(t, "ordered"), lose: budget(), copy: budget()}
		for range max(0, draw(-2, c.capacity, "filled")) {
			c.start = append(c.start, draw(0, sketchMessages-1, "message"))
		}
		s.channels = append(s.channels, c)
		for range draw(1, 2, "senders") {
			send := sketchSend{actor: draw(0, actors-1, "sender"), channel: i, fair: fair(), by: make([][][2]int, s.locals)}
			for l := range send.by {
				for range max(0, draw(-1, 2, "sends")) {
					send.by[l] = append(send.by[l], [2]int{draw(0, sketchMessages-1, "message"), local()})
				}
			}
			s.sends = append(s.sends, send)
		}
		first := draw(0, actors-1, "receiver")
		for a := first; a <= min(first+draw(0, 1, "receivers"), actors-1); a++ {
			r := sketchReceive{actor: a, channel: i, fair: fair(), by: make([][][]int, s.locals)}
			for l := range r.by {
				r.by[l] = make([][]int, sketchMessages)
				for m := range r.by[l] {
					for range draw(0, 2, "results") {
						r.by[l][m] = append(r.by[l][m], local())
					}
				}
			}
			s.receives = append(s.receives, r)
		}
	}
	if len(s.budgets) > 0 {
		for range draw(0, 2, "faults") {
			f := sketchFault{budget: draw(0, len(s.budgets)-1, "of fault"), strikes: map[int][]int{}}
			for i := range s.channels {
				if rapid.Bool().Draw(t, "empties") {
					f.empties = append(f.empties, i)
				}
			}
			for range draw(1, 2, "strikes") {
				struck := draw(0, actors-1, "struck")
				f.strikes[struck] = make([]int, s.locals)
				for l := range f.strikes[struck] {
					f.strikes[struck][l] = draw(-1, s.locals-1, "strike")
				}
			}
			s.faults = append(s.faults, f)
		}
	}
	for range max(0, draw(-2, 2, "bad states")) {
		var bad []int
		for range actors {
			bad = append(bad, local())
		}
		s.bad = append(s.bad, bad)
	}
	for range s.locals {
		s.rests = append(s.rests, rapid.Bool().Draw(t, "rests"))
		s.from = append(s.from, rapid.Bool().Draw(t, "from"))
		s.to = append(s.to, rapid.Bool().Draw(t, "to"))
	}
	s.idle = rapid.SampledFrom([]int{0, 0, 9, 20, 30, 40, 60, 90, 150}).Draw(t, "idle")
	return s
}

func (s *sketch) system() *explore.System {
	sys := explore.New("sketch")
	var budgets []explore.Budget
	for i, n := range s.budgets {
		budgets = append(budgets, sys.Budget(fmt.Sprint(i), n))
	}
	budget := func(i int) (b explore.Budget) {
		if i >= 0 {
			b = budgets[i]
		}
		return b
	}
	var actors []*explore.Actor[int]
	for i, starts := range s.starts {
		a := explore.NewActor(sys, fmt.Sprint(i), starts...)
		acts := a.Acts(func(l int, step func(string, int)) {
			for _, next := range s.acts[i][l] {
				step("act", next)
			}
		})
		if s.fair[i] {
			acts.Fair()
		}
		actors = append(actors, a)
	}
	for i := range s.idle {
		explore.NewActor(sys, fmt.Sprint("idle ", i), 0)
	}
	var channels []*explore.Channel[int]
	for i, c := range s.channels {
		channels = append(channels, explore.NewChannel(sys, fmt.Sprint(i), explore.ChannelSpec{
			Capacity: c.capacity, Ordered: c.ordered, Lose: budget(c.lose), Duplicate: budget(c.copy),
		}, c.start...))
	}
	for _, d := range s.sends {
		sends := explore.Sends(actors[d.actor], channels[d.channel], func(l int, send func(string, int, int)) {
			for _, m := range d.by[l] {
				send("send", m[0], m[1])
			}
		})
		if d.fair {
			sends.Fair()
		}
	}
	for _, r := range s.receives {
		receives := explore.Receives(actors[r.actor], channels[r.channel], func(l, m int, next func(string, int)) {
			for _, to := range r.by[l][m] {
				next("take", to)
			}
		})
		if r.fair {
			receives.Fair()
		}
	}
	for i, d := range s.faults {
		var empties []explore.AnyChannel
		for _, c := range d.empties {
			empties = append(empties, channels[c])
		}
		f := sys.Fault(fmt.Sprint(i), budgets[d.budget], empties...)
		for a, by := range d.strikes {
			explore.Strikes(f, actors[a], func(l int) (int, bool) { return by[l], by[l] >= 0 })
		}
	}
	sys.Always("good", func(v *explore.View) error {
		var st sketchState
		for _, a := range actors {
			st.locals = append(st.locals, a.In(v))
		}
		if s.isBad(st) {
			return errors.New("bad")
		}
		return nil
	})
	sys.LeadsTo("arrives",
		func(v *explore.View) bool { return s.from[actors[0].In(v)] },
		func(v *explore.View) bool { return s.to[actors[0].In(v)] })
	if s.live {
		sys.Rests(func(v *explore.View) bool {
			st := sketchState{locals: []int{actors[0].In(v)}}
			for _, c := range channels {
				st.queues = append(st.queues, c.In(v))
			}
			return s.isRest(st)
		})
	}
	return sys
}

// sketchState is a state of the reference.
type sketchState struct {
	locals  []int
	queues  [][]int
	budgets []int
}

func (st sketchState) clone() sketchState {
	c := sketchState{locals: slices.Clone(st.locals), budgets: slices.Clone(st.budgets)}
	for _, q := range st.queues {
		c.queues = append(c.queues, slices.Clone(q))
	}
	return c
}

func (s *sketch) isBad(st sketchState) bool {
	return slices.ContainsFunc(s.bad, func(b []int) bool { return slices.Equal(b, st.locals) })
}

func (s *sketch) isRest(st sketchState) bool {
	busy := slices.ContainsFunc(st.queues, func(q []int) bool { return len(q) > 0 })
	return s.rests[st.locals[0]] && !(s.quiet && busy)
}

// key returns a text that is equal for equal states only.
func (s *sketch) key(st sketchState, states map[string]sketchState) string {
	for i, q := range st.queues {
		if !s.channels[i].ordered {
			slices.Sort(q)
		}
	}
	key := fmt.Sprint(st)
	states[key] = st
	return key
}

// sketchStep is a step to a state, or a send that waits for room.
type sketchStep struct {
	sketchState
	fault, full bool
	action      string // a fair one, or empty
}

// next lists the steps of a state by the rules of the package documentation.
func (s *sketch) next(st sketchState) (list []sketchStep) {
	fault := false
	named := func(fair bool, name ...any) string {
		if !fair {
			return ""
		}
		return fmt.Sprint(name...)
	}
	add := func(action string, change func(*sketchState)) {
		c := st.clone()
		change(&c)
		list = append(list, sketchStep{sketchState: c, fault: fault, action: action})
	}
	insert := func(c *sketchState, channel, m int) { c.queues[channel] = append(c.queues[channel], m) }
	for a, l := range st.locals {
		for _, to := range s.acts[a][l] {
			add(named(s.fair[a], "act", a), func(c *sketchState) { c.locals[a] = to })
		}
	}
	for i, d := range s.sends {
		full := len(st.queues[d.channel]) == s.channels[d.channel].capacity
		for _, m := range d.by[st.locals[d.actor]] {
			action := named(d.fair, "send", i, " ", m[0])
			if full {
				list = append(list, sketchStep{full: true, action: action})
				continue
			}
			add(action, func(c *sketchState) { insert(c, d.channel, m[0]); c.locals[d.actor] = m[1] })
		}
	}
	// which are the places of messages that are not like the one before.
	which := func(q []int) (places []int) {
		for i := range q {
			if i == 0 || q[i] != q[i-1] {
				places = append(places, i)
			}
		}
		return places
	}
	without := func(c *sketchState, channel, at int) { c.queues[channel] = slices.Delete(c.queues[channel], at, at+1) }
	for i, r := range s.receives {
		q := st.queues[r.channel]
		for _, at := range which(q) {
			if s.channels[r.channel].ordered && at > 0 {
				continue
			}
			results, action := r.by[st.locals[r.actor]][q[at]], named(r.fair, "receive", i, " ", q[at])
			for _, to := range results {
				add(action, func(c *sketchState) { without(c, r.channel, at); c.locals[r.actor] = to })
			}
			if len(results) == 0 {
				add(action, func(c *sketchState) { without(c, r.channel, at) })
			}
		}
	}
	fault = true
	for i, d := range s.channels {
		q := st.queues[i]
		for _, at := range which(q) {
			if d.lose >= 0 && st.budgets[d.lose] > 0 {
				add("", func(c *sketchState) { without(c, i, at); c.budgets[d.lose]-- })
			}
			if d.copy >= 0 && st.budgets[d.copy] > 0 && len(q) < d.capacity {
				add("", func(c *sketchState) { c.queues[i] = slices.Insert(c.queues[i], at, q[at]); c.budgets[d.copy]-- })
			}
		}
	}
	for _, f := range s.faults {
		can := st.budgets[f.budget] > 0
		for a, by := range f.strikes {
			can = can && by[st.locals[a]] >= 0
		}
		if can {
			add("", func(c *sketchState) {
				c.budgets[f.budget]--
				for _, i := range f.empties {
					c.queues[i] = nil
				}
				for a, by := range f.strikes {
					c.locals[a] = by[st.locals[a]]
				}
			})
		}
	}
	return list
}

func (s *sketch) refer() (*reference, map[string]sketchState) {
	states := map[string]sketchState{}
	starts := []sketchState{{budgets: s.budgets}}
	for _, c := range s.channels {
		starts[0].queues = append(starts[0].queues, c.start)
	}
	for _, of := range s.starts {
		var longer []sketchState
		for _, st := range starts {
			for _, l := range of {
				c := st.clone()
				c.locals = append(c.locals, l)
				longer = append(longer, c)
			}
		}
		starts = longer
	}
	var keys []string
	for _, st := range starts {
		keys = append(keys, s.key(st, states))
	}
	return refer(keys, func(key string) (edges []refEdge) {
		for _, st := range s.next(states[key]) {
			e := refEdge{fault: st.fault, action: st.action, full: st.full}
			if !st.full {
				e.to = s.key(st.sketchState, states)
			}
			edges = append(edges, e)
		}
		return edges
	}), states
}

// runs fails unless the trace is a run of the reference. A trace lacks the budgets, so
// runs follows every state that fits.
func (s *sketch) runs(t require.TestingT, tr *explore.Trace) {
	at := sketchState{budgets: s.budgets}
	for _, a := range tr.Actors[:len(s.starts)] {
		at.locals = append(at.locals, number(a.Start))
	}
	for i, c := range tr.Channels {
		at.queues = append(at.queues, numbers(c.Start))
		require.ElementsMatch(t, s.channels[i].start, at.queues[i])
	}
	may := map[string]sketchState{}
	s.key(at.clone(), may)
	for i, step := range tr.Steps {
		for _, l := range step.Locals {
			at.locals[number(l.Actor)] = number(l.After)
		}
		after := map[string]sketchState{}
		for _, st := range may {
			for _, next := range s.next(st) {
				if !next.full && next.fault == slices.Contains(faults, step.Kind) && slices.Equal(next.locals, at.locals) && s.inFlight(next.sketchState, &step) {
					s.key(next.sketchState, after)
				}
			}
		}
		require.NotEmpty(t, after, "step %d of %v", i+1, tr)
		may = after
	}
}

var faults = []explore.StepKind{explore.StepLose, explore.StepDuplicate, explore.StepFault}

// inFlight reports whether the message of a step may have led to these queues.
func (s *sketch) inFlight(st sketchState, step *explore.TraceStep) bool {
	switch step.Kind {
	case explore.StepSend, explore.StepDuplicate:
		return slices.Contains(st.queues[number(step.Channel)], number(step.Message))
	case explore.StepFault:
		for _, e := range step.Emptied {
			if len(st.queues[number(e.Channel)]) > 0 {
				return false
			}
		}
	}
	return true
}

func numbers(list []string) []int {
	n := []int{}
	for _, s := range list {
		n = append(n, number(s))
	}
	return n
}

func TestSystemsAgreeWithReference(t *testing.T) {
	seen := map[explore.Outcome]int{}
	largest := 0
	tabletest.CheckUntil(t, every(seen), func(t *rapid.T) {
		s := drawSketch(t)
		o := &explore.Config{Workers: rapid.IntRange(1, 3).Draw(t, "workers")}
		v, err := s.system().Explore(context.Background(), o)
		require.NoError(t, err)
		r, states := s.refer()
		var rests func(string) bool
		if s.live {
			rests = func(key string) bool { return s.isRest(states[key]) }
		}
		if len(r.order) > 300 {
			t.Skip("the reference takes too long")
		}
		r.agrees(t, v, func(key string) bool { return s.isBad(states[key]) }, rests, &refLead{
			from: func(key string) bool { return s.from[states[key].locals[0]] },
			to:   func(key string) bool { return s.to[states[key].locals[0]] },
		})
		if v.Trace != nil {
			s.runs(t, v.Trace)
			roundTrip(t, v.Trace)
		}
		seen[v.Outcome]++
		largest = max(largest, v.States)

		// With less memory the verdict is the same or inconclusive.
		o.MaxBytes = int64(rapid.IntRange(1, 1<<20).Draw(t, "bytes"))
		less, err := s.system().Explore(context.Background(), o)
		require.NoError(t, err)
		if less.Outcome == explore.Inconclusive {
			require.ErrorIs(t, less.Reason, explore.ErrMaxBytes)
			require.Nil(t, less.Trace)
		} else {
			require.NoError(t, less.Reason)
			require.Equal(t, v.Outcome, less.Outcome)
			require.Equal(t, v.Property, less.Property)
		}
	})
	t.Log(seen, largest)
}
