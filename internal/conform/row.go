package conform

import (
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/fsm"
)

// Row is one arrow of a document or of a machine, with one source, one actor
// and one target. Rows are compared as values. Its notation is
//
//	FROM --EVENT by ACTOR--> TO [MARKS] if GUARD
//
// with "by anyone" where nobody in particular is named, and the marks return,
// ignored, forced, supersedes and "origin A, B", separated by semicolons.
type Row struct {
	From, Event, Actor, To string
	Guard                  string
	Origin                 string // origins that the row asks for, joined by ", "
	Return                 bool   // To is one of the origins that an object may have in From
	Ignored                bool
	Forced                 bool
	Supersedes             bool
}

const anyone = "anyone"

// String returns the notation.
func (r Row) String() string {
	actor := r.Actor
	if actor == "" {
		actor = anyone
	}
	s := fmt.Sprintf("%s --%s by %s--> %s", r.From, r.Event, actor, r.To)
	if marks := r.marks(); len(marks) > 0 {
		s += " [" + strings.Join(marks, "; ") + "]"
	}
	if r.Guard != "" {
		s += " if " + r.Guard
	}
	return s
}

func (r Row) marks() (marks []string) {
	for _, m := range []struct {
		word string
		set  bool
	}{
		{"return", r.Return},
		{"ignored", r.Ignored},
		{"forced", r.Forced},
		{"supersedes", r.Supersedes},
		{"origin " + r.Origin, r.Origin != ""},
	} {
		if m.set {
			marks = append(marks, m.word)
		}
	}
	return marks
}

// ParseRow reads the notation of [Row].
func ParseRow(s string) (Row, error) {
	var r Row
	head, tail, arrow := strings.Cut(s, "--> ")
	from, on, dash := strings.Cut(head, " --")
	by := strings.LastIndex(on, " by ")
	if !arrow || !dash || by < 0 {
		return r, fmt.Errorf("conform: row %q is not of the form FROM --EVENT by ACTOR--> TO", s)
	}
	r.From, r.Event, r.Actor = strings.TrimSpace(from), on[:by], on[by+len(" by "):]
	if r.Actor == anyone {
		r.Actor = ""
	}
	tail, r.Guard, _ = strings.Cut(tail, " if ")
	to, marks, marked := strings.Cut(strings.TrimSpace(tail), " [")
	r.To = to
	if !marked {
		return r, r.complete(s)
	}
	marks, closed := strings.CutSuffix(marks, "]")
	if !closed {
		return r, fmt.Errorf("conform: row %q: the marks do not end with ]", s)
	}
	for m := range strings.SplitSeq(marks, "; ") {
		switch origin, asks := strings.CutPrefix(m, "origin "); {
		case asks:
			r.Origin = origin
		case m == "return":
			r.Return = true
		case m == "ignored":
			r.Ignored = true
		case m == "forced":
			r.Forced = true
		case m == "supersedes":
			r.Supersedes = true
		default:
			return r, fmt.Errorf("conform: row %q: unknown mark %q", s, m)
		}
	}
	return r, r.complete(s)
}

func (r Row) complete(s string) error {
	if r.From == "" || r.Event == "" || r.To == "" {
		return fmt.Errorf("conform: row %q lacks a source, an event or a target", s)
	}
	return nil
}

// Rows parses rows in a test. It panics if one is malformed.
func Rows(rows ...string) []Row {
	parsed := make([]Row, len(rows))
	for i, s := range rows {
		r, err := ParseRow(s)
		if err != nil {
			panic(err.Error())
		}
		parsed[i] = r
	}
	return parsed
}

// arrow is a row of a machine with the index that it has there.
type arrow struct {
	Row
	index int
}

// arrows expands the rows of a table per source, target and actor.
func arrows(t *fsm.Table) (list []arrow) {
	for e := range t.Edges() {
		row := &t.Rows[e.Row]
		r := Row{
			From: t.States[e.From].Name, Event: t.Events[e.Event], To: t.States[e.To].Name,
			Guard: row.Guard, Return: row.Then == fsm.ThenReturn, Ignored: row.Then == fsm.ThenIgnore,
			Forced: row.Forced, Supersedes: row.Supersede, Origin: join(row.Origin, func(s int) string { return t.States[s].Name }),
		}
		if len(row.Actors) == 0 {
			list = append(list, arrow{r, e.Row})
		}
		for _, a := range row.Actors {
			r.Actor = string(t.Actors[a])
			list = append(list, arrow{r, e.Row})
		}
	}
	return list
}

// join names the members of a list in the order of their indexes.
func join(list []int, name func(int) string) string {
	names := make([]string, 0, len(list))
	for _, i := range slices.Sorted(slices.Values(list)) {
		names = append(names, name(i))
	}
	return strings.Join(names, ", ")
}
