package conform

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/fsm"
)

// renamer returns the name to print for a name of a state, an event or an actor.
type renamer func(of, name string) string

// lines returns the lines of a table, in order of declaration.
func lines(t *fsm.Table, rename renamer) (list []string) {
	state := func(i int) string { return rename("state", t.States[i].Name) }
	for _, i := range t.Entries() {
		list = append(list, "initial "+state(i))
	}
	for i, s := range t.States {
		list = append(list, fmt.Sprintf("state %s is %s", state(i), s.Kind))
		if s.Target >= 0 {
			list = append(list, fmt.Sprintf("state %s leads to %s", state(i), state(s.Target)))
		}
	}
	for _, line := range rowLines(t, rename) {
		list = append(list, line)
	}
	return list
}

// rowLines yields a line for every edge and actor of a table.
func rowLines(t *fsm.Table, rename renamer) iter.Seq2[fsm.Edge, string] {
	return func(yield func(fsm.Edge, string) bool) {
		for e := range t.Edges() {
			row := &t.Rows[e.Row]
			var actors []string
			for _, a := range row.Actors {
				actors = append(actors, rename("actor", string(t.Actors[a])))
			}
			if len(actors) == 0 {
				actors = []string{"any actor"}
			}
			for _, actor := range actors {
				line := fmt.Sprintf("%s --%s by %s--> %s%s", rename("state", t.States[e.From].Name),
					rename("event", t.Events[e.Event]), actor, rename("state", t.States[e.To].Name), suffix(t, row, rename))
				if !yield(e, line) {
					return
				}
			}
		}
	}
}

// suffix returns the marks and the guard of a row.
func suffix(t *fsm.Table, row *fsm.TableRow, rename renamer) (s string) {
	var marks, origins []string
	mark := func(text string, set bool) {
		if set {
			marks = append(marks, text)
		}
	}
	for _, o := range slices.Sorted(slices.Values(row.Origin)) {
		origins = append(origins, rename("state", t.States[o].Name))
	}
	mark("return", row.Then == fsm.ThenReturn)
	mark("ignored", row.Then == fsm.ThenIgnore)
	mark("forced", row.Forced)
	mark("supersedes", row.Supersede)
	mark("origin "+strings.Join(origins, ", "), len(origins) > 0)
	if len(marks) > 0 {
		s = " [" + strings.Join(marks, "; ") + "]"
	}
	if row.Guard != "" {
		s += " if " + row.Guard
	}
	return s
}
