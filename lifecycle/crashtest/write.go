package crashtest

import (
	"fmt"

	"github.com/interlock-go/interlock/lifecycle"
)

// write names a durable write of a scenario: what is written, by whom, and for
// which time. It is no number, so that it is the same write also where others
// have come in between, of work that goes on at the same time.
type write struct {
	text string
	nth  int // how many with the same text there were before
}

func (w write) String() string {
	if w.nth == 0 {
		return w.text
	}
	return fmt.Sprintf("%s, time %d", w.text, w.nth+1)
}

// textOf says what a commit writes.
func textOf(process string, c *lifecycle.Commit) string {
	if len(c.Changes) == 0 {
		return process + ": nothing"
	}
	ch := &c.Changes[0]
	text := fmt.Sprintf("%s: %s %q ", process, ch.To.Machine, ch.To.ID)
	switch from := ch.From; {
	case ch.Quiet && ch.Within > 0:
		text += "beats in " + from
	case ch.Quiet:
		text += "changes quietly in " + from
	case ch.To.Event == "":
		text += "is added " + ch.To.State + " by " + string(ch.To.Actor)
	default:
		text += fmt.Sprintf("%s by %s, to %s", ch.To.Event, ch.To.Actor, ch.To.State)
		if from != "" {
			text += " from " + from
		}
	}
	if more := len(c.Changes) - 1; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}
