package explore

import (
	"bytes"
	"slices"
)

// trace names the steps of a run and of the loop at its end. Both stand in reverse
// order.
func (s *search) trace(reversed [][]byte, loop []edge) *Trace {
	t := s.t
	tr := &Trace{
		System: t.sys.name, Actors: []TraceActor{}, Channels: []TraceChannel{}, Steps: []TraceStep{},
		Loop: len(loop),
	}
	add := func(from, to []byte, fits func(mark uint32) bool) {
		tr.Steps = append(tr.Steps, t.stepOf(t.moveTo(from, to, fits), from, to))
	}
	at := reversed[len(reversed)-1]
	t.begin(tr, at)
	for _, next := range slices.Backward(reversed[:len(reversed)-1]) {
		add(at, next, func(uint32) bool { return true })
		at = next
	}
	for _, e := range slices.Backward(loop) {
		add(s.store.state(e.from), s.store.state(e.to), func(mark uint32) bool { return isStep(mark) && (e.mark == 0 || e.mark == mark) })
	}
	return tr
}

// moveTo returns the first move with a mark that fits from one state to another. The tables
// have the results of all handlers in a state that the search expanded.
func (t *tables) moveTo(from, to []byte, fits func(mark uint32) bool) (m move) {
	found := false
	x := newExpander(t)
	x.emit = func(next []byte, by move) {
		if !found && bytes.Equal(next, to) && fits(by.mark) {
			m, found = by, true
		}
	}
	x.expand(from)
	return m
}

// begin writes actors and channels with the initial state into a trace.
func (t *tables) begin(tr *Trace, state []byte) {
	for i, a := range t.sys.actors {
		tr.Actors = append(tr.Actors, TraceActor{Name: a.name, Start: t.locals[i].text(t.lay.local(state, i))})
	}
	for i, c := range t.sys.channels {
		ch := TraceChannel{
			Name: c.name, Ordered: c.is.Ordered, Senders: []string{}, Receivers: []string{}, Start: t.texts(state, i),
		}
		for _, h := range t.sys.handlers {
			name := t.sys.actors[h.actor].name
			switch {
			case h.kind == StepSend && h.channel == i && !slices.Contains(ch.Senders, name):
				ch.Senders = append(ch.Senders, name)
			case h.kind == StepDeliver && h.channel == i:
				ch.Receivers = append(ch.Receivers, name)
			}
		}
		tr.Channels = append(tr.Channels, ch)
	}
}

func (t *tables) stepOf(m move, before, after []byte) TraceStep {
	s := TraceStep{Kind: m.kind}
	local := func(actor int) {
		s.Locals = append(s.Locals, TraceLocal{
			Actor:  t.sys.actors[actor].name,
			Before: t.locals[actor].text(t.lay.local(before, actor)),
			After:  t.locals[actor].text(t.lay.local(after, actor)),
		})
	}
	message := func(channel int) {
		s.Channel = t.sys.channels[channel].name
		s.Message = t.messages[channel].text(m.message)
	}
	switch {
	case m.kind == StepLose || m.kind == StepDuplicate:
		message(m.at)
		return s
	case m.kind == StepFault && t.sys.model: // an action that counts as a fault
		s.Label = t.labels.values[m.label]
		local(0)
		return s
	case m.kind == StepFault:
		f := t.sys.faults[m.at]
		s.Label = f.name
		for _, i := range f.strikes {
			local(t.sys.handlers[i].actor)
		}
		for _, c := range f.empties {
			if lost := t.texts(before, c); len(lost) > 0 {
				s.Emptied = append(s.Emptied, TraceQueue{Channel: t.sys.channels[c].name, Messages: lost})
			}
		}
		return s
	}
	h := t.sys.handlers[m.at]
	s.Actor, s.Label = t.sys.actors[h.actor].name, t.labels.values[m.label]
	if h.kind != StepAct {
		message(h.channel)
	}
	local(h.actor)
	return s
}
