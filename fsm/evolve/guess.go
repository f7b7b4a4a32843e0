package evolve

import (
	"fmt"

	"github.com/interlock-go/interlock/fsm"
)

// alike is the least part of their transitions that two states have in common to
// be taken for one that was renamed.
const alike = 0.6

// guess pairs what is gone with what is new and does the same. A pair is made
// where each is the other's only best match.
func (j *joint) guess(tables [2]*fsm.Table, names [3][2][]string) {
	for range 2 { // what is found about events and actors may tell more about states
		j.halves = [2]half{j.half(tables[oldHalf], oldHalf), j.half(tables[newHalf], newHalf)}
		found := j.match(&j.states, func(h int) map[int]signature { return j.stateSignatures(h) }, alike)
		if found {
			j.halves = [2]half{j.half(tables[oldHalf], oldHalf), j.half(tables[newHalf], newHalf)}
		}
		found = j.match(&j.events, func(h int) map[int]signature {
			return j.signatures(h, &j.events, func(a *arrow, yield func(int)) { yield(a.event) })
		}, 1) || found
		found = j.match(&j.actors, func(h int) map[int]signature {
			return j.signatures(h, &j.actors, func(a *arrow, yield func(int)) {
				for actor := range j.actors.in[h] {
					if a.actors.Has(actor) {
						yield(actor)
					}
				}
			})
		}, 1) || found
		if !found {
			return
		}
	}
}

// signature counts what a thing does, in words that mean the same in both tables.
type signature map[string]int

func (s signature) size() (n int) {
	for _, k := range s {
		n += k
	}
	return n
}

// match merges what matches and reports whether anything did.
func (j *joint) match(l *ids, signatures func(h int) map[int]signature, least float64) (found bool) {
	olds, news := j.lone(l, oldHalf), j.lone(l, newHalf)
	if len(olds) == 0 || len(news) == 0 || len(olds)*len(news) > 1<<16 {
		return false // nobody renames so much at once
	}
	so, sn := signatures(oldHalf), signatures(newHalf)
	best := func(of int, own map[int]signature, others []int, all map[int]signature) int {
		top, at := 0.0, -1
		for _, other := range others {
			switch score := likeness(own[of], all[other]); {
			case score < least:
			case score > top:
				top, at = score, other
			case score == top:
				at = -1 // as like as another one
			}
		}
		return at
	}
	for _, o := range olds {
		if n := best(o, so, news, sn); n >= 0 && best(n, sn, olds, so) == o {
			l.merge(o, n)
			found = true
		}
	}
	return found
}

// lone lists the numbers that only one table has.
func (j *joint) lone(l *ids, h int) (list []int) {
	for number, i := range l.in[h] {
		if i >= 0 && l.in[1-h][number] < 0 {
			list = append(list, number)
		}
	}
	return list
}

// likeness is the part of two signatures that they have in common: from 0 to 1.
func likeness(a, b signature) float64 {
	common, known := 0, false
	for word, n := range a {
		if both := min(n, b[word]); both > 0 {
			common += both
			known = true
		}
	}
	if !known {
		return 0
	}
	return float64(2*common) / float64(a.size()+b.size())
}

// common returns a number in words that mean the same in both tables.
func common(l *ids, number int) string {
	if number < 0 || l.in[oldHalf][number] < 0 || l.in[newHalf][number] < 0 {
		return "?"
	}
	return fmt.Sprint(number)
}

// stateSignatures says of each state what leads out of it and into it.
func (j *joint) stateSignatures(h int) map[int]signature {
	x := &j.halves[h]
	all := make(map[int]signature)
	add := func(state int, word string) {
		if state < 0 || j.states.in[1-h][state] >= 0 {
			return
		}
		if all[state] == nil {
			all[state] = signature{}
		}
		// Only states of one kind are alike at all.
		all[state][x.kind[state].String()+" "+word]++
	}
	for from, arrows := range x.from {
		for i := range arrows {
			a := &arrows[i]
			event := common(&j.events, a.event)
			switch {
			case a.then == fsm.ThenMove && a.to == from:
				add(from, "self "+event)
			case a.then == fsm.ThenMove:
				add(from, "out "+event+" "+common(&j.states, a.to))
				add(a.to, "in "+event+" "+common(&j.states, from))
			default:
				add(from, a.then.String()+" "+event)
			}
		}
	}
	return all
}

// signatures says of each event, or of each actor, in which rows it is.
func (j *joint) signatures(h int, l *ids, of func(a *arrow, yield func(int))) map[int]signature {
	all := make(map[int]signature)
	for from, arrows := range j.halves[h].from {
		for i := range arrows {
			a := &arrows[i]
			word := fmt.Sprintf("%s %s %s %s", common(&j.states, from), a.then, common(&j.states, a.to), a.guard)
			if l == &j.actors {
				word += " " + common(&j.events, a.event)
			}
			of(a, func(number int) {
				if l.in[1-h][number] >= 0 {
					return
				}
				if all[number] == nil {
					all[number] = signature{}
				}
				all[number][word]++
			})
		}
	}
	return all
}
