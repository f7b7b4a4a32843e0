package lock

import (
	"iter"
	"slices"
	"strings"
)

// trie holds the present requests, held or waiting, at the nodes of their paths.
// It keeps only nodes with requests and nodes where paths part: an edge is one
// segment or many. It stores no intentions; two counters per node count what lies
// below it. The zero trie is empty.
type trie struct {
	root  node
	nodes int     // without the root
	spare []*node // at most maxSpare
}

// maxSpare bounds what an idle tree keeps for its next requests, so that Try does
// not allocate.
const maxSpare = 64

// node is a node with requests, a node where paths part, or the root.
//
//	marks = { m : lists[m].count > 0 }
//	below[c] = number of entries strictly below whose intention is of class c
//	blocked = number of blocked entries at the node and below
//	a node other than the root has an entry or at least two children
type node struct {
	key     string // of the path; of the root, ""
	parent  *node
	kids    []*node          // in no order
	byName  map[string]*node // instead of kids, by first segment, when they are many
	marks   modeSet
	below   [2]int
	blocked int
	lists   perMode[list]
}

// list holds the entries of one mode at a node, in the order of their arrival.
// Whatever blocks an entry conflicts with every later one of the list too. So those
// that are not blocked come first, and when a conflict ends, only the first blocked
// one can be affected, not each of a long queue.
type list struct {
	first, last, firstBlocked *entry
	count                     int
}

// entry is one request at its node.
type entry struct {
	claim      *claim
	node       *node
	prev, next *entry // in the list of its mode
	Request           // at the path of node, in its present mode
	blocked    bool   // an earlier present request of another claim conflicts
}

// class returns the index in node.below of the intention of m.
func class(m Mode) int { return int(m.Intent() - IS) }

// A node looks through up to mostKids children one by one. With more it uses a map
// until fewKids are left. The gap avoids building the map again and again. With a map at
// every node, Try below sixteen forks takes three times as long.
const (
	mostKids = 8
	fewKids  = 4
)

// filter selects requests by their place relative to a path and by their mode. The
// zero filter selects nothing.
type filter struct {
	above, at, below modeSet
	onlyBlocked      bool // of the nodes below, only those with blocked entries
}

// conflicting[m] selects the requests that conflict with mode m at a path.
var conflicting = func() (filters perMode[filter]) {
	for _, m := range Modes {
		f := filter{above: allModes &^ compatible[m.Intent()], at: allModes &^ compatible[m]}
		for _, below := range Modes {
			if !Compatible(m, below.Intent()) {
				f.below |= below.bit()
			}
		}
		filters[m] = f
	}
	return filters
}()

// scoped returns the filter of all requests in a scope.
func scoped(s Scope) (f filter) {
	if s&Above != 0 {
		f.above = allModes
	}
	if s&At != 0 {
		f.at = allModes
	}
	if s&Below != 0 {
		f.below = allModes
	}
	return f
}

// place is where a path lies in the trie: at node, or in the edge from node to
// kid, or beside that edge after the first shared bytes of kid's key.
type place struct {
	node   *node
	kid    *node // nil: the path is node's, or nothing below node begins like it
	shared int   // len(node.key) < shared < len(kid.key)
}

// find returns the place of a path, and whether no present request matches the
// filter there. The place is valid only if none does.
func (t *trie) find(key string, f filter) (at place, free bool) {
	n := &t.root
	for len(n.key) < len(key) {
		if n.marks&f.above != 0 {
			return place{}, false
		}
		kid, whole := n.kid(key)
		switch {
		case whole:
			n = kid
		case kid == nil:
			return place{node: n}, true
		case covers(key, kid.key): // in the edge: kid and all below it are below the path
			return place{n, kid, len(key)}, kid.marks&f.below == 0 && !kid.hasBelow(f.below)
		default:
			return place{n, kid, sharedPrefix(kid.key, key, len(n.key))}, true
		}
	}
	return place{node: n}, n.marks&f.at == 0 && !n.hasBelow(f.below)
}

// hasBelow reports whether an entry below n may have one of the modes. The set has
// all modes of a class or none.
func (n *node) hasBelow(modes modeSet) bool {
	return n.below[0] > 0 && modes&(1<<IS) != 0 || n.below[1] > 0 && modes&(1<<IX) != 0
}

