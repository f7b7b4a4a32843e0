package lock

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"unsafe"
)

// long makes the tests try harder and take longer.
var long = os.Getenv("INTERLOCK_LONG") != ""

// compatibleModes is the matrix as the package documentation prints it.
var compatibleModes = func() map[[2]string]bool {
	const printed = `
		      IS  IX  S   SIX X
		IS    yes yes yes yes -
		IX    yes yes -   -   -
		S     yes -   yes -   -
		SIX   yes -   -   -   -
		X     -   -   -   -   -`
	lines := strings.Split(strings.TrimSpace(printed), "\n")
	columns := strings.Fields(lines[0])
	m := map[[2]string]bool{}
	for _, line := range lines[1:] {
		cells := strings.Fields(line)
		for i, cell := range cells[1:] {
			m[[2]string{cells[0], columns[i]}] = cell == "yes"
		}
	}
	return m
}()

// marked returns the mode in which a request marks each node: this is the rule
// itself. The name of a node is a list of segments, so that a prefix of a text is
// not an ancestor.
func marked(r Request) map[string]string {
	var segments []string
	if text := r.Path.String(); text != "/" {
		segments = strings.Split(text, "/")[1:]
	}
	intention := map[string]string{"IS": "IS", "S": "IS", "IX": "IX", "SIX": "IX", "X": "IX"}[r.Mode.String()]
	marks := map[string]string{}
	for i := range segments {
		marks[fmt.Sprintf("%q", segments[:i])] = intention
	}
	marks[fmt.Sprintf("%q", segments)] = r.Mode.String()
	return marks
}

var knownMarks sync.Map // Request -> map[string]string

// marks is marked with a cache.
func marks(r Request) map[string]string {
	if m, ok := knownMarks.Load(r); ok {
		return m.(map[string]string)
	}
	m := marked(r)
	knownMarks.Store(r, m)
	return m
}

// conflict is the oracle of the tests: two requests conflict if some node is marked
// by both in modes that are not compatible.
func conflict(a, b map[string]string) bool {
	for node, m := range a {
		if other, both := b[node]; both && !compatibleModes[[2]string{m, other}] {
			return true
		}
	}
	return false
}

// check compares everything that a trie stores with its entries and returns the
// first fault, or "".
func check(t *trie) string {
	if t.root.key != "" || t.root.parent != nil {
		return "the root is not the root"
	}
	nodes := -1 // the root does not count
	fault, _ := checkNode(&t.root, &nodes)
	if fault != "" {
		return fault
	}
	if nodes != t.nodes {
		return fmt.Sprintf("%d nodes, %d are counted", nodes, t.nodes)
	}
	for _, n := range t.spare {
		if n.key != "" || n.parent != nil || n.lists != (perMode[list]{}) || n.blocked != 0 || len(n.kids) > 0 || n.byName != nil || n.marks != 0 || n.below != [2]int{} {
			return fmt.Sprintf("a spare node is not empty: %+v", n)
		}
		for _, kid := range n.kids[:cap(n.kids)] {
			if kid != nil {
				return "a spare node keeps a child alive"
			}
		}
	}
	if len(t.spare) > maxSpare {
		return fmt.Sprintf("%d spare nodes", len(t.spare))
	}
	return ""
}

