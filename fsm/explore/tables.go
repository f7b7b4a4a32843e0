package explore

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"unsafe"
)

// tables hold what one exploration knows about the parts of a system: the values
// that local states and messages have, what channels have held, and what every
// handler said. All of it is numbered, so that a state of the system is a few
// small numbers, and nothing is asked twice.
//
// They are written between the parallel phases of an exploration, by one
// goroutine and in an order that does not depend on the number of workers.
type tables struct {
	sys      *System
	lay      *layout
	locals   []localTable
	channels []*contents
	memo     []memo // by handler
	labels   []string
	labelIDs map[string]uint32
	bytes    int64 // that all of it takes, roughly
}

type localTable interface {
	size() int
	text(id uint32) string
	bytes() int64
}

type messageTable interface {
	localTable
	list(ids []uint32) // the next content of the channel
}

// interned numbers the values of T.
type interned[T comparable] struct {
	values []T
	index  map[T]uint32
	texts  int64 // bytes of the strings in them
}

func newInterned[T comparable]() interned[T] { return interned[T]{index: make(map[T]uint32)} }

func (t *interned[T]) add(v T) uint32 {
	id, known := t.index[v]
	if !known {
		id = uint32(len(t.values))
		t.values = append(t.values, v)
		t.texts += textBytes(reflect.ValueOf(&v).Elem())
		t.index[v] = id
	}
	return id
}

func (t *interned[T]) bytes() int64 {
	var v T
	size := int64(unsafe.Sizeof(v))
	return size*int64(cap(t.values)) + 2*(size+4)*int64(len(t.values)) + t.texts
}

func (t *interned[T]) size() int             { return len(t.values) }
func (t *interned[T]) text(id uint32) string { return fmt.Sprintf("%+v", t.values[id]) }

// messages are those of one channel, with what it has held as a list each.
type messages[M comparable] struct {
	interned[M]
	lists  [][]M
	listed int
}

func (t *messages[M]) bytes() int64 {
	var m M
	return t.interned.bytes() + 24*int64(cap(t.lists)) + int64(unsafe.Sizeof(m))*int64(t.listed)
}

func (t *messages[M]) list(ids []uint32) {
	l := make([]M, len(ids))
	for i, id := range ids {
		l[i] = t.values[id]
	}
	t.lists = append(t.lists, l)
	t.listed += len(l)
}

// handler is one function of a system without its types.
type handler struct {
	kind    StepKind
	actor   int
	channel int    // of StepSend and StepDeliver
	name    string // of StepFault
	// call calls the function, which may happen in parallel, and returns what
	// numbers its results.
	call func(t *tables, local, message uint32) func() []allowed
}

// allowed is one step that a handler allows.
type allowed struct {
	next    uint32 // local state of the actor
	message uint32
	label   uint32
	fault   bool
}

// memo has what a handler said: by local state, and by message below that for a
// handler of deliveries. nil: not asked yet.
type memo struct {
	by        [][]allowed
	byMessage [][][]allowed
	recent    map[uint32][]allowed // instead of by, if nothing is asked for twice
	bytes     int64
}

func (m *memo) of(local uint32) []allowed {
	if m.recent != nil {
		return m.recent[local]
	}
	if int(local) < len(m.by) {
		return m.by[local]
	}
	return nil
}

func (m *memo) ofMessage(local, message uint32) []allowed {
	if int(local) < len(m.byMessage) {
		if row := m.byMessage[local]; int(message) < len(row) {
			return row[message]
		}
	}
	return nil
}

// contents numbers what a channel has held. 0 is nothing.
type contents struct {
	part     *channelPart
	messages messageTable
	lists    [][]uint32 // messages: the oldest first, or sorted if the channel is not ordered
	index    map[string]uint32
	pushed   [][]uint32 // by content and message: the content with it, plus one; 0: not asked yet
	takes    [][]taken  // by content: what may be delivered next, nil: not asked yet
	drops    [][]taken  // by content: what may be lost
	copies   [][]taken  // by content: what may be duplicated
	listed   int64      // bytes of all lists
}

// taken is a message, and the content after it was taken out, lost or copied.
type taken struct{ message, rest uint32 }

