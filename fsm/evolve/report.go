package evolve

import (
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/internal/visible"
)

// String returns the verdict with its conditions, the hazards with their witnesses,
// the notes, and the differences. Programs must not depend on the text.
func (r *Report) String() string {
	lines := []string{r.verdict()}
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	for _, m := range r.Mapping {
		add("  map %s %s -> %s", m.Subject, m.Old, m.New)
	}
	if len(r.Drain) > 0 {
		add("  drain: %s", strings.Join(r.Drain, ", "))
	}
	for _, w := range r.Hold {
		add("  hold: %s in %s", w.Event, w.State)
	}
	for _, h := range r.Hazards {
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
	if len(r.Differences) > 0 {
		add("differences:")
	}
	for _, d := range r.Differences {
		add("  %s", d)
	}
	for i := range lines {
		lines[i] = visible.Text(lines[i])
	}
	return strings.Join(lines, "\n")
}

func (r *Report) verdict() string {
	name := r.Old
	if r.New != r.Old {
		name += " -> " + r.New
	}
	level := [...]string{"compatible", "compatible once drained", "compatible with a mapping of names", "unsafe side by side"}[r.Level]
	if len(r.Differences) == 0 {
		level += ", nothing differs"
	}
	return name + ": " + level
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
	return visible.Text(text)
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
	var text string
	switch {
	case a.Node == "":
		text = "an object is in " + where(a.To, a.ToOrigin)
	case a.Event == "":
		text = a.Node + " node adds the object in " + where(a.To, a.ToOrigin)
	default:
		text = fmt.Sprintf("%s node: %s -%s%s-> %s, row %d", a.Node, where(a.State, a.Origin), a.Event, a.conditions(), where(a.To, a.ToOrigin), a.Row)
	}
	return visible.Text(text)
}

func (a Act) conditions() (text string) {
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
	return text
}

// Code returns the lifecycle.Version of the old table in Go, for the Config of a binary
// that has the new one. An old state that has no new name is a comment: a record in such a
// state is refused until the code names one.
func (r *Report) Code() string {
	var b strings.Builder
	fmt.Fprintf(&b, "// Records of the old %s.\nlifecycle.Version{\n", visible.Text(r.Old))
	b.WriteString("\tName: \"\", // Config.Version of the old binaries\n\tStates: map[string]string{\n")
	for _, s := range r.States {
		if s.New != "" {
			fmt.Fprintf(&b, "\t\t%q: %q,\n", s.Old, s.New)
		} else {
			fmt.Fprintf(&b, "\t\t// %q is not a state of the new table: map it, or no object may be in it\n", s.Old)
		}
	}
	b.WriteString("\t},\n\t// Upgrade and Downgrade, if the payload differs too.\n}")
	return b.String()
}

// StateName is an old state and its name in the new table.
type StateName struct {
	Old string `json:"old"`
	New string `json:"new,omitempty"` // empty: the new table does not have it
}
