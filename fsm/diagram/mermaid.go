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
	line("direction %s", m.direction())
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
	class := func(name, style string, members []string) {
		if style != "" && len(members) > 0 {
			line("classDef %s %s", name, style)
			line("class %s %s", strings.Join(members, ","), name)
		}
	}
	byKind := make([][]string, len(mermaidStyles))
	for i, s := range m.t.States {
		if int(s.Kind) < len(byKind) {
			byKind[s.Kind] = append(byKind[s.Kind], fmt.Sprintf("s%d", i))
		}
	}
	for kind, members := range byKind {
		class(fsm.Kind(kind).String(), mermaidStyles[kind], members)
	}
	var undeclared []string
	for i := len(m.t.States); i < m.states(); i++ {
		undeclared = append(undeclared, fmt.Sprintf("s%d", i))
	}
	class("undeclared", "stroke:#c0392b,color:#c0392b,stroke-dasharray:1 3", undeclared)
	if i := m.current(); i >= 0 {
		class("current", "fill:#ffe08a,color:#000000", []string{fmt.Sprintf("s%d", i)}) // the last class wins
	}
}

// mermaidStyles has the style of each kind. The colours are legible on white and on black.
var mermaidStyles = [...]string{
	fsm.Stable:       "",
	fsm.Transitional: "stroke-dasharray:5 4",
	fsm.Failed:       "fill:#fde0dc,stroke:#c0392b,color:#7b241c",
	fsm.Final:        "stroke-width:4px",
	fsm.Absent:       "fill:#eeeeee,stroke:#999999,color:#666666",
}
