package explore

// expander lists the steps that are possible in a state.
type expander struct {
	t      *tables
	state  []byte // that is expanded
	next   []byte
	emit   func(next []byte, m move)
	misses []miss
	waits  bool // emit the sends that wait for room too
	// happened marks the losses by channel, then the duplications by channel, then
	// the faults, that were possible in some state.
	happened []bool
}

// move is the step that leads to the next state.
type move struct {
	kind    StepKind
	at      int // handler; channel of a loss or duplication; fault
	message uint32
	label   uint32
	mark    uint32 // of its edge
}

func newExpander(t *tables) *expander {
	return &expander{
		t: t, next: make([]byte, t.lay.size), happened: make([]bool, 2*len(t.sys.channels)+len(t.sys.faults)),
	}
}

// expand calls emit for every step that is possible in a state: handlers in order
// of declaration, then losses and duplications, then other faults. It notes in
// misses the results that the tables lack.
func (x *expander) expand(state []byte) {
	x.state = state
	for i, h := range x.t.sys.handlers {
		switch h.kind {
		case StepAct:
			x.act(i, h)
		case StepSend:
			x.send(i, h)
		case StepDeliver:
			x.deliver(i, h)
		}
	}
	for i, c := range x.t.sys.channels {
		x.disturb(i, c)
	}
	for i, f := range x.t.sys.faults {
		x.fault(i, f)
	}
}

// results returns what a handler allows, nothing if the tables do not have it.
func (x *expander) results(handler int, h *handler, message uint32) []allowed {
	local := x.t.lay.local(x.state, h.actor)
	list := x.t.results[handler].of(local, message)
	if list == nil {
		x.misses = append(x.misses, miss{handler, local, message})
	}
	return list
}

// begin starts the next state as a copy of the present one.
func (x *expander) begin() { copy(x.next, x.state) }

func (x *expander) act(at int, h *handler) {
	for _, r := range x.results(at, h, 0) {
		x.begin()
		x.t.lay.setLocal(x.next, h.actor, r.next)
		kind := StepAct
		if r.mark == isFault {
			kind = StepFault
		}
		x.emit(x.next, move{kind: kind, at: at, label: r.label, mark: r.mark})
	}
}

func (x *expander) send(at int, h *handler) {
	is := x.t.sys.channels[h.channel].is
	n := x.t.lay.queue(x.state, h.channel).len()
	full := n == is.Capacity
	if full && !x.waits {
		return
	}
	for _, r := range x.results(at, h, 0) {
		if full {
			x.emit(x.state, move{kind: StepSend, mark: r.mark | waits})
			continue
		}
		x.begin()
		x.t.lay.setLocal(x.next, h.actor, r.next)
		q := x.t.lay.queue(x.next, h.channel)
		q.insert(q.place(n, r.message, is.Ordered), r.message)
		x.emit(x.next, move{kind: StepSend, at: at, message: r.message, label: r.label, mark: r.mark})
	}
}

func (x *expander) deliver(at int, h *handler) {
	q := x.t.lay.queue(x.state, h.channel)
	n := q.len()
	if x.t.sys.channels[h.channel].is.Ordered {
		n = min(n, 1)
	}
	for i := range n {
		if q.repeats(i) {
			continue
		}
		for _, r := range x.results(at, h, q.at(i)) {
			x.begin()
			x.t.lay.setLocal(x.next, h.actor, r.next)
			x.t.lay.queue(x.next, h.channel).remove(i)
			x.emit(x.next, move{kind: StepDeliver, at: at, message: q.at(i), label: r.label, mark: r.mark})
		}
	}
}

// disturb emits losses and duplications.
func (x *expander) disturb(at int, c *channelPart) {
	q := x.t.lay.queue(x.state, at)
	n := q.len()
	lose := x.left(c.is.Lose) > 0
	duplicate := n < c.is.Capacity && x.left(c.is.Duplicate) > 0
	for i := range n {
		if lose && !q.repeats(i) {
			x.begin()
			x.spend(c.is.Lose.at)
			x.t.lay.queue(x.next, at).remove(i)
			x.happened[at] = true
			x.emit(x.next, move{kind: StepLose, at: at, message: q.at(i), mark: isFault})
		}
	}
	for i := range n {
		if duplicate && !q.repeats(i) {
			x.begin()
			x.spend(c.is.Duplicate.at)
			x.t.lay.queue(x.next, at).insert(i, q.at(i))
			x.happened[len(x.t.sys.channels)+at] = true
			x.emit(x.next, move{kind: StepDuplicate, at: at, message: q.at(i), mark: isFault})
		}
	}
}

func (x *expander) left(b Budget) int {
	if b.sys == nil {
		return 0
	}
	return x.t.lay.budget(x.state, b.at)
}

func (x *expander) spend(budget int) {
	x.t.lay.setBudget(x.next, budget, x.t.lay.budget(x.state, budget)-1)
}

func (x *expander) fault(at int, f *Fault) {
	if x.t.lay.budget(x.state, f.budget) == 0 {
		return
	}
	x.begin()
	x.spend(f.budget)
	for _, c := range f.empties {
		clear(x.t.lay.queue(x.next, c))
	}
	possible := true
	for _, i := range f.strikes {
		h := x.t.sys.handlers[i]
		results := x.results(i, h, 0)
		if len(results) == 0 {
			possible = false
			continue
		}
		x.t.lay.setLocal(x.next, h.actor, results[0].next)
	}
	if possible {
		x.happened[2*len(x.t.sys.channels)+at] = true
		x.emit(x.next, move{kind: StepFault, at: at, mark: isFault})
	}
}
