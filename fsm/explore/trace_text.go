package explore

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// String draws the trace as a sequence diagram of text: a column for every actor
// and channel, a line for every step, with the changes beside it. Initial states
// stand above it. Programs must not depend on the text. The marks are:
//
//   - acts    o--> sends    -->o receives    x  lost    +  duplicated    #  struck
func (tr *Trace) String() string {
	var b strings.Builder
	for _, a := range tr.Actors {
		fmt.Fprintf(&b, "  %s: %s\n", oneLine(a.Name), oneLine(a.Start))
	}
	for _, c := range tr.Channels {
		if len(c.Start) > 0 {
			fmt.Fprintf(&b, "  %s: %s\n", oneLine(c.Name), oneLine(strings.Join(c.Start, ", ")))
		}
	}
	d := newDiagram(tr)
	b.WriteString(strings.TrimRight("     "+d.header(), " ") + "\n")
	for i, s := range tr.Steps {
		if tr.Loop > 0 && i == len(tr.Steps)-tr.Loop {
			b.WriteString("     forever:\n")
		}
		b.WriteString(strings.TrimRight(fmt.Sprintf("%4d %s  %s", i+1, d.row(&s), s.text()), " ") + "\n")
	}
	if tr.Outcome == Unreached && tr.Loop == 0 {
		b.WriteString("     stops: no fair action is possible\n")
	}
	return b.String()
}

// text describes the step in words.
func (s *TraceStep) text() string {
	var parts []string
	switch what := s.labelled(); {
	case s.Kind == StepLose:
		parts = append(parts, what+" is lost")
	case s.Kind == StepDuplicate:
		parts = append(parts, what+" is duplicated")
	case what != "":
		parts = append(parts, what)
	}
	for _, q := range s.Emptied {
		parts = append(parts, q.Channel+" loses "+strings.Join(q.Messages, ", "))
	}
	for _, l := range s.Locals {
		if l.Before != l.After {
			parts = append(parts, l.Actor+": "+l.After)
		}
	}
	return oneLine(strings.Join(parts, "; "))
}

// labelled returns label and message.
func (s *TraceStep) labelled() string {
	if s.Channel == "" {
		return s.Label
	}
	message := s.Message
	if message == "" {
		message = `""`
	}
	if s.Label != "" {
		return s.Label + ": " + message
	}
	return message
}

// oneLine replaces control characters by spaces.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}

// columns lists actors and channels from left to right: a channel stands to the
// right of the first actor that sends into it.
func (tr *Trace) columns() (names []string) {
	for _, a := range tr.Actors {
		names = append(names, a.Name)
		for _, c := range tr.Channels {
			if len(c.Senders) > 0 && c.Senders[0] == a.Name {
				names = append(names, c.key())
			}
		}
	}
	for _, c := range tr.Channels {
		if len(c.Senders) == 0 {
			names = append(names, c.key())
		}
	}
	return names
}

// key distinguishes a channel from an actor of the same name.
func (c *TraceChannel) key() string { return channelKey(c.Name) }

func channelKey(name string) string { return "\x00" + name }

// diagram has the places of the columns.
type diagram struct {
	names []string
	at    map[string]int // middle of the column
	width int
}

func newDiagram(tr *Trace) *diagram {
	d := &diagram{names: tr.columns(), at: make(map[string]int)}
	for _, n := range d.names {
		w := max(7, utf8.RuneCountInString(oneLine(strings.TrimPrefix(n, "\x00")))+2)
		d.at[n] = d.width + w/2
		d.width += w
	}
	return d
}

func (d *diagram) header() string {
	row := d.blank(' ')
	for _, n := range d.names {
		name := []rune(oneLine(strings.TrimPrefix(n, "\x00")))
		copy(row[d.at[n]-len(name)/2:], name)
	}
	return string(row)
}

// blank returns a row with a mark in every column.
func (d *diagram) blank(mark rune) []rune {
	row := slices.Repeat([]rune{' '}, d.width)
	for _, at := range d.at {
		row[at] = mark
	}
	return row
}

func (d *diagram) row(s *TraceStep) string {
	row := d.blank('|')
	mark := func(name string, r rune) int {
		at := d.at[name]
		row[at] = r
		return at
	}
	switch s.Kind {
	case StepAct:
		mark(s.Actor, '*')
	case StepSend:
		d.arrow(row, mark(s.Actor, 'o'), d.at[channelKey(s.Channel)])
	case StepDeliver:
		d.arrow(row, d.at[channelKey(s.Channel)], mark(s.Actor, 'o'))
	case StepLose:
		mark(channelKey(s.Channel), 'x')
	case StepDuplicate:
		mark(channelKey(s.Channel), '+')
	case StepFault:
		for _, l := range s.Locals {
			mark(l.Actor, '#')
		}
		for _, q := range s.Emptied {
			mark(channelKey(q.Channel), 'x')
		}
	}
	return string(row)
}

// arrow draws an arrow between two columns.
func (d *diagram) arrow(row []rune, from, to int) {
	for at := min(from, to) + 1; at < max(from, to); at++ {
		row[at] = '-'
	}
	if from < to {
		row[to-1] = '>'
	} else {
		row[to+1] = '<'
	}
}
