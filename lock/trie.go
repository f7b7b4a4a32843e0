package lock

import "strings"

// trie holds the requests that are present, held or waiting, at the nodes of
// their paths. Only nodes with requests, and those where paths part, are kept:
// an edge is one segment or many. Intentions are not stored; two counters per
// node say what lies below it. The zero trie is empty.
type trie struct {
	root   node
	nodes  int   // without the root
	spare  *node // linked by parent, at most maxSpare
	spares int
}

// maxSpare bounds what an idle tree keeps for its next requests.
const maxSpare = 64

// node is a node of the tree with requests, or where paths part, or the root.
//
//	marks = { m : counts[m] > 0 }
//	below[c] = number of entries strictly below whose intention is of class c
//	entries or >= 2 kids, except of the root
type node struct {
	key    string // of the path; of the root, ""
	parent *node
	kids   []*node          // by first segment, each its own
	byName map[string]*node // the same, when they are many
	marks  modeSet
	counts perMode[int32]
	below  [2]int
	first  *entry // in no order
}

// entry is one request at its node.
type entry struct {
	claim      *claim
	node       *node
	prev, next *entry
	mode       Mode
}

// class of an intention: what below is indexed by.
func class(m Mode) int { return int(m.Intent() - IS) }

// mostKids are looked through one by one; beyond, there is a map, until few are
// left. The gap keeps a node at the border from building one again and again.
const (
	mostKids = 8
	fewKids  = 4
)

// place is where a path lies in the trie: at node, or in the edge from node to
// kid, or beside that edge after the first shared bytes of kid's key.
type place struct {
	node   *node
	kid    *node // nil: the path is node's, or nothing below node begins like it
	shared int   // len(node.key) < shared < len(kid.key)
}

// find returns the place of a path, or that a request there, in mode m,
// conflicts with one that is present; the place is then only the node above
// which nothing conflicts. Mode 0 conflicts with nothing.
func (t *trie) find(key string, m Mode) (at place, conflict bool) {
	above := conflicting[m.Intent()&7]
	n := &t.root
	for len(n.key) < len(key) {
		if n.marks&above != 0 {
			return place{node: n}, true
		}
		kid, whole := n.kid(key)
		if whole {
			n = kid
			continue
		}
		if kid == nil {
			return place{node: n}, false
		}
		if covers(key, kid.key) { // in the edge: kid and all below it are below
			with := conflicting[m&7]
			return place{n, kid, len(key)}, kid.marks.intents()&with != 0 || kid.conflictsBelow(with)
		}
		return place{n, kid, sharedPrefix(kid.key, key, len(n.key))}, false
	}
	at.node = n
	return at, n.marks&conflicting[m&7] != 0 || n.conflictsBelow(conflicting[m&7])
}

func (n *node) conflictsBelow(with modeSet) bool {
	return n.below[0] > 0 && with&(1<<IS) != 0 || n.below[1] > 0 && with&(1<<IX) != 0
}

// kid returns the child whose first segment below n is that of the path, which
// lies below n, and whether the path is that child's or lies below it.
func (n *node) kid(key string) (kid *node, whole bool) {
	at := len(n.key)
	if n.byName != nil {
		kid = n.byName[firstSegment(key, at)]
		return kid, kid != nil && coversFrom(kid.key, key, at)
	}
	for _, kid := range n.kids {
		if kid.key[at+1] != key[at+1] { // both go on with a slash and at least one byte
			continue
		}
		if coversFrom(kid.key, key, at) {
			return kid, true
		}
		if sameSegment(kid.key, key, at) {
			return kid, false
		}
	}
	return nil, false
}

// coversFrom is covers for two keys whose first bytes are known to be the same.
func coversFrom(a, b string, from int) bool {
	return len(a) <= len(b) && (len(a) == len(b) || b[len(a)] == '/') && a[from:] == b[from:len(a)]
}

