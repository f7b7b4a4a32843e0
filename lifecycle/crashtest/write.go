package crashtest

import (
	"fmt"

	"github.com/interlock-go/interlock/lifecycle"
)

// write identifies a durable write of a scenario: its content, its process, and how
// many equal ones came before. It is no number: writes of concurrent work may come
// in between without changing it.
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

// textOf describes what a commit writes.
func textOf(process string, c *lifecycle.Commit) string {
	if len(c.Changes) == 0 {
		return process + ": nothing"
	}
	ch := &c.Changes[0]
	text := fmt.Sprintf("%s: %s %q ", process, ch.To.Machine, ch.To.ID)
	switch from := ch.From; {
	case ch.MetadataOnly && ch.Timeout > 0:
		text += "heartbeat in " + from
	case ch.MetadataOnly:
		text += "metadata changed in " + from
	case ch.To.Event == "":
		text += "added " + ch.To.State + " by " + string(ch.To.Actor)
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
