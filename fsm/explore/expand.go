package explore

// expander lists the steps that are possible in a state.
type expander struct {
	t     *tables
	state []byte // that is expanded
	next  []byte
	emit  func(next []byte, m move)
	waits bool // emit the sends that wait for room too
	// happened marks the parts that took part in a step: the handlers, then the loss and
	// the duplication of each channel, then the faults.
	happened []bool
}

// move is the step that leads to the next state.
type move struct {
	part    int // as in happened
	message uint32
	label   uint32
	mark    uint32 // of its edge
}

func newExpander(t *tables, emit func(next []byte, m move)) *expander {
	return &expander{
		t: t, next: make([]byte, t.lay.size), emit: emit,
		happened: make([]bool, len(t.sys.handlers)+2*len(t.sys.channels)+len(t.sys.faults)),
	}
}

// expand calls emit for every step that is possible in a state: handlers in order
// of declaration, then losses and duplications, then other faults.
func (x *expander) expand(state []byte) {
	x.state = state
	for i, h := range x.t.sys.handlers {
		switch h.kind {
		case StepAct:
			for _, r := range x.results(i, 0) {
				x.begin(h, r)
				x.step(move{part: i, label: r.label, mark: r.mark})
			}
		case StepSend:
			x.send(i, h)
		case StepDeliver:
			x.deliver(i, h)
		}
	}
	for i, c := range x.t.sys.channels {
		n := x.t.lay.queue(x.state, i).len()
		x.disturb(i, 0, c.is.Lose, true, queue.remove)
		x.disturb(i, 1, c.is.Duplicate, n < c.is.Capacity, func(q queue, at int) { q.insert(at, q.at(at)) })
	}
	for i, f := range x.t.sys.faults {
		x.fault(i, f)
	}
}

// deliverable returns the number of messages that a channel may deliver next.
func (t *tables) deliverable(q queue, channel int) int {
	if t.sys.channels[channel].is.Ordered {
		return min(q.len(), 1)
	}
	return q.len()
}

// results returns what a handler allows.
func (x *expander) results(handler int, message uint32) []allowed {
	local := x.t.lay.local(x.state, x.t.sys.handlers[handler].actor)
	return x.t.results[handler][local][message]
}

// begin starts the next state as a copy of the present one, with a local state.
func (x *expander) begin(h *handler, r allowed) {
	copy(x.next, x.state)
	x.t.lay.setLocal(x.next, h.actor, r.next)
}

// spend starts the next state as a copy of the present one, without one of a budget.
func (x *expander) spend(b Budget) {
	copy(x.next, x.state)
	x.t.lay.setBudget(x.next, b.at, x.t.lay.left(x.state, b)-1)
}

func (x *expander) step(m move) {
	x.happened[m.part] = true
	x.emit(x.next, m)
}

func (x *expander) send(at int, h *handler) {
	is := x.t.sys.channels[h.channel].is
	n := x.t.lay.queue(x.state, h.channel).len()
	full := n == is.Capacity
	if full && !x.waits {
		return
	}
	for _, r := range x.results(at, 0) {
		if full {
			x.emit(x.state, move{mark: r.mark | waits})
			continue
		}
		x.begin(h, r)
		q := x.t.lay.queue(x.next, h.channel)
		q.insert(q.place(n, r.message, is.Ordered), r.message)
		x.step(move{part: at, message: r.message, label: r.label, mark: r.mark})
	}
}

func (x *expander) deliver(at int, h *handler) {
	q := x.t.lay.queue(x.state, h.channel)
	for i := range x.t.deliverable(q, h.channel) {
		if q.repeats(i) {
			continue
		}
		for _, r := range x.results(at, q.at(i)) {
			x.begin(h, r)
			x.t.lay.queue(x.next, h.channel).remove(i)
			x.step(move{part: at, message: q.at(i), label: r.label, mark: r.mark})
		}
	}
}

// disturb emits the losses (kind 0) or the duplications (kind 1) in a channel.
func (x *expander) disturb(channel, kind int, b Budget, possible bool, change func(q queue, at int)) {
	if !possible || x.t.lay.left(x.state, b) == 0 {
		return
	}
	q := x.t.lay.queue(x.state, channel)
	for i := range q.len() {
		if !q.repeats(i) {
			x.spend(b)
			change(x.t.lay.queue(x.next, channel), i)
			x.step(move{part: len(x.t.sys.handlers) + 2*channel + kind, message: q.at(i), mark: isFault})
		}
	}
}

func (x *expander) fault(at int, f *Fault) {
	if x.t.lay.left(x.state, f.budget) == 0 {
		return
	}
	x.spend(f.budget)
	for _, c := range f.empties {
		clear(x.t.lay.queue(x.next, c))
	}
	for _, i := range f.strikes {
		results := x.results(i, 0)
		if len(results) == 0 {
			return
		}
		x.t.lay.setLocal(x.next, x.t.sys.handlers[i].actor, results[0].next)
	}
	x.step(move{part: len(x.t.sys.handlers) + 2*len(x.t.sys.channels) + at, mark: isFault})
}

// unused names the parts of a system that took part in no step.
func (t *tables) unused(happened []bool) (list []string) {
	at := 0
	name := func(label string, possible bool) {
		if possible && !happened[at] {
			list = append(list, label)
		}
		at++
	}
	for _, h := range t.sys.handlers {
		name(h.label, h.kind != StepFault)
	}
	for _, c := range t.sys.channels {
		name("loss in "+c.label, c.is.Lose.possible())
		name("duplication in "+c.label, c.is.Duplicate.possible())
	}
	for _, f := range t.sys.faults {
		name(f.label, f.budget.possible())
	}
	return list
}
