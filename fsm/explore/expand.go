package explore

// expander lists the steps that are possible in a state.
type expander struct {
	t     *tables
	state []uint32 // that is expanded
	next  []uint32
	emit  func(next []uint32, m move)
	waits bool   // emit the sends that wait for room too
	used  []bool // by rule: it made a step
}

// move is the step that leads to the next state.
type move struct {
	rule    int // in tables.rules
	message uint32
	label   uint32
	mark    uint32 // of its edge
}

func newExpander(t *tables, emit func(next []uint32, m move)) *expander {
	return &expander{t: t, next: make([]uint32, t.lay.size), emit: emit, used: make([]bool, len(t.rules))}
}

// expand calls emit for every step that is possible in a state: those of actors in order
// of declaration, then losses and duplications, then other faults.
func (x *expander) expand(state []uint32) {
	x.state = state
	for i, r := range x.t.rules {
		if r.call == nil && x.t.lay.left(state, r.budget) == 0 {
			continue
		}
		switch r.kind {
		case StepAct:
			for _, a := range x.results(r, 0) {
				x.begin(r, a)
				x.step(move{i, 0, a.label, a.mark})
			}
		case StepSend:
			x.send(i, r)
		case StepDeliver:
			x.deliver(i, r)
		case StepLose:
			x.disturb(i, r, queue.remove)
		case StepDuplicate:
			if !x.t.lay.queue(state, r.channel).full() {
				x.disturb(i, r, func(q queue, at int) { q.insert(at, q[at]) })
			}
		case StepFault:
			x.fault(i, r)
		}
	}
}

// deliverable returns the messages that a channel may deliver next.
func (t *tables) deliverable(state []uint32, channel int) []uint32 {
	messages := t.lay.queue(state, channel).messages()
	if t.sys.channels[channel].spec.Ordered {
		return messages[:min(len(messages), 1)]
	}
	return messages
}

// results returns what a function of an actor allows.
func (x *expander) results(r *rule, message uint32) []allowed {
	return x.t.results[r.at][x.state[r.actor]][message]
}

// begin starts the next state as a copy of the present one, with a local state.
func (x *expander) begin(r *rule, a allowed) {
	copy(x.next, x.state)
	x.next[r.actor] = a.next
}

// spend starts the next state as a copy of the present one, without one of a budget that is
// not empty.
func (x *expander) spend(b Budget) {
	copy(x.next, x.state)
	x.next[x.t.lay.budgets+b.at]--
}

func (x *expander) step(m move) {
	x.used[m.rule] = true
	x.emit(x.next, m)
}

func (x *expander) send(i int, r *rule) {
	full := x.t.lay.queue(x.state, r.channel).full()
	if full && !x.waits {
		return
	}
	for _, a := range x.results(r, 0) {
		if full {
			x.emit(x.state, move{mark: a.mark | waits})
			continue
		}
		x.begin(r, a)
		x.t.lay.queue(x.next, r.channel).add(a.message, x.t.sys.channels[r.channel].spec.Ordered)
		x.step(move{i, a.message, a.label, a.mark})
	}
}

func (x *expander) deliver(i int, r *rule) {
	q := x.t.lay.queue(x.state, r.channel)
	for at, m := range x.t.deliverable(x.state, r.channel) {
		if q.repeats(at) {
			continue
		}
		for _, a := range x.results(r, m) {
			x.begin(r, a)
			x.t.lay.queue(x.next, r.channel).remove(at)
			x.step(move{i, m, a.label, a.mark})
		}
	}
}

// disturb emits the losses or the duplications in a channel.
func (x *expander) disturb(i int, r *rule, change func(q queue, at int)) {
	q := x.t.lay.queue(x.state, r.channel)
	for at, m := range q.messages() {
		if !q.repeats(at) {
			x.spend(r.budget)
			change(x.t.lay.queue(x.next, r.channel), at)
			x.step(move{i, m, 0, isFault})
		}
	}
}

func (x *expander) fault(i int, r *rule) {
	x.spend(r.budget)
	for _, c := range r.empties {
		clear(x.t.lay.queue(x.next, c))
	}
	for _, s := range r.strikes {
		results := x.results(s, 0)
		if len(results) == 0 {
			return
		}
		x.next[s.actor] = results[0].next
	}
	x.step(move{i, 0, 0, isFault})
}
