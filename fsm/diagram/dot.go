package diagram

import (
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/fsm"
)

// DOT returns the table as a Graphviz digraph, one statement per line, with a newline
// at the end. The nodes are s0, s1, ... in order of declaration. Their labels are the
// names of the states.
func DOT(t *fsm.Table, c *Config) string {
	m := newModel(t, c)
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, "\t"+format+"\n", args...) }
	fmt.Fprintf(&b, "digraph \"%s\" {\n", dotText(t.Name))
	line("rankdir=TB nodesep=0.15 ranksep=0.3")
	line(`node [height=0.4 shape=box style="rounded,filled" fillcolor=white fontname="Helvetica"]`)
	line(`edge [fontname="Helvetica" fontsize=10]`)
	for i := range m.states() {
		line(`s%d [label="%s"%s]`, i, m.stateLabel(i, dotText, `\n`), m.dotStyle(i))
	}
	for i, s := range m.entries() {
		line(`start%d [shape=point fillcolor=black width=0.15]`, i)
		line(`start%d -> s%d`, i, s)
	}
	arrows := m.arrows(m.dotLook)
	for _, a := range arrows {
		labels := m.labels(a.rows, dotText, false)
		for i := range labels {
			labels[i] = " " + labels[i] + " " // keeps the text off the arrow
		}
		line(`s%d -> s%d [label="%s"%s]`, a.from, a.to, strings.Join(labels, `\n`), m.dotLook(a.rows[0]))
	}
	if legend := m.legend("double border", arrows); legend != "" {
		line(`graph [label="%s" fontname="Helvetica" fontsize=10]`, legend)
	}
	b.WriteString("}\n")
	return b.String()
}

// dotLook returns the attributes of an arrow: dashed for a return, red for a forced
// row.
func (m model) dotLook(row int) string {
	r := &m.t.Rows[row]
	look := ""
	if r.Then == fsm.ThenReturn {
		look = " style=dashed"
	}
	if r.Forced {
		look += ` color="#c0392b" fontcolor="#c0392b"`
	}
	return look
}

// dotStyle returns the attributes of a state. Those of the current state override those of
// its kind.
func (m model) dotStyle(state int) string {
	style := ` style="rounded,filled,dotted" color="#c0392b" fontcolor="#c0392b"`
	if state < len(m.t.States) {
		style = dotStyles[m.t.States[state].Kind]
	}
	if state == m.current() {
		style += ` fillcolor="#ffe08a" fontcolor=black penwidth=3`
	}
	return style
}

// dotStyles has the attributes of the kinds that do not look like [fsm.Stable].
var dotStyles = map[fsm.Kind]string{
	fsm.Transitional: ` style="rounded,filled,dashed"`,
	fsm.Failed:       ` color="#c0392b" fillcolor="#fde0dc" fontcolor="#7b241c"`,
	fsm.Final:        ` peripheries=2`,
	fsm.Absent:       ` color="#999999" fillcolor="#eeeeee" fontcolor="#666666"`,
}