// firstSegment returns the segment that follows the slash at from, with it.
func firstSegment(key string, from int) string {
	if end := strings.IndexByte(key[from+1:], '/'); end >= 0 {
		return key[from : from+1+end]
	}
	return key[from:]
}

func sameSegment(a, b string, from int) bool {
	s := firstSegment(a, from)
	rest := b[from:]
	return len(rest) >= len(s) && rest[:len(s)] == s && (len(rest) == len(s) || rest[len(s)] == '/')
}

// sharedPrefix returns the length of the longest common prefix that ends where
// a segment of both ends. The first from bytes are the same and end so.
func sharedPrefix(a, b string, from int) int {
	for from < len(a) && from < len(b) && sameSegment(a, b, from) {
		from += len(firstSegment(a, from))
	}
	return from
}

// insert adds e at the place of its path, as find returned it and nothing has
// changed since.
func (t *trie) insert(at place, key string, e *entry, m Mode) {
	n := at.node
	switch {
	case at.kid == nil && len(n.key) == len(key):
	case at.kid == nil:
		n = t.leaf(n, key)
	case at.shared == len(key):
		n = t.split(n, at.kid, at.shared)
	default:
		n = t.leaf(t.split(n, at.kid, at.shared), key)
	}
	e.node, e.prev, e.next = n, nil, n.first
	if n.first != nil {
		n.first.prev = e
	}
	n.first = e
	n.mark(e, m)
}

// mark counts an entry of n in mode m.
func (n *node) mark(e *entry, m Mode) {
	e.mode = m
	n.counts[m&7]++
	n.marks |= m.bit()
	c := class(m)
	for up := n.parent; up != nil; up = up.parent {
		up.below[c&1]++
	}
}

func (n *node) unmark(e *entry) {
	m := e.mode
	if n.counts[m&7]--; n.counts[m&7] == 0 {
		n.marks &^= m.bit()
	}
	c := class(m)
	for up := n.parent; up != nil; up = up.parent {
		up.below[c&1]--
	}
}

// remove takes e out, and every node that is not needed without it.
func (t *trie) remove(e *entry) {
	n := e.node
	n.unmark(e)
	if e.prev != nil {
		e.prev.next = e.next
	} else {
		n.first = e.next
	}
	if e.next != nil {
		e.next.prev = e.prev
	}
	e.node, e.prev, e.next = nil, nil, nil
	if n.first != nil || n == &t.root {
		return
	}
	switch len(n.kids) + len(n.byName) {
	case 0:
		up := n.parent
		up.drop(n)
		t.free(n)
		// The parent may have been no more than the fork of two paths.
		if up != &t.root && up.first == nil && len(up.kids) == 1 {
			t.merge(up)
		}
	case 1:
		t.merge(n)
	}
}

// merge puts the only child of n in its place.
func (t *trie) merge(n *node) {
	kid := n.kids[0] // a node with one child has no map
	kid.parent = n.parent
	n.parent.replace(n, kid)
	t.free(n)
}

// leaf adds a node below n.
func (t *trie) leaf(n *node, key string) *node {
	leaf := t.node(key, n)
	n.add(leaf)
	return leaf
}

// split adds a node in the edge from n to kid.
func (t *trie) split(n, kid *node, length int) *node {
	middle := t.node(kid.key[:length], n)
	n.replace(kid, middle)
	kid.parent = middle
	middle.kids = append(middle.kids, kid)
	middle.below = kid.below
	for _, m := range Modes {
		middle.below[class(m)] += int(kid.counts[m])
	}
	return middle
}

