package locktest

import (
	"math"
	"slices"

	"github.com/interlock-go/interlock/lock"
)

// verdict is whether the calls of a history have an order that explains their
// answers and in which none comes after one that was called when it had returned.
type verdict uint8

const (
	legal verdict = iota
	illegal
	unknown // the search was given up
)

// patience of the search: histories of this suite need some thousand steps.
const mostSteps = 5_000_000

// content is who holds what: for every slot a number of a list of requests, 0
// for nothing.
type content [mostClients * slots]uint8

// spec says what the answers are to be. Lists of requests are numbered as they
// appear, so that contents can be compared.
type spec struct {
	*rules
	lists [][]lock.Request // the first is of nothing
}

func newSpec(known *rules) *spec { return &spec{rules: known, lists: make([][]lock.Request, 1)} }

func (s *spec) number(rs []lock.Request) uint8 {
	rs = canonical(rs)
	i := slices.IndexFunc(s.lists, func(list []lock.Request) bool { return slices.Equal(list, rs) })
	if i < 0 {
		i = len(s.lists)
		if i > math.MaxUint8 {
			panic("locktest: a history has too many lists")
		}
		s.lists = append(s.lists, rs)
	}
	return uint8(i)
}

// inTheWay returns the slots, but for own, that conflict with requests.
func (s *spec) inTheWay(c *content, rs []lock.Request, own int) (found []int) {
	for slot, list := range c {
		if list != 0 && slot != own && s.clashAll(rs, s.lists[list]) {
			found = append(found, slot)
		}
	}
	return found
}

// next returns what is held after an operation, and whether its answer is right
// where c is held before.
func (s *spec) next(c content, o *operation) (content, bool) {
	switch o.action {
	case tryAction:
		return s.grant(c, o, o.rs, -1)
	case upgradeAction:
		raised := slices.Clone(s.lists[c[o.slot]])
		for i := range raised {
			raised[i].Mode = joined(raised[i].Mode, o.mode)
		}
		return s.grant(c, o, raised, o.slot)
	case downgradeAction:
		lowered := slices.Clone(s.lists[c[o.slot]])
		for i := range lowered {
			lowered[i].Mode = o.mode
		}
		c[o.slot] = s.number(lowered)
	case unlockAction:
		c[o.slot] = 0
	case againAction:
	}
	return c, true
}

func (s *spec) grant(c content, o *operation, rs []lock.Request, own int) (content, bool) {
	inTheWay := s.inTheWay(&c, rs, own)
	if !o.refused {
		c[o.slot] = s.number(rs)
		return c, len(inTheWay) == 0
	}
	missing := slices.ContainsFunc(inTheWay, func(slot int) bool { return !slices.Contains(o.names, slot) })
	wrong := slices.ContainsFunc(o.names, func(slot int) bool { return !slices.Contains(inTheWay, slot) })
	return c, len(inTheWay) > 0 && len(o.names) > 0 && !wrong && (o.more || !missing)
}

// done counts, for every client, how many of its operations have their place.
// With the content it is all that the rest of a search depends on.
type done [mostClients]uint8

type visited struct {
	done
	content
}

// search looks for an order: the one of every client is known, so that a place
// in it is a number for each.
type search struct {
	spec    *spec
	clients [mostClients][]*operation
	seen    map[visited]struct{}
	steps   int
}

// judge decides a history.
func judge(known *rules, history []operation) verdict {
	s := search{spec: newSpec(known), seen: map[visited]struct{}{}}
	for i := range history {
		o := &history[i]
		s.clients[o.client] = append(s.clients[o.client], o)
	}
	switch {
	case s.from(visited{}):
		return legal
	case s.steps >= mostSteps:
		return unknown
	}
	return illegal
}

func (s *search) from(v visited) bool {
	if _, failed := s.seen[v]; failed {
		return false
	}
	if s.steps++; s.steps >= mostSteps {
		return false
	}
	// Whatever has returned first comes before all that was called after it.
	first, finished := int64(math.MaxInt64), true
	for client, ops := range s.clients {
		if n := int(v.done[client]); n < len(ops) {
			first, finished = min(first, ops[n].returned), false
		}
	}
	if finished {
		return true
	}
	for client, ops := range s.clients {
		n := int(v.done[client])
		if n == len(ops) || ops[n].called > first {
			continue
		}
		after, right := s.spec.next(v.content, ops[n])
		if !right {
			continue
		}
		w := visited{v.done, after}
		w.done[client]++
		if s.from(w) {
			return true
		}
	}
	s.seen[v] = struct{}{}
	return false
}
