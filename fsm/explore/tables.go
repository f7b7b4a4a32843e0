package explore

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"unsafe"
)

// tables number the values of one exploration: local states, messages and labels.
// They keep the results of every handler, so that Explore calls none twice.
//
// They grow only while the search adds a state, which one goroutine does. So the numbers
// do not depend on the number of workers.
type tables struct {
	sys      *System
	lay      layout
	locals   []values // by actor
	messages []values // by channel
	labels   *interned[string]
	actions  *interned[fairAction]
	results  []results // by handler
	kept     int64     // bytes of results
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

// fairAction is a fair action: the label of local steps, the message of others.
type fairAction struct {
	h  *handler
	id uint32
}

// values is an [interned] without its type.
type values interface {
	size() int
	text(id uint32) string
	bytes() int64
	clone() values
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
func (t *interned[T]) clone() values {
	return &interned[T]{slices.Clone(t.values), maps.Clone(t.index)}
}

// bytes returns the memory of the values and the map, which counts twice. It omits the
// text of strings.
func (t *interned[T]) bytes() int64 {
	var v T
	size := int64(unsafe.Sizeof(v))
	return size*int64(cap(t.values)) + 2*(size+4)*int64(len(t.values))
}

// plain returns an error unless == compares the content of values of T.
func plain[T any]() error { return plainType(reflect.TypeFor[T](), reflect.TypeFor[T]().String()) }

func plainType(t reflect.Type, where string) error {
	switch k := t.Kind(); {
	case k >= reflect.Bool && k <= reflect.Uintptr, k == reflect.String:
		return nil
	case k == reflect.Array:
		return plainType(t.Elem(), where+"[]")
	case k == reflect.Struct:
		for f := range t.Fields() {
			if err := plainType(f.Type, where+"."+f.Name); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("is not comparable by content: %s is of kind %s", where, t.Kind())
}

func newTables(s *System) *tables {
	t := &tables{
		sys: s, lay: newLayout(s), labels: newInterned[string](), actions: newInterned[fairAction](),
		results: make([]results, len(s.handlers)),
	}
	for _, a := range s.actors {
		t.locals = append(t.locals, a.new.clone())
	}
	for _, c := range s.channels {
		t.messages = append(t.messages, c.new.clone())
	}
	return t
}

// starts returns the initial states, or nil if they take more than most bytes.
func (t *tables) starts(most int64) [][]byte {
	first := make([]byte, t.lay.size)
	for i, c := range t.sys.channels {
		q := t.lay.queue(first, i)
		for n, m := range c.start {
			q.insert(q.place(n, m, c.is.Ordered), m)
		}
	}
	for i, b := range t.sys.budgets {
		t.lay.setBudget(first, i, b.most)
	}
	all := [][]byte{first}
	for i, a := range t.sys.actors {
		if int64(len(all))*int64(a.new.size()) > most/int64(24+t.lay.size) {
			return nil
		}
		var next [][]byte
		for _, state := range all {
			for id := range uint32(a.new.size()) {
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
	for _, v := range slices.Concat(t.locals, t.messages) {
		n += v.bytes()
	}
	return n
}

// keep keeps the results of a handler.
func (t *tables) keep(handler int, local, message uint32, list []allowed) {
	r := &t.results[handler]
	*r = grown(*r, local)
	(*r)[local] = grown((*r)[local], message)
	(*r)[local][message] = list
	t.kept += 2*24 + int64(unsafe.Sizeof(allowed{}))*int64(len(list))
}

// grown returns s, long enough for an index.
func grown[S ~[]T, T any](s S, index uint32) S {
	return append(s, make([]T, max(0, int(index)+1-len(s)))...)
}
