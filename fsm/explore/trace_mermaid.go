package explore

import (
	"fmt"
	"strings"
)

// Mermaid returns the trace as a sequenceDiagram of Mermaid, in which channels
// take part too. Names, labels and states may be any text.
func (tr *Trace) Mermaid() string {
	var b strings.Builder
	b.WriteString("sequenceDiagram\n")
	ids := make(map[string]string)
	for i, n := range tr.columns() {
		ids[n] = fmt.Sprintf("p%d", i)
		kind := "actor"
		if strings.HasPrefix(n, "\x00") {
			kind = "participant"
		}
		fmt.Fprintf(&b, "    %s p%d as %s\n", kind, i, mermaidText(strings.TrimPrefix(n, "\x00")))
	}
	note := func(name, text string) {
		fmt.Fprintf(&b, "    Note over %s: %s\n", ids[name], mermaidText(text))
	}
	for _, a := range tr.Actors {
		note(a.Name, a.Start)
	}
	for _, c := range tr.Channels {
		if len(c.Start) > 0 {
			note(c.key(), strings.Join(c.Start, ", "))
		}
	}
	for i, s := range tr.Steps {
		if tr.Loop > 0 && i == len(tr.Steps)-tr.Loop {
			b.WriteString("    loop forever\n")
		}
		said, channel := s.said(), channelKey(s.Channel)
		switch s.Kind {
		case StepAct:
			fmt.Fprintf(&b, "    %s->>%s: %s\n", ids[s.Actor], ids[s.Actor], mermaidText(said))
		case StepSend:
			fmt.Fprintf(&b, "    %s-)%s: %s\n", ids[s.Actor], ids[channel], mermaidText(said))
		case StepDeliver:
			fmt.Fprintf(&b, "    %s->>%s: %s\n", ids[channel], ids[s.Actor], mermaidText(said))
		case StepLose:
			note(channel, "lost: "+said)
		case StepDuplicate:
			note(channel, "twice: "+said)
		case StepFault:
			if len(s.Locals)+len(s.Emptied) == 0 {
				note(tr.Actors[0].Name, "fault: "+s.Label)
			}
			for _, q := range s.Emptied {
				note(channelKey(q.Channel), s.Label+" loses "+strings.Join(q.Messages, ", "))
			}
		}
		for _, l := range s.Locals {
			switch {
			case s.Kind == StepFault:
				note(l.Actor, s.Label+": "+l.After)
			case l.Before != l.After:
				note(l.Actor, l.After)
			}
		}
	}
	if tr.Loop > 0 {
		b.WriteString("    end\n")
	}
	return b.String()
}

// mermaidText escapes what would end a text or a line. An empty text would be a
// fault of syntax.
func mermaidText(s string) string {
	s = strings.NewReplacer("#", "#35;", ";", "#59;", "<", "#lt;", ">", "#gt;", "%%", "#37;#37;").Replace(oneLine(s))
	if s = strings.TrimSpace(s); s == "" {
		return "#8203;"
	}
	return s
}