func (n *node) add(kid *node) {
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

func (n *node) drop(kid *node) {
	if n.byName == nil {
		last := len(n.kids) - 1
		for i, k := range n.kids {
			if k == kid {
				n.kids[i], n.kids[last] = n.kids[last], nil
				n.kids = n.kids[:last]
				return
			}
		}
	}
	delete(n.byName, firstSegment(kid.key, len(n.key)))
	if len(n.byName) <= fewKids {
		for _, k := range n.byName {
			n.kids = append(n.kids, k)
		}
		n.byName = nil // a Go map does not shrink
	}
}

// replace puts a node in the place of a child with the same first segment.
func (n *node) replace(old, by *node) {
	if n.byName != nil {
		// The key goes with its value: it must not keep the text of a path
		// alive that nobody uses any more.
		segment := firstSegment(by.key, len(n.key))
		delete(n.byName, segment)
		n.byName[segment] = by
		return
	}
	for i, k := range n.kids {
		if k == old {
			n.kids[i] = by
			return
		}
	}
}

func (t *trie) node(key string, parent *node) *node {
	t.nodes++
	n := t.spare
	if n == nil {
		return &node{key: key, parent: parent}
	}
	t.spare, t.spares = n.parent, t.spares-1
	n.key, n.parent = key, parent
	return n
}

// free takes back a node without entries, whose children have gone elsewhere.
func (t *trie) free(n *node) {
	t.nodes--
	clear(n.kids)
	*n = node{kids: n.kids[:0]}
	if t.spares < maxSpare {
		n.parent, t.spare, t.spares = t.spare, n, t.spares+1
	}
}

// visit calls f for the entries that conflict with a request for a path in mode
// m, until f returns false. It reports whether it has called f for all. It
// begins at n, the root or a node on the way above which nothing conflicts.
func (n *node) visit(key string, m Mode, f func(*entry) bool) bool {
	above := conflicting[m.Intent()&7]
	for len(n.key) < len(key) {
		if !n.each(above, f) {
			return false
		}
		kid, whole := n.kid(key)
		switch {
		case whole:
			n = kid
		case kid == nil:
			return true
		case covers(key, kid.key): // in the edge
			return kid.eachBelow(conflicting[m&7], f)
		default:
			return true
		}
	}
	if !n.each(conflicting[m&7], f) {
		return false
	}
	return n.kidsBelow(conflicting[m&7], f)
}

// each calls f for the entries of n whose mode is one of these.
func (n *node) each(modes modeSet, f func(*entry) bool) bool {
	if n.marks&modes == 0 {
		return true
	}
	for e := n.first; e != nil; e = e.next {
		if e.mode.bit()&modes != 0 && !f(e) {
			return false
		}
	}
	return true
}

// eachBelow calls f for the entries of n and below it whose intention is one of
// these.
func (n *node) eachBelow(intents modeSet, f func(*entry) bool) bool {
	for e := n.first; e != nil; e = e.next {
		if e.mode.Intent().bit()&intents != 0 && !f(e) {
			return false
		}
	}
	return n.kidsBelow(intents, f)
}

func (n *node) kidsBelow(intents modeSet, f func(*entry) bool) bool {
	if !n.conflictsBelow(intents) {
		return true
	}
	for _, kid := range n.kids {
		if !kid.eachBelow(intents, f) {
			return false
		}
	}
	for _, kid := range n.byName {
		if !kid.eachBelow(intents, f) {
			return false
		}
	}
	return true
}

// walk calls f for every entry above, at and below a path.
func (t *trie) walk(key string, f func(Scope, *entry)) {
	n := &t.root
	for len(n.key) < len(key) {
		n.all(Above, f)
		kid, whole := n.kid(key)
		switch {
		case whole:
			n = kid
		case kid == nil:
			return
		case covers(key, kid.key):
			kid.allBelow(f)
			return
		default:
			return
		}
	}
	n.all(At, f)
	for _, kid := range n.kids {
		kid.allBelow(f)
	}
	for _, kid := range n.byName {
		kid.allBelow(f)
	}
}

func (n *node) all(at Scope, f func(Scope, *entry)) {
	for e := n.first; e != nil; e = e.next {
		f(at, e)
	}
}

func (n *node) allBelow(f func(Scope, *entry)) {
	n.all(Below, f)
	for _, kid := range n.kids {
		kid.allBelow(f)
	}
	for _, kid := range n.byName {
		kid.allBelow(f)
	}
}
