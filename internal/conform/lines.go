package conform

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/fsm"
)

// lines returns the lines of a table, in order of declaration.
func lines(t *fsm.Table) (list []string) {
	for _, i := range t.Entries() {
		list = append(list, "initial "+t.States[i].Name)
	}
	for _, s := range t.States {
		list = append(list, fmt.Sprintf("state %s is %s", s.Name, s.Kind))
		if s.Target >= 0 {
			list = append(list, fmt.Sprintf("state %s leads to %s", s.Name, t.States[s.Target].Name))
		}
	}
	for _, line := range rowLines(t) {
		list = append(list, line)
	}
	return list
}

// rowLines yields a line for every edge and actor of a table.
func rowLines(t *fsm.Table) iter.Seq2[fsm.Edge, string] {
	return func(yield func(fsm.Edge, string) bool) {
		for e := range t.Edges() {
			row := &t.Rows[e.Row]
			var actors []string
			for _, a := range row.Actors {
				actors = append(actors, string(t.Actors[a]))
			}
			if len(actors) == 0 {
				actors = []string{"any actor"}
			}
			for _, actor := range actors {
				line := fmt.Sprintf("%s --%s by %s--> %s%s",
					t.States[e.From].Name, t.Events[e.Event], actor, t.States[e.To].Name, suffix(t, row))
				if !yield(e, line) {
					return
				}
			}
		}
	}
}

// suffix returns the marks and the guard of a row.
func suffix(t *fsm.Table, row *fsm.TableRow) (s string) {
	var marks, origins []string
	mark := func(text string, set bool) {
		if set {
			marks = append(marks, text)
		}
	}
	for _, o := range slices.Sorted(slices.Values(row.Origin)) {
		origins = append(origins, t.States[o].Name)
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
