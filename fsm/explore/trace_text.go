package explore

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/interlock-go/interlock/internal/visible"
)

// String draws the trace as a sequence diagram of text: a column for every actor
// and channel, a line for every step, with the changes beside it. Initial states
// stand above it. Programs must not depend on the text. The marks are:
//
//   - acts    o--> sends    -->o receives    x  lost    +  duplicated    #  struck
func (tr *Trace) String() string {
	var b strings.Builder
	for _, a := range tr.Actors {
		fmt.Fprintf(&b, "  %s: %s\n", visible.Text(a.Name), visible.Text(a.Start))
	}
	for _, c := range tr.Channels {
		if len(c.Start) > 0 {
			fmt.Fprintf(&b, "  %s: %s\n", visible.Text(c.Name), visible.Text(shown(c.Start...)))
		}
	}
	d := newDiagram(tr)
	line := func(number string, row []rune, text string) {
		b.WriteString(strings.TrimRight(visible.Text(fmt.Sprintf("%4s %s  %s", number, string(row), text)), " ") + "\n")
	}
	line("", d.header, "")
	for i, s := range tr.Steps {
		if tr.Loop > 0 && i == len(tr.Steps)-tr.Loop {
			b.WriteString("     forever:\n")
		}
		line(fmt.Sprint(i+1), d.row(&s), s.text())
	}
	if tr.Outcome == Unreached && tr.Loop == 0 {
		b.WriteString("     stops: no fair action is possible\n")
	}
	return b.String()
}

// text describes the step in words.
func (s *TraceStep) text() string {
	var parts []string
	what := s.Label
	if s.Channel != "" {
		what = strings.TrimPrefix(what+": "+shown(s.Message), ": ")
	}
	switch s.Kind {
	case StepLose:
		what += " is lost"
	case StepDuplicate:
		what += " is duplicated"
	}
	if what != "" {
		parts = append(parts, what)
	}
	for _, q := range s.Emptied {
		parts = append(parts, q.Channel+" loses "+shown(q.Messages...))
	}
	for _, l := range s.Locals {
		if l.Before != l.After {
			parts = append(parts, l.Actor+": "+l.After)
		}
	}
	return strings.Join(parts, "; ")
}

// shown returns the texts of messages. An empty one is "".
func shown(messages ...string) string {
	list := slices.Clone(messages)
	for i, m := range list {
		if m == "" {
			list[i] = `""`
		}
	}
	return strings.Join(list, ", ")
}

// diagram has the places of the columns.
type diagram struct {
	actors, channels map[string]int // middle of the column
	header           []rune
}

// newDiagram places actors and channels from left to right. A channel stands to the right
// of the actor that sends into it first.
func newDiagram(tr *Trace) *diagram {
	d := &diagram{actors: make(map[string]int), channels: make(map[string]int)}
	column := func(at map[string]int, name string) {
		title := visible.Text(name)
		n := utf8.RuneCountInString(title)
		width := max(7, n+2)
		at[name] = len(d.header) + width/2
		left := width/2 - n/2
		d.header = append(d.header, []rune(strings.Repeat(" ", left)+title+strings.Repeat(" ", width-left-n))...)
	}
	for _, a := range tr.Actors {
		column(d.actors, a.Name)
		for _, s := range tr.Steps {
			if _, placed := d.channels[s.Channel]; s.Kind == StepSend && s.Actor == a.Name && !placed {
				column(d.channels, s.Channel)
			}
		}
	}
	for _, c := range tr.Channels {
		if _, placed := d.channels[c.Name]; !placed {
			column(d.channels, c.Name)
		}
	}
	return d
}

// row draws a step.
func (d *diagram) row(s *TraceStep) []rune {
	row := slices.Repeat([]rune{' '}, len(d.header))
	for _, columns := range []map[string]int{d.actors, d.channels} {
		for _, at := range columns {
			row[at] = '|'
		}
	}
	switch s.Kind {
	case StepAct:
		row[d.actors[s.Actor]] = '*'
	case StepSend:
		row[d.actors[s.Actor]] = 'o'
		arrow(row, d.actors[s.Actor], d.channels[s.Channel])
	case StepDeliver:
		row[d.actors[s.Actor]] = 'o'
		arrow(row, d.channels[s.Channel], d.actors[s.Actor])
	case StepLose:
		row[d.channels[s.Channel]] = 'x'
	case StepDuplicate:
		row[d.channels[s.Channel]] = '+'
	case StepFault:
		for _, l := range s.Locals {
			row[d.actors[l.Actor]] = '#'
		}
		for _, q := range s.Emptied {
			row[d.channels[q.Channel]] = 'x'
		}
	}
	return row
}

// arrow draws an arrow between two columns.
func arrow(row []rune, from, to int) {
	for at := min(from, to) + 1; at < max(from, to); at++ {
		row[at] = '-'
	}
	if from < to {
		row[to-1] = '>'
	} else {
		row[to+1] = '<'
	}
}