func newTables(s *System) *tables {
	t := &tables{sys: s, memo: make([]memo, len(s.handlers)), labelIDs: make(map[string]uint32)}
	for _, a := range s.actors {
		t.locals = append(t.locals, a.table())
	}
	for _, c := range s.channels {
		ch := &contents{part: c, messages: c.messages(), index: make(map[string]uint32)}
		ch.add(nil)
		t.channels = append(t.channels, ch)
	}
	if s.once {
		for i := range t.memo {
			t.memo[i].recent = make(map[uint32][]allowed)
		}
	}
	return t
}

// forget drops what is not asked for again.
func (t *tables) forget() {
	for i := range t.memo {
		if m := &t.memo[i]; m.recent != nil {
			clear(m.recent)
			m.bytes = 0
		}
	}
}

// count sets bytes. Maps are taken for twice what is in them.
func (t *tables) count() {
	t.bytes = 0
	for _, l := range t.locals {
		t.bytes += l.bytes()
	}
	for _, c := range t.channels {
		t.bytes += c.messages.bytes() + c.listed + int64(len(c.lists))*(5*24+2*20)
	}
	for i := range t.memo {
		t.bytes += t.memo[i].bytes
	}
}

func (t *tables) label(s string) uint32 {
	id, known := t.labelIDs[s]
	if !known {
		id = uint32(len(t.labels))
		t.labels = append(t.labels, s)
		t.labelIDs[s] = id
	}
	return id
}

// add numbers a content; the caller gives the list away.
func (c *contents) add(list []uint32) uint32 {
	var buf [4 * MaxCapacity]byte
	key := buf[:0]
	for _, m := range list {
		key = binary.LittleEndian.AppendUint32(key, m)
	}
	if id, known := c.index[string(key)]; known {
		return id
	}
	id := uint32(len(c.lists))
	c.index[string(key)] = id
	c.lists = append(c.lists, list)
	c.listed += 2 * 4 * int64(len(list)) // here and in the index
	c.messages.list(list)
	c.pushed = append(c.pushed, nil)
	c.takes, c.drops, c.copies = append(c.takes, nil), append(c.drops, nil), append(c.copies, nil)
	return id
}

func (c *contents) full(content uint32) bool { return len(c.lists[content]) >= c.part.is.Capacity }

// after returns the content with one message more, and false if that was not
// asked yet.
func (c *contents) after(content, message uint32) (uint32, bool) {
	if row := c.pushed[content]; int(message) < len(row) {
		return row[message] - 1, row[message] != 0
	}
	return 0, false
}

func (c *contents) push(content, message uint32) {
	row := c.pushed[content]
	if missing := int(message) + 1 - len(row); missing > 0 {
		row = append(row, make([]uint32, missing)...)
		c.pushed[content] = row
		c.listed += 4 * int64(missing)
	}
	row[message] = c.with(c.lists[content], len(c.lists[content]), message) + 1
}

// with numbers the list with a message put in at a place, which is a matter of
// the order only.
func (c *contents) with(list []uint32, at int, message uint32) uint32 {
	if !c.part.is.Ordered {
		at, _ = slices.BinarySearch(list, message)
	}
	return c.add(slices.Insert(slices.Clone(list), at, message))
}

func (c *contents) take(content uint32) {
	list := c.lists[content]
	if c.part.is.Ordered && len(list) > 1 {
		list = list[:1]
	}
	c.takes[content] = c.each(content, list, c.without)
}

func (c *contents) drop(content uint32) {
	c.drops[content] = c.each(content, c.lists[content], c.without)
}

func (c *contents) copy(content uint32) {
	list := c.lists[content]
	if c.full(content) {
		list = nil
	}
	c.copies[content] = c.each(content, list, func(all []uint32, at int) uint32 {
		return c.with(all, at+1, all[at])
	})
}

func (c *contents) without(list []uint32, at int) uint32 {
	return c.add(slices.Delete(slices.Clone(list), at, at+1))
}

// each lists what becomes of a content at each of its first messages, every
// result once: equal messages beside each other are one.
func (c *contents) each(content uint32, first []uint32, then func(all []uint32, at int) uint32) []taken {
	all := c.lists[content]
	list := []taken{}
	for i, m := range first {
		if i > 0 && m == first[i-1] {
			continue
		}
		list = append(list, taken{message: m, rest: then(all, i)})
	}
	c.listed += 8 * int64(cap(list))
	return list
}
