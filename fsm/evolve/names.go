package evolve

import (
	"cmp"
	"maps"
	"slices"
)

const (
	oldVersion = 0
	newVersion = 1
)

var versionNames = [2]string{"old", "new"}

// names are the states, events, actors or guards of both tables. Each has a key: the new
// name, or the old one of what only the old table has.
type names struct {
	what string
	keys []string             // those of the old table in order, then those of the new one alone
	key  [2]map[string]string // by name
	name [2]map[string]string // by key
}

// join finds the keys of one kind of names.
func join(what string, olds, news []string, renamed map[string]string) (*names, error) {
	taken := make(map[string]string) // old names by new ones
	for _, from := range slices.Sorted(maps.Keys(renamed)) {
		to := renamed[from]
		other, twice := taken[to]
		switch {
		case !slices.Contains(olds, from):
			return nil, mappingError("the old table has no %s %q to rename", what, from)
		case !slices.Contains(news, to):
			return nil, mappingError("the new table has no %s %q, the new name of %q", what, to, from)
		case twice:
			return nil, mappingError("%q and %q have one new name: %s %q", other, from, what, to)
		}
		taken[to] = from
	}
	n := &names{what: what, key: [2]map[string]string{{}, {}}, name: [2]map[string]string{{}, {}}}
	for _, name := range olds {
		key, moved := renamed[name]
		_, lost := taken[name]
		switch {
		case lost && !moved:
			key = "\x00" + name // something else has the name now
		case !moved:
			key = name
		}
		n.put(oldVersion, key, name)
	}
	for _, name := range news {
		n.put(newVersion, name, name)
	}
	return n, nil
}

func (n *names) put(v int, key, name string) {
	if !n.in(oldVersion, key) && !n.in(newVersion, key) {
		n.keys = append(n.keys, key)
	}
	n.key[v][name], n.name[v][key] = key, name
}

// in reports whether a table has a thing.
func (n *names) in(v int, key string) bool {
	_, ok := n.name[v][key]
	return ok
}

// of returns the name of a thing in a table, or that in the other one. What neither table
// declares is its own name.
func (n *names) of(v int, key string) string {
	return cmp.Or(n.name[v][key], n.name[1-v][key], key)
}

// list returns the names of things, sorted, so that their order does not depend on keys.
func (n *names) list(v int, keys []string) []string {
	return unique(column(keys, func(key string) string { return n.of(v, key) }))
}

// called returns the keys of what has a name in either table.
func (n *names) called(name string) (keys []string) {
	for _, key := range n.keys {
		if n.of(oldVersion, key) == name || n.of(newVersion, key) == name {
			keys = append(keys, key)
		}
	}
	return keys
}

// renamed returns the things with two names.
func (n *names) renamed() (list []Renaming) {
	for _, key := range n.keys {
		if old, new := n.of(oldVersion, key), n.of(newVersion, key); old != new {
			list = append(list, Renaming{Subject: n.what, Old: old, New: new})
		}
	}
	return list
}

func column[T any](list []T, name func(T) string) (names []string) {
	for _, x := range list {
		names = append(names, name(x))
	}
	return names
}

// unique returns names in order, each once.
func unique(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}