// kid returns the child whose first segment below n is that of the path, which
// lies below n. It also reports whether the path is that child's or lies below it.
func (n *node) kid(key string) (kid *node, whole bool) {
	at := len(n.key)
	if n.byName != nil {
		kid = n.byName[firstSegment(key, at)]
		return kid, kid != nil && coversFrom(kid.key, key, at)
	}
	for _, kid := range n.kids {
		if kid.key[at+1] != key[at+1] { // both continue with a slash and at least one byte
			continue
		}
		if whole = coversFrom(kid.key, key, at); whole || firstSegment(kid.key, at) == firstSegment(key, at) {
			return kid, whole
		}
	}
	return nil, false
}

// coversFrom is covers for two keys that share their first bytes.
func coversFrom(a, b string, from int) bool {
	return len(a) <= len(b) && (len(a) == len(b) || b[len(a)] == '/') && a[from:] == b[from:len(a)]
}

// firstSegment returns the slash at from and the segment that follows it.
func firstSegment(key string, from int) string {
	if end := strings.IndexByte(key[from+1:], '/'); end >= 0 {
		return key[from : from+1+end]
	}
	return key[from:]
}

// sharedPrefix returns the length of the longest common prefix that ends where a
// segment of both ends. The first from bytes are such a prefix. REQUIRES: neither path
// covers the other.
func sharedPrefix(a, b string, from int) int {
	for firstSegment(a, from) == firstSegment(b, from) {
		from += len(firstSegment(a, from))
	}
	return from
}

// insert adds e at a place that find has returned for its path. The trie has not changed
// since.
func (t *trie) insert(at place, e *entry) {
	n, key := at.node, e.Path.key()
	if at.kid != nil {
		n = t.split(n, at.kid, at.shared)
	}
	if len(n.key) < len(key) {
		leaf := t.newNode(key, n)
		n.addKid(leaf)
		n = leaf
	}
	e.node = n
	n.mark(e, e.Mode)
	if e.blocked {
		if l := &n.lists[e.Mode]; l.firstBlocked == nil {
			l.firstBlocked = e
		}
		n.countBlocked(1)
	}
}

// countBlocked adds to the counts of blocked entries of n and of all nodes above.
func (n *node) countBlocked(add int) {
	for ; n != nil; n = n.parent {
		n.blocked += add
	}
}

// unblock ends the block of the first blocked entry of its list.
func (e *entry) unblock() {
	e.blocked = false
	e.node.lists[e.Mode].firstBlocked = e.next
	e.node.countBlocked(-1)
}

// mark lists and counts an entry of n in mode m.
func (n *node) mark(e *entry, m Mode) {
	e.Mode = m
	n.lists[m].add(e)
	n.marks |= m.bit()
	c := class(m)
	for up := n.parent; up != nil; up = up.parent {
		up.below[c]++
	}
}

// add inserts an entry by its arrival: nearly always it is the latest.
func (l *list) add(e *entry) {
	l.count++
	e.prev, e.next = l.last, nil
	for e.prev != nil && e.prev.claim.arrival > e.claim.arrival {
		e.prev, e.next = e.prev.prev, e.prev
	}
	if e.prev != nil {
		e.prev.next = e
	} else {
		l.first = e
	}
	if e.next != nil {
		e.next.prev = e
	} else {
		l.last = e
	}
}

func (l *list) remove(e *entry) {
	l.count--
	if l.firstBlocked == e {
		l.firstBlocked = e.next
	}
	if e.prev != nil {
		e.prev.next = e.next
	} else {
		l.first = e.next
	}
	if e.next != nil {
		e.next.prev = e.prev
	} else {
		l.last = e.prev
	}
	e.prev, e.next = nil, nil
}

func (n *node) unmark(e *entry) {
	m := e.Mode
	n.lists[m].remove(e)
	if n.lists[m].count == 0 {
		n.marks &^= m.bit()
	}
	c := class(m)
	for up := n.parent; up != nil; up = up.parent {
		up.below[c]--
	}
}

// remove takes e out, and every node that is not needed without it.
func (t *trie) remove(e *entry) {
	n := e.node
	n.unmark(e)
	if e.blocked {
		n.countBlocked(-1)
	}
	e.node, e.blocked = nil, false
	up := n.parent
	if n.marks == 0 && up != nil && len(n.kids)+len(n.byName) == 0 {
		up.removeKid(n)
		t.recycle(n)
		n = up // it may have been no more than the fork of two paths
	}
	if n.marks == 0 && n.parent != nil && len(n.kids) == 1 {
		t.merge(n)
	}
}

// merge puts the only child of n in its place.
func (t *trie) merge(n *node) {
	kid := n.kids[0] // a node with one child has no map
	kid.parent = n.parent
	n.parent.replaceKid(n, kid)
	t.recycle(n)
}

