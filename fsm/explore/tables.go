package explore

import (
	"fmt"
	"reflect"
	"slices"
)

// tables number the values of one exploration: local states, messages and labels.
// They keep the results of every function of an actor, so that Explore calls none twice.
//
// They grow only while the search adds a state, which one goroutine does. So the numbers
// do not depend on the number of workers.
type tables struct {
	sys      *System
	lay      layout
	rules    []*rule           // that make steps, in the order of the steps
	locals   []*numbering[any] // by actor
	messages []*numbering[any] // by channel
	labels   *numbering[string]
	actions  *numbering[fairAction]
	results  [][][][]allowed // by function, local state and message; nil: not called
	kept     int64           // bytes of results
}

// argument is the argument of a function of an actor. message is 0 unless it is a delivery.
type argument struct {
	rule           *rule
	local, message uint32
}

// allowed is a result in numbers.
type allowed struct {
	next    uint32 // local state of the actor
	message uint32
	label   uint32
	mark    uint32 // of its edge
}

// fairAction is a fair action: the label of local steps, the message of others.
type fairAction struct {
	rule *rule
	id   uint32
}

func newTables(s *System) *tables {
	t := &tables{
		sys: s, lay: newLayout(s), labels: newNumbering[string](), actions: newNumbering[fairAction](),
		results: make([][][][]allowed, len(s.functions)),
	}
	for _, r := range s.functions {
		if r.kind != StepFault { // a strike makes no step of its own
			t.rules = append(t.rules, r)
		}
	}
	t.rules = slices.Concat(t.rules, s.losses, s.faults)
	for _, a := range s.actors {
		t.locals = append(t.locals, newNumbering(a.initial...))
	}
	for _, c := range s.channels {
		t.messages = append(t.messages, newNumbering(c.initial...))
	}
	return t
}

// known reports whether the tables have the results of a function of an actor.
func (t *tables) known(a argument) bool {
	of := t.results[a.rule.at]
	return int(a.local) < len(of) && int(a.message) < len(of[a.local]) && of[a.local][a.message] != nil
}

// call calls the function of an actor and keeps the results.
func (t *tables) call(a argument) {
	r, locals := a.rule, t.locals[a.rule.actor]
	var m any
	if a.message != 0 {
		m = t.messages[r.channel].value(a.message)
	}
	list := []allowed{}
	r.call(locals.value(a.local), m, func(by result) {
		next := allowed{next: locals.number(by.next), label: t.labels.number(by.label)}
		action := next.label
		if r.channel != none {
			next.message = t.messages[r.channel].number(by.message)
			action = next.message
		}
		if by.fault {
			next.mark = isFault
		} else if r.fair != nil && r.fair(by.label) {
			next.mark = t.actions.number(fairAction{r, action})
		}
		list = append(list, next)
	})
	of := grown(t.results[r.at], a.local)
	of[a.local] = grown(of[a.local], a.message)
	of[a.local][a.message] = list
	t.results[r.at] = of
	t.kept += resultsBytes + resultBytes*int64(len(list))
}

// grown returns a list that is long enough for an index.
func grown[T any](list []T, index uint32) []T {
	return append(list, make([]T, max(0, int(index)+1-len(list)))...)
}

// starts returns the initial states, or nil if they take more than most bytes.
func (t *tables) starts(most int64) [][]uint32 {
	first := make([]uint32, t.lay.size)
	for i, c := range t.sys.channels {
		for _, m := range c.initial {
			t.lay.queue(first, i).add(t.messages[i].number(m), c.spec.Ordered)
		}
	}
	for i, b := range t.sys.budgets {
		first[t.lay.budgets+i] = b.most
	}
	all := [][]uint32{first}
	for i, locals := range t.locals {
		n := len(locals.values)
		if int64(len(all))*int64(n) > most/int64(24+4*t.lay.size) {
			return nil
		}
		var next [][]uint32
		for _, state := range all {
			for local := range uint32(n) {
				state = slices.Clone(state)
				state[i] = local + 1
				next = append(next, state)
			}
		}
		all = next
	}
	return all
}

// texts returns the messages of a channel as text.
func (t *tables) texts(state []uint32, channel int) []string {
	list := []string{}
	for _, m := range t.lay.queue(state, channel).messages() {
		list = append(list, t.messages[channel].text(m))
	}
	return list
}

// The memory of results, and of an entry in a map with its share of the free ones.
const (
	resultsBytes = 2 * 24
	resultBytes  = 16
	entryBytes   = 64
)

func (t *tables) bytes() int64 {
	n := t.kept + t.labels.bytes() + t.actions.bytes()
	for _, values := range slices.Concat(t.locals, t.messages) {
		n += values.bytes()
	}
	return n
}

// numbering gives each value of T a number from 1 on. 0 stands for no value.
type numbering[T comparable] struct {
	values  []T
	numbers map[T]uint32
}

func newNumbering[T comparable](values ...T) *numbering[T] {
	n := &numbering[T]{numbers: make(map[T]uint32)}
	for _, v := range values {
		n.number(v)
	}
	return n
}

func (n *numbering[T]) number(v T) uint32 {
	if n.numbers[v] == 0 {
		n.values = append(n.values, v)
		n.numbers[v] = uint32(len(n.values))
	}
	return n.numbers[v]
}

func (n *numbering[T]) value(number uint32) T     { return n.values[number-1] }
func (n *numbering[T]) text(number uint32) string { return fmt.Sprintf("%+v", n.value(number)) }

// bytes returns the memory of the values, about. It omits the text of strings.
func (n *numbering[T]) bytes() int64 {
	if len(n.values) == 0 {
		return 0
	}
	return int64(len(n.values)) * (entryBytes + int64(reflect.TypeOf(n.values[0]).Size()))
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