// checkNode returns the first fault at n and below, and the number of entries of
// each class.
func checkNode(n *node, nodes *int) (fault string, all [2]int) {
	*nodes++
	var marks modeSet
	waits := 0
	for _, m := range Modes {
		l := &n.lists[m]
		var prev, blocked *entry
		count := 0
		for e := l.first; e != nil; prev, e = e, e.next {
			if e.node != n || e.prev != prev || e.Mode != m || prev != nil && prev.claim.arrival >= e.claim.arrival {
				return fmt.Sprintf("the entries of %q are not linked in order", n.key), all
			}
			count++
			marks |= e.Mode.bit()
			all[class(e.Mode)]++
			if e.blocked {
				waits++
			}
			if blocked == nil && e.blocked {
				blocked = e
			}
			if blocked != nil && !e.blocked {
				return fmt.Sprintf("an entry of %q passes a blocked one", n.key), all
			}
		}
		if l.last != prev || l.firstBlocked != blocked || l.count != count {
			return fmt.Sprintf("the list %s of %q has a wrong end, count or first blocked entry", m, n.key), all
		}
	}
	if marks != n.marks {
		return fmt.Sprintf("%q is marked %b, has %b", n.key, n.marks, marks), all
	}
	var below [2]int
	one := func(kid *node) string {
		if kid.parent != n || len(kid.key) < len(n.key)+2 || kid.key[:len(n.key)] != n.key || kid.key[len(n.key)] != '/' {
			return fmt.Sprintf("%q is not below %q", kid.key, n.key)
		}
		if found, _ := n.kid(kid.key); found != kid {
			return fmt.Sprintf("%q is not found from %q", kid.key, n.key)
		}
		fault, some := checkNode(kid, nodes)
		below[0] += some[0]
		below[1] += some[1]
		waits += kid.blocked
		return fault
	}
	for _, kid := range n.kids {
		if fault := one(kid); fault != "" {
			return fault, all
		}
	}
	for name, kid := range n.byName {
		if name != firstSegment(kid.key, len(n.key)) {
			return fmt.Sprintf("%q is below %q as %q", kid.key, n.key, name), all
		}
		if unsafe.StringData(name) != unsafe.StringData(kid.key[len(n.key):]) {
			return fmt.Sprintf("the name of %q is part of another text, and keeps it alive", kid.key), all
		}
		if fault := one(kid); fault != "" {
			return fault, all
		}
	}
	switch kids := len(n.kids) + len(n.byName); {
	case waits != n.blocked:
		return fmt.Sprintf("%d wait at and below %q, %d are counted", waits, n.key, n.blocked), all
	case below != n.below:
		return fmt.Sprintf("below %q are %v, %v are counted", n.key, below, n.below), all
	case n.byName == nil && len(n.kids) > mostKids, n.byName != nil && (len(n.byName) <= fewKids || len(n.kids) > 0):
		return fmt.Sprintf("%q has %d children in a list, %d in a map", n.key, len(n.kids), len(n.byName)), all
	case n.parent != nil && n.marks == 0 && kids < 2:
		return fmt.Sprintf("%q is not needed", n.key), all
	}
	all[0] += below[0]
	all[1] += below[1]
	return "", all
}

// checkTree checks the trie and the counters of the tree.
func checkTree(t *Tree) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if fault := check(&t.trie); fault != "" {
		return fault
	}
	present := map[*claim]int{}
	all := slices.Collect(t.trie.visit("", scoped(At|Below)))
	heldNow, waitingNow, named := 0, 0, 0
	for _, e := range all {
		if present[e.claim]++; present[e.claim] > 1 {
			continue
		}
		switch e.claim.state {
		case held:
			heldNow++
		case waiting:
			waitingNow++
		default:
			return "a claim that is gone is in the trie"
		}
		if id := e.claim.options.ID; id != "" {
			if named++; t.ids[id] != e.claim {
				return fmt.Sprintf("id %q is not that of its claim", id)
			}
		}
	}
	if t.ids != nil && named == 0 {
		return "a map of no ids is kept"
	}
	if heldNow != t.held || waitingNow != t.waiting || named != len(t.ids) {
		return fmt.Sprintf("held %d, waiting %d, named %d; counted are %d, %d, %d", heldNow, waitingNow, named, t.held, t.waiting, len(t.ids))
	}
	listed := 0
	for c := t.all.newer; c != nil && c != &t.all; c = c.newer {
		if listed++; present[c] == 0 || c.older.newer != c || c.older.arrival >= c.arrival {
			return "the claims are not listed in order"
		}
	}
	if listed != len(present) {
		return fmt.Sprintf("%d claims are listed, %d are present", listed, len(present))
	}
	for c, n := range present {
		if n != len(c.entries) {
			return fmt.Sprintf("%d of %d entries of a claim are present", n, len(c.entries))
		}
		blocked := 0
		for i := range c.entries {
			own := &c.entries[i]
			is := c.state == waiting && slices.ContainsFunc(all, func(e *entry) bool {
				return e.claim != c && e.claim.arrival < c.arrival && own.Conflicts(e.Request)
			})
			if is {
				blocked++
			}
			if is != own.blocked {
				return fmt.Sprintf("arrival %d, entry %d: blocked is %t", c.arrival, i, own.blocked)
			}
		}
		if (c.state == waiting) != (blocked > 0) || blocked != c.blocked {
			return fmt.Sprintf("arrival %d, state %d, counts %d blocked entries of %d", c.arrival, c.state, c.blocked, blocked)
		}
	}
	if len(t.spare) > maxSpare {
		return fmt.Sprintf("%d spare claims", len(t.spare))
	}
	return ""
}
