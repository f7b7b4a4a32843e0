package evolve

import (
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/internal/visible"
)

// String returns the verdict with its conditions, the hazards with their witnesses,
// the notes, and the differences. Programs must not depend on the text.
func (e *Report) String() string {
	lines := []string{e.verdict()}
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	for _, r := range e.Mapping {
		add("  map %s %s -> %s", r.Subject, r.Old, r.New)
	}
	if len(e.Drain) > 0 {
		add("  drain: %s", strings.Join(e.Drain, ", "))
	}
	for _, w := range e.Hold {
		add("  hold: %s in %s", w.Event, w.State)
	}
	for _, h := range e.Hazards {
		level := h.Level.String()
		if h.Level == Compatible {
			level = "note"
		}
		add("%s: %s: %s", level, h.ID, h.Message)
		if h.Level != Unsafe && h.Level != NeedsDrain {
			continue
		}
		for i, a := range h.Witness {
			add("    %d. %s", i+1, a)
		}
	}
	if len(e.Differences) > 0 {
		add("differences:")
	}
	for _, d := range e.Differences {
		add("  %s", d)
	}
	for i := range lines {
		lines[i] = visible.Text(lines[i])
	}
	return strings.Join(lines, "\n")
}

func (e *Report) verdict() string {
	name := e.Old
	if e.New != e.Old {
		name += " -> " + e.New
	}
	switch {
	case e.Level == Unsafe:
		n := 0
		for _, h := range e.Hazards {
			if h.Level == Unsafe {
				n++
			}
		}
		return fmt.Sprintf("%s: unsafe side by side, for %d reason%s", name, n, [...]string{"", "s"}[min(n-1, 1)])
	case e.Level == NeedsMapping && len(e.Drain) > 0:
		return name + ": compatible with a mapping of names, once drained"
	case e.Level == NeedsMapping:
		return name + ": compatible with a mapping of names"
	case e.Level == NeedsDrain:
		return name + ": compatible once drained"
	case len(e.Differences) == 0:
		return name + ": compatible, nothing differs"
	}
	return name + ": compatible"
}

// String returns the difference as one line.
func (d Difference) String() string {
	text := d.Subject + " " + d.Change + ": "
	switch {
	case d.Change == "reordered":
		text += d.From + " -" + d.Event + "->"
	case d.Old == "":
		text += d.New
	case d.New == "" || d.New == d.Old:
		text += d.Old
	default:
		text += d.Old + "  =>  " + d.New
	}
	if d.Subject != "row" && len(d.Fields) > 0 {
		text += " (" + strings.Join(d.Fields, ", ") + ")"
	}
	return text
}

// String returns the act as one line.
func (a Act) String() string {
	where := func(state, origin string) string {
		switch {
		case state == "":
			return "nothing"
		case origin == state:
			return state
		}
		return state + " (from " + origin + ")"
	}
	switch {
	case a.Node == "":
		return "an object is in " + where(a.To, a.ToOrigin)
	case a.Event == "":
		return a.Node + " node adds the object in " + where(a.To, a.ToOrigin)
	}
	text := fmt.Sprintf("%s node: %s -%s", a.Node, where(a.State, a.Origin), a.Event)
	if a.Actor != "" {
		text += " by " + a.Actor
	}
	if a.Force {
		text += ", by force"
	}
	if len(a.Agree) > 0 {
		text += ", if " + strings.Join(a.Agree, " and ") + " agrees"
	}
	if len(a.Refuse) > 0 {
		text += ", if " + strings.Join(a.Refuse, " and ") + " does not"
	}
	return fmt.Sprintf("%s-> %s, row %d", text, where(a.To, a.ToOrigin), a.Row)
}
