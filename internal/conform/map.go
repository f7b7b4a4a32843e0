package conform

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/fsm"
)

// mapping is a map file.
type mapping struct {
	names     map[string]string // "event Create" to the name in the machine
	missing   []string          // lines of the document that the machine lacks
	added     []string          // lines of the machine that the document lacks
	additions []string          // added lines that go beyond the document
}

// rename gives the states, events and actors of a document the names of the machine. It
// returns the entries that rename nothing.
func (m *mapping) rename(document *fsm.Table) (unused []string) {
	left := maps.Clone(m.names)
	name := func(of, name string) string {
		entry := of + " " + name
		delete(left, entry)
		return cmp.Or(m.names[entry], name)
	}
	for i, s := range document.States {
		document.States[i].Name = name("state", s.Name)
	}
	for i, e := range document.Events {
		document.Events[i] = name("event", e)
	}
	for i, a := range document.Actors {
		document.Actors[i] = fsm.Actor(name("actor", string(a)))
	}
	return slices.Sorted(maps.Keys(left))
}

// parseMap reads the text of a map file.
func parseMap(text string) (*mapping, error) {
	m := &mapping{names: map[string]string{}}
	reason, entries := "", false
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimRight(line, " \t\r\n")
		entry := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(entry, "#"):
		case entry == "":
			if entries {
				reason, entries = "", false
			}
		case entry == line:
			reason += line
		case reason == "":
			return nil, fmt.Errorf("line %d: entry %q has no reason", number, entry)
		default:
			entries = true
			if err := m.add(entry, strings.HasPrefix(reason, "addition:")); err != nil {
				return nil, fmt.Errorf("line %d: %w", number, err)
			}
		}
	}
	return m, nil
}

// add reads one entry.
func (m *mapping) add(entry string, addition bool) error {
	if line, ok := strings.CutPrefix(entry, "- "); ok {
		m.missing = append(m.missing, line)
		return nil
	}
	if line, ok := strings.CutPrefix(entry, "+ "); ok {
		m.added = append(m.added, line)
		if addition {
			m.additions = append(m.additions, line)
		}
		return nil
	}
	of, _, _ := strings.Cut(entry, " ")
	from, to, ok := strings.Cut(entry, " = ")
	if !ok || of != "actor" && of != "event" && of != "state" {
		return fmt.Errorf("entry %q is neither a line with - or + nor a new name", entry)
	}
	if _, twice := m.names[from]; twice {
		return fmt.Errorf("entry %q renames a name again", entry)
	}
	m.names[from] = to
	return nil
}
