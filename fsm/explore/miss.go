package explore

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
)

// miss is something that the tables do not know yet. The state that needs it is
// put off until it was filled in.
type miss struct {
	what    missKind
	at      int    // handler or channel
	of      uint32 // local state or content
	message uint32
}

type missKind uint8

const (
	missHandler missKind = iota
	missPush
	missTake
	missDrop
	missCopy
)

// fill writes into the tables what they lack. Functions are called in parallel;
// their answers are written in the order of the misses. stopped: the context has
// ended, and nothing was written.
func (t *tables) fill(ctx context.Context, workers int, misses []miss) (stopped, err error) {
	known := make(map[miss]bool, len(misses))
	misses = slices.DeleteFunc(misses, func(m miss) bool {
		again := known[m]
		known[m] = true
		return again
	})
	answers, errs := make([]func(), len(misses)), make([]error, len(misses))
	if len(misses) < inline {
		workers = 1
	}
	stopped = parallel(ctx, workers, len(misses), func(_, i int) {
		if misses[i].what == missHandler {
			t.ask(misses[i], &answers[i], &errs[i])
		}
	})
	if stopped != nil {
		return stopped, nil
	}
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	for i, m := range misses {
		switch c := m.at; m.what {
		case missHandler:
			answers[i]()
		case missPush:
			t.channels[c].push(m.of, m.message)
		case missTake:
			t.channels[c].take(m.of)
		case missDrop:
			t.channels[c].drop(m.of)
		case missCopy:
			t.channels[c].copy(m.of)
		}
	}
	t.count()
	return nil, nil
}

// ask calls the handler that a miss is about, and leaves what writes its answer.
// It does not return the error, because it does not return at all if the handler
// ends its goroutine.
func (t *tables) ask(m miss, answer *func(), err *error) {
	h := t.sys.handlers[m.at]
	returned := false
	defer func() {
		if returned {
			return
		}
		state := t.locals[h.actor].text(m.of)
		if h.kind == StepDeliver {
			state += ", message " + t.channels[h.channel].messages.text(m.message)
		}
		*err = panicked(t.sys, t.partOf(h), state, recover())
	}()
	said := h.call(t, m.of, m.message)
	returned = true
	*answer = func() { t.memo[m.at].put(h, m, said()) }
}

func (m *memo) put(h *handler, at miss, outs []allowed) {
	m.bytes += 24 + 16*int64(len(outs))
	if m.recent != nil {
		m.recent[at.of] = outs
		return
	}
	if h.kind != StepDeliver {
		m.by = grown(m.by, at.of)
		m.by[at.of] = outs
		return
	}
	m.byMessage = grown(m.byMessage, at.of)
	row := grown(m.byMessage[at.of], at.message)
	row[at.message] = outs
	m.byMessage[at.of] = row
}

// grown returns s, long enough for an index.
func grown[T any](s []T, index uint32) []T {
	if missing := int(index) + 1 - len(s); missing > 0 {
		s = append(s, make([]T, missing)...)
	}
	return s
}

func (t *tables) partOf(h *handler) string {
	part := partName("actor", t.sys.actors[h.actor].name)
	switch h.kind {
	case StepAct:
		return t.sys.actionOf(h)
	case StepSend:
		return part + " sending into " + partName("channel", t.sys.channels[h.channel].name)
	case StepDeliver:
		return part + " receiving from " + partName("channel", t.sys.channels[h.channel].name)
	case StepFault:
		return partName("fault", h.name) + " striking " + part
	}
	return part
}

// panicked makes the error of a function that did not return. A function that
// ended its goroutine instead of panicking leaves no value.
func panicked(s *System, part, state string, value any) *ModelError {
	e := &ModelError{System: s.name, Part: part, State: state, Panic: value, Stack: debug.Stack()}
	e.Problem = fmt.Sprintf("panic: %v", value)
	if value == nil {
		e.Problem = "ended its goroutine"
	}
	return e
}
