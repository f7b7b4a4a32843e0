package explore

// expander enumerates the steps of states. Each worker has one.
type expander[K packed] struct {
	t      *tables
	ids    []uint32 // of the state, by field
	out    []successor[K]
	misses []miss
	record bool
	moves  []move // beside out, if record is set
	struck []bool // by fault: whether it has happened
}

type successor[K packed] struct {
	k     K
	fault bool
}

// move says which step it was that led to a successor.
type move struct {
	kind    StepKind
	at      int // handler, channel of a loss or duplication, fault
	message uint32
	label   uint32
}

func newExpander[K packed](t *tables) *expander[K] {
	return &expander[K]{t: t, ids: make([]uint32, len(t.lay.fields)), struck: make([]bool, len(t.sys.faults))}
}

func (x *expander[K]) emit(k K, fault bool, m move) {
	x.out = append(x.out, successor[K]{k, fault})
	if x.record {
		x.moves = append(x.moves, m)
	}
}

func (x *expander[K]) miss(what missKind, at int, of, message uint32) {
	x.misses = append(x.misses, miss{what, at, of, message})
}

// expand leaves all successors of k in out: handlers in order of declaration,
// then faults of channels, then other faults. If the tables do not know enough,
// it leaves in misses what they lack.
func (x *expander[K]) expand(k K) {
	x.out, x.moves, x.misses = x.out[:0], x.moves[:0], x.misses[:0]
	for i, f := range x.t.lay.fields {
		x.ids[i] = f.of(k[f.word])
	}
	for i, h := range x.t.sys.handlers {
		switch h.kind {
		case StepAct:
			x.act(k, i, h)
		case StepSend:
			x.send(k, i, h)
		case StepDeliver:
			x.deliver(k, i, h)
		}
	}
	for i := range x.t.channels {
		x.disturb(k, i)
	}
	for i, f := range x.t.sys.faults {
		x.strike(k, i, f)
	}
}

func (x *expander[K]) act(k K, at int, h *handler) {
	local := x.ids[h.actor]
	outs := x.t.memo[at].of(local)
	if outs == nil {
		x.miss(missHandler, at, local, 0)
	}
	for _, o := range outs {
		k = put(k, x.t.lay.fields[h.actor], o.next)
		kind := StepAct
		if o.fault {
			kind = StepFault
		}
		x.emit(k, o.fault, move{kind: kind, at: at, label: o.label})
	}
}

func (x *expander[K]) send(k K, at int, h *handler) {
	local, place := x.ids[h.actor], x.t.lay.channel(h.channel)
	c, content := x.t.channels[h.channel], x.ids[place]
	if c.full(content) {
		return
	}
	outs := x.t.memo[at].of(local)
	if outs == nil {
		x.miss(missHandler, at, local, 0)
	}
	for _, o := range outs {
		next, known := c.after(content, o.message)
		if !known {
			x.miss(missPush, h.channel, content, o.message)
			continue
		}
		k = put(k, x.t.lay.fields[h.actor], o.next)
		k = put(k, x.t.lay.fields[place], next)
		x.emit(k, false, move{kind: StepSend, at: at, message: o.message, label: o.label})
	}
}

func (x *expander[K]) deliver(k K, at int, h *handler) {
	local, place := x.ids[h.actor], x.t.lay.channel(h.channel)
	content := x.ids[place]
	if content == 0 {
		return
	}
	takes := x.t.channels[h.channel].takes[content]
	if takes == nil {
		x.miss(missTake, h.channel, content, 0)
	}
	for _, m := range takes {
		outs := x.t.memo[at].ofMessage(local, m.message)
		if outs == nil {
			x.miss(missHandler, at, local, m.message)
		}
		k = put(k, x.t.lay.fields[place], m.rest)
		for _, o := range outs {
			k = put(k, x.t.lay.fields[h.actor], o.next)
			x.emit(k, false, move{kind: StepDeliver, at: at, message: m.message, label: o.label})
		}
	}
}

// disturb is loss and duplication.
func (x *expander[K]) disturb(k K, at int) {
	c, place := x.t.channels[at], x.t.lay.channel(at)
	content := x.ids[place]
	if content == 0 {
		return
	}
	if left, can := x.spend(c.part.is.Lose); can {
		x.each(left, place, missDrop, at, c.drops[content], k, StepLose)
	}
	if left, can := x.spend(c.part.is.Duplicate); can {
		x.each(left, place, missCopy, at, c.copies[content], k, StepDuplicate)
	}
}

func (x *expander[K]) each(budget int, place int, what missKind, at int, list []taken, k K, kind StepKind) {
	if list == nil {
		x.miss(what, at, x.ids[place], 0)
		return
	}
	k = put(k, x.t.lay.fields[budget], x.ids[budget]-1)
	for _, m := range list {
		k = put(k, x.t.lay.fields[place], m.rest)
		x.emit(k, true, move{kind: kind, at: at, message: m.message})
	}
}

// spend returns the field of a budget, and whether something is left in it.
func (x *expander[K]) spend(b Budget) (place int, left bool) {
	if b.sys == nil {
		return 0, false
	}
	place = x.t.lay.budget(b.at)
	return place, x.ids[place] > 0
}

func (x *expander[K]) strike(k K, at int, f *Fault) {
	place := x.t.lay.budget(f.budget)
	if x.ids[place] == 0 {
		return
	}
	k = put(k, x.t.lay.fields[place], x.ids[place]-1)
	for _, c := range f.empties {
		k = put(k, x.t.lay.fields[x.t.lay.channel(c)], 0)
	}
	can := true
	for _, i := range f.strikes {
		h := x.t.sys.handlers[i]
		local := x.ids[h.actor]
		switch outs := x.t.memo[i].of(local); {
		case outs == nil:
			x.miss(missHandler, i, local, 0)
			can = false
		case len(outs) == 0:
			can = false
		default:
			k = put(k, x.t.lay.fields[h.actor], outs[0].next)
		}
	}
	if can {
		x.struck[at] = true
		x.emit(k, true, move{kind: StepFault, at: at})
	}
}
