package explore

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"unsafe"
)

// tables number the values of one exploration: local states, messages and labels.
// They keep the results of every handler, so that Explore calls none twice.
//
// One goroutine writes to them, between the parallel phases of the search and in
// an order that does not depend on the number of workers. The workers read.
type tables struct {
	sys      *System
	lay      layout
	locals   []table // by actor
	messages []table // by channel
	labels   *interned[string]
	actions  *interned[action] // the fair ones
	results  []results         // by handler
	kept     int64             // bytes of results
}

// results are what a handler allows: by local state, then by message if it is a
// delivery. nil: Explore has not called the handler.
type results [][][]allowed

func (r results) of(local, message uint32) []allowed {
	if int(local) >= len(r) || int(message) >= len(r[local]) {
		return nil
	}
	return r[local][message]
}

// action is a fair action: the label of local steps, the message of others.
type action struct {
	h  *handler
	id uint32
}

// table is an [interned] without its type.
type table interface {
	size() int
	text(id uint32) string
	bytes() int64
}

// interned numbers the values of T.
type interned[T comparable] struct {
	values []T
	index  map[T]uint32
}

func newInterned[T comparable]() *interned[T] { return &interned[T]{index: make(map[T]uint32)} }

func (t *interned[T]) add(v T) uint32 {
	id, ok := t.index[v]
	if !ok {
		id = uint32(len(t.values))
		t.values = append(t.values, v)
		t.index[v] = id
	}
	return id
}

func (t *interned[T]) size() int             { return len(t.values) }
func (t *interned[T]) text(id uint32) string { return fmt.Sprintf("%+v", t.values[id]) }

// bytes returns the memory of the values and the map, which counts twice. It omits the
// text of strings.
func (t *interned[T]) bytes() int64 {
	var v T
	size := int64(unsafe.Sizeof(v))
	return size*int64(cap(t.values)) + 2*(size+4)*int64(len(t.values))
}

func newTables(s *System) *tables {
	t := &tables{sys: s, lay: newLayout(s), labels: newInterned[string](), actions: newInterned[action](), results: make([]results, len(s.handlers))}
	for _, a := range s.actors {
		t.locals = append(t.locals, a.table())
	}
	for _, c := range s.channels {
		t.messages = append(t.messages, c.table())
	}
	return t
}

// starts returns the initial states, or nil if they take more than most bytes.
func (t *tables) starts(most int64) [][]byte {
	first := make([]byte, t.lay.size)
	for i, c := range t.sys.channels {
		q := t.lay.queue(first, i)
		for n, m := range c.start(t.messages[i]) {
			q.insert(q.place(n, m, c.is.Ordered), m)
		}
	}
	for i, b := range t.sys.budgets {
		t.lay.setBudget(first, i, b.most)
	}
	all := [][]byte{first}
	for i, a := range t.sys.actors {
		ids := a.start(t.locals[i])
		if int64(len(all))*int64(len(ids)) > most/int64(24+t.lay.size) {
			return nil
		}
		var next [][]byte
		for _, state := range all {
			for _, id := range ids {
				state = slices.Clone(state)
				t.lay.setLocal(state, i, id)
				next = append(next, state)
			}
		}
		all = next
	}
	return all
}

// texts returns the messages of a channel as text.
func (t *tables) texts(state []byte, channel int) []string {
	q := t.lay.queue(state, channel)
	list := make([]string, q.len())
	for i := range list {
		list[i] = t.messages[channel].text(q.at(i))
	}
	return list
}

func (t *tables) bytes() int64 {
	n := t.kept + t.labels.bytes() + t.actions.bytes()
	for _, of := range [][]table{t.locals, t.messages} {
		for _, l := range of {
			n += l.bytes()
		}
	}
	return n
}

// miss is a call of a handler whose results the tables lack.
type miss struct {
	handler        int
	local, message uint32
}

// fill calls the handlers that misses name, in parallel, and writes their results
// in the order of the misses.
func (t *tables) fill(ctx context.Context, workers int, misses []miss) error {
	known := make(map[miss]bool, len(misses))
	misses = slices.DeleteFunc(misses, func(m miss) bool {
		again := known[m]
		known[m] = true
		return again
	})
	write, failed := make([]func() []allowed, len(misses)), make([]error, len(misses))
	const each = 16 // calls of a task
	err := parallel(ctx, workers, (len(misses)+each-1)/each, func(task int) {
		for i := task * each; i < min(len(misses), (task+1)*each); i++ {
			t.call(misses[i], &write[i], &failed[i])
		}
	})
	if err = cmp.Or(err, firstError(failed)); err != nil {
		return err
	}
	for i, m := range misses {
		t.put(m, write[i]())
	}
	for i, c := range t.sys.channels {
		if t.messages[i].size() > maxMessages {
			return &ModelError{
				System: t.sys.name, Part: partName("channel", c.name),
				Problem: fmt.Sprintf("more than %d different messages", maxMessages),
			}
		}
	}
	return nil
}

// call calls a handler. It sets *err if the handler panics or ends its goroutine:
// then it does not return.
func (t *tables) call(m miss, write *func() []allowed, err *error) {
	h := t.sys.handlers[m.handler]
	returned := false
	defer func() {
		if returned {
			return
		}
		state := t.locals[h.actor].text(m.local)
		if h.kind == StepDeliver {
			state += ", message " + t.messages[h.channel].text(m.message)
		}
		*err = panicked(t.sys, t.sys.partOf(h), state, recover())
	}()
	*write = h.call(t, m.local, m.message)
	returned = true
}

func firstError(list []error) error {
	if i := slices.IndexFunc(list, func(err error) bool { return err != nil }); i >= 0 {
		return list[i]
	}
	return nil
}

func (t *tables) put(m miss, list []allowed) {
	r := &t.results[m.handler]
	*r = grown(*r, m.local)
	row := grown((*r)[m.local], m.message)
	row[m.message] = list
	(*r)[m.local] = row
	t.kept += 2*24 + int64(unsafe.Sizeof(allowed{}))*int64(len(list))
}

// grown returns s, long enough for an index.
func grown[S ~[]T, T any](s S, index uint32) S {
	if missing := int(index) + 1 - len(s); missing > 0 {
		s = append(s, make([]T, missing)...)
	}
	return s
}

// partOf names a handler in errors.
func (s *System) partOf(h *handler) string {
	part := partName("actor", s.actors[h.actor].name)
	switch h.kind {
	case StepSend:
		return part + " sending into " + partName("channel", s.channels[h.channel].name)
	case StepDeliver:
		return part + " receiving from " + partName("channel", s.channels[h.channel].name)
	case StepFault:
		return partName("fault", h.fault) + " striking " + part
	}
	n := 0
	for _, other := range s.handlers {
		if other.kind == StepAct && other.actor == h.actor {
			n++
		}
		if other == h {
			break
		}
	}
	return fmt.Sprintf("%s in action %d", part, n)
}

// panicked returns the error of a function that did not return. The value is nil
// if the function ended its goroutine.
func panicked(s *System, part, state string, value any) *ModelError {
	e := &ModelError{System: s.name, Part: part, State: state, Panic: value, Stack: debug.Stack()}
	e.Problem = fmt.Sprintf("panic: %v", value)
	if value == nil {
		e.Problem = "ended its goroutine"
	}
	return e
}
