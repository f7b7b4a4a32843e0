// Package locks measures the lock tree against the plain mutexes that it stands
// on, and against the tree that one writes first.
package locks

import (
	"strings"
	"sync"
)

// prefixMap is the lock tree that one writes first: a map from every prefix of a
// held path to how often it is held, under one mutex. It knows X with IX above,
// no waiting, no owners, no tokens.
type prefixMap struct {
	mu    sync.Mutex
	nodes map[string]prefixNode
}

type prefixNode struct {
	exclusive  bool
	intentions int
}

func newPrefixMap() *prefixMap { return &prefixMap{nodes: map[string]prefixNode{}} }

func (m *prefixMap) tryLock(path string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	free := true
	prefixes(path, func(prefix string, leaf bool) {
		n := m.nodes[prefix]
		free = free && !n.exclusive && (!leaf || n.intentions == 0)
	})
	if free {
		prefixes(path, func(prefix string, leaf bool) {
			n := m.nodes[prefix]
			if leaf {
				n.exclusive = true
			} else {
				n.intentions++
			}
			m.nodes[prefix] = n
		})
	}
	return free
}

func (m *prefixMap) unlock(path string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	prefixes(path, func(prefix string, leaf bool) {
		n := m.nodes[prefix]
		if leaf {
			n.exclusive = false
		} else {
			n.intentions--
		}
		if n == (prefixNode{}) {
			delete(m.nodes, prefix)
		} else {
			m.nodes[prefix] = n
		}
	})
}

// prefixes calls f for the root, which is "", and every prefix down to the path.
func prefixes(path string, f func(prefix string, leaf bool)) {
	for end := 0; end < len(path); {
		f(path[:end], false)
		next := strings.IndexByte(path[end+1:], '/')
		if next < 0 {
			break
		}
		end += 1 + next
	}
	f(path, true)
}
