package diagram

import (
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/fsm"
)

// Mermaid returns the table as a Mermaid state diagram (stateDiagram-v2), one statement
// per line, with a newline at the end. The states are s0, s1, ... in order of
// declaration. Their labels are the names of the states.
func Mermaid(t *fsm.Table, c *Config) string {
	m := newModel(t, c)
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, "    "+format+"\n", args...) }
	if legend := m.legend("thick border", nil); legend != "" {
		fmt.Fprintf(&b, "---\ntitle: \"%s\"\n---\n", legend)
	}
	b.WriteString("stateDiagram-v2\n")
	line("direction TB")
	for i := range m.states() {
		line(`state "%s" as s%d`, m.stateLabel(i, mermaidText, "<br/>"), i)
	}
	for _, s := range m.entries() {
		line("[*] --> s%d", s)
	}
	alike := func(int) string { return "" } // one arrow cannot have a style of its own
	for _, a := range m.arrows(alike) {
		line("s%d --> s%d : %s", a.from, a.to, strings.Join(m.labels(a.rows, mermaidText, true), "<br/>"))
	}
	m.mermaidClasses(line)
	return b.String()
}

// mermaidClasses writes the styles of the states.
func (m model) mermaidClasses(line func(string, ...any)) {
	class := func(name, style string, has func(state int) bool) {
		var members []string
		for i := range m.states() {
			if has(i) {
				members = append(members, fmt.Sprintf("s%d", i))
			}
		}
		if len(members) > 0 {
			line("classDef %s %s", name, style)
			line("class %s %s", strings.Join(members, ","), name)
		}
	}
	kind := func(k fsm.Kind, style string) {
		class(k.String(), style, func(i int) bool { return i < len(m.t.States) && m.t.States[i].Kind == k })
	}
	// The colours are legible on white and on black. The last class of a state wins.
	kind(fsm.Transitional, "stroke-dasharray:5 4")
	kind(fsm.Failed, "fill:#fde0dc,stroke:#c0392b,color:#7b241c")
	kind(fsm.Final, "stroke-width:4px")
	kind(fsm.Absent, "fill:#eeeeee,stroke:#999999,color:#666666")
	class("undeclared", "stroke:#c0392b,color:#c0392b,stroke-dasharray:1 3", func(i int) bool { return i >= len(m.t.States) })
	class("current", "fill:#ffe08a,color:#000000", func(i int) bool { return i == m.current() })
}
