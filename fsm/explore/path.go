package explore

import (
	"context"
	"slices"
)

// trace names the steps of a run, given the states that it goes through.
func (x *expander[K]) trace(run []K, loop int) (*Trace, error) {
	t := x.t
	tr := &Trace{System: t.sys.name, Actors: []TraceActor{}, Channels: []TraceChannel{}, Steps: []TraceStep{}, Loop: loop}
	ids := func(k K) []uint32 {
		list := make([]uint32, len(t.lay.fields))
		for i, f := range t.lay.fields {
			list[i] = f.of(k[f.word])
		}
		return list
	}
	t.begin(tr, ids(run[0]))
	x.record = true
	for i, k := range run[1:] {
		if err := x.fully(run[i]); err != nil {
			return nil, err
		}
		forever := i >= len(run)-1-loop
		at := slices.IndexFunc(x.out, func(s successor[K]) bool { return s.k == k && !(forever && s.fault) })
		if at < 0 {
			return nil, &ModelError{System: t.sys.name, Problem: "a function is not pure: asked again, it said something else"}
		}
		tr.Steps = append(tr.Steps, t.stepOf(x.moves[at], ids(run[i]), ids(k)))
	}
	return tr, nil
}

// fully expands a state whatever the tables lack, which are answers of handlers
// that were asked before.
func (x *expander[K]) fully(k K) error {
	for x.expand(k); len(x.misses) > 0; x.expand(k) {
		if _, err := x.t.fill(context.Background(), 1, x.misses); err != nil {
			return err
		}
	}
	return nil
}

// loopFrom returns the states of a shortest way without faults from k back to k,
// k at its end. It gives up beyond so many states; the trace is then without it.
func (x *expander[K]) loopFrom(k K) ([]K, error) {
	const most = 1 << 16
	before := map[K]K{}
	queue := []K{k}
	for len(queue) > 0 && len(before) < most {
		at := queue[0]
		queue = queue[1:]
		if err := x.fully(at); err != nil {
			return nil, err
		}
		for _, s := range x.out {
			if _, known := before[s.k]; known || s.fault {
				continue
			}
			before[s.k] = at
			if s.k != k {
				queue = append(queue, s.k)
				continue
			}
			way := []K{k}
			for ; at != k; at = before[at] {
				way = append(way, at)
			}
			slices.Reverse(way)
			return way, nil
		}
	}
	return nil, nil
}

// begin writes actors and channels with the initial state into a trace.
func (t *tables) begin(tr *Trace, ids []uint32) {
	for i, a := range t.sys.actors {
		tr.Actors = append(tr.Actors, TraceActor{Name: a.name, Start: t.locals[i].text(ids[i])})
	}
	for i, c := range t.sys.channels {
		ch := TraceChannel{
			Name: c.name, Ordered: c.is.Ordered, Senders: []string{}, Receivers: []string{},
			Start: t.queueOf(i, ids[t.lay.channel(i)]).Messages,
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

func (t *tables) queueOf(channel int, content uint32) TraceQueue {
	c := t.channels[channel]
	q := TraceQueue{Channel: c.part.name, Messages: []string{}}
	for _, m := range c.lists[content] {
		q.Messages = append(q.Messages, c.messages.text(m))
	}
	return q
}

func (t *tables) stepOf(m move, before, after []uint32) TraceStep {
	s := TraceStep{Kind: m.kind}
	local := func(actor int) {
		s.Locals = append(s.Locals, TraceLocal{
			Actor:  t.sys.actors[actor].name,
			Before: t.locals[actor].text(before[actor]), After: t.locals[actor].text(after[actor]),
		})
	}
	message := func(channel int) {
		s.Channel = t.sys.channels[channel].name
		s.Message = t.channels[channel].messages.text(m.message)
	}
	switch m.kind {
	case StepLose, StepDuplicate:
		message(m.at)
		return s
	case StepFault:
		if t.sys.once { // of a model: it is like an action, by nobody
			s.Label = t.labels[m.label]
			local(0)
			return s
		}
		f := t.sys.faults[m.at]
		s.Label = f.name
		for _, i := range f.strikes {
			local(t.sys.handlers[i].actor)
		}
		for _, c := range f.empties {
			if q := t.queueOf(c, before[t.lay.channel(c)]); len(q.Messages) > 0 {
				s.Emptied = append(s.Emptied, q)
			}
		}
		return s
	}
	h := t.sys.handlers[m.at]
	s.Actor, s.Label = t.sys.actors[h.actor].name, t.labels[m.label]
	if h.kind == StepSend || h.kind == StepDeliver {
		message(h.channel)
	}
	local(h.actor)
	return s
}