// split adds a node in the edge from n to kid.
func (t *trie) split(n, kid *node, length int) *node {
	middle := t.newNode(kid.key[:length], n)
	n.replaceKid(kid, middle)
	kid.parent = middle
	middle.kids = append(middle.kids, kid)
	middle.below, middle.blocked = kid.below, kid.blocked
	for _, m := range Modes {
		middle.below[class(m)] += kid.lists[m].count
	}
	return middle
}

func (n *node) addKid(kid *node) {
	if n.byName == nil && len(n.kids) < mostKids {
		n.kids = append(n.kids, kid)
		return
	}
	if n.byName == nil {
		n.byName = make(map[string]*node, 2*mostKids)
		for _, k := range n.kids {
			n.byName[firstSegment(k.key, len(n.key))] = k
		}
		clear(n.kids)
		n.kids = n.kids[:0]
	}
	n.byName[firstSegment(kid.key, len(n.key))] = kid
}

func (n *node) removeKid(kid *node) {
	if n.byName == nil {
		last := len(n.kids) - 1
		n.kids[slices.Index(n.kids, kid)], n.kids[last] = n.kids[last], nil
		n.kids = n.kids[:last]
		return
	}
	delete(n.byName, firstSegment(kid.key, len(n.key)))
	if len(n.byName) <= fewKids {
		for _, k := range n.byName {
			n.kids = append(n.kids, k)
		}
		n.byName = nil // a Go map does not shrink
	}
}

// replaceKid puts a node in the place of a child with the same first segment.
func (n *node) replaceKid(old, by *node) {
	if n.byName == nil {
		n.kids[slices.Index(n.kids, old)] = by
		return
	}
	// Delete the map's key as well: it is a part of the old node's key and would
	// keep that text in memory.
	segment := firstSegment(by.key, len(n.key))
	delete(n.byName, segment)
	n.byName[segment] = by
}

func (t *trie) newNode(key string, parent *node) *node {
	t.nodes++
	last := len(t.spare) - 1
	if last < 0 {
		return &node{key: key, parent: parent}
	}
	n := t.spare[last]
	t.spare = t.spare[:last]
	n.key, n.parent = key, parent
	return n
}

// recycle takes back a node without entries, whose children have another parent.
func (t *trie) recycle(n *node) {
	t.nodes--
	clear(n.kids)
	*n = node{kids: n.kids[:0]}
	if len(t.spare) < maxSpare {
		t.spare = append(t.spare, n)
	}
}

// visit yields the entries above, at and below a path that match the filter.
func (t *trie) visit(key string, f filter) iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		for l := range t.visitLists(key, f) {
			for e := l.first; e != nil; e = e.next {
				if !yield(e) {
					return
				}
			}
		}
	}
}

// visitLists yields the lists above, at and below a path that match the filter.
func (t *trie) visitLists(key string, f filter) iter.Seq[*list] {
	return func(yield func(*list) bool) {
		n := &t.root
		for len(n.key) < len(key) {
			if !n.visitOwn(f.above, yield) {
				return
			}
			kid, whole := n.kid(key)
			switch {
			case whole:
				n = kid
			case kid != nil && covers(key, kid.key): // in the edge
				kid.visitAll(f, yield)
				return
			default:
				return
			}
		}
		if n.visitOwn(f.at, yield) {
			n.visitBelow(f, yield)
		}
	}
}

// visitOwn yields the lists of n with these modes. It and the next two report
// whether the visit goes on.
func (n *node) visitOwn(modes modeSet, yield func(*list) bool) bool {
	if n.marks&modes == 0 {
		return true
	}
	for _, m := range Modes {
		if n.marks&modes&m.bit() != 0 && !yield(&n.lists[m]) {
			return false
		}
	}
	return true
}

func (n *node) visitAll(f filter, yield func(*list) bool) bool {
	return n.visitOwn(f.below, yield) && n.visitBelow(f, yield)
}

func (n *node) visitBelow(f filter, yield func(*list) bool) bool {
	if !n.hasBelow(f.below) || f.onlyBlocked && n.blocked == 0 {
		return true
	}
	for _, kid := range n.kids {
		if !kid.visitAll(f, yield) {
			return false
		}
	}
	for _, kid := range n.byName {
		if !kid.visitAll(f, yield) {
			return false
		}
	}
	return true
}

// isBlocked reports whether an earlier present request conflicts with an entry. It
// looks at the first entry of each list, which is the earliest. The entries of one
// claim have the same arrival.
func (t *trie) isBlocked(e *entry) bool {
	for l := range t.visitLists(e.node.key, conflicting[e.Mode]) {
		if l.first.claim.arrival < e.claim.arrival {
			return true
		}
	}
	return false
}
