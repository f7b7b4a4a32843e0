package history

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/fsm"
)

// Row is one accepted change of one object, as a store or a feed tells it.
// The zero value of a field but ID and To means that the feed does not say. A
// Row is a plain value.
type Row struct {
	Machine   string // name of the table; may be left out where there is only one
	ID        string // of the object
	Version   string // of the table; see [TableVersion]
	Sequence  uint64 // counts the changes of the object without a gap
	Operation uint64 // numbers its operations: what belongs to one request

	From, FromOrigin string // From is empty where the object came into being
	To, Origin       string
	Event            string // empty where the object was put into an initial state without one
	Actor            fsm.Actor
	At               time.Time

	Line int // where it was read, counted from 1
}

// String returns the row as a line for people.
func (h *Row) String() string {
	return where(h.Line, h.Machine, h.ID, h.Sequence) + ": " + h.step()
}

// step is what the row says that happened.
func (h *Row) step() string {
	from := h.From
	if from == "" {
		from = "nothing"
	}
	s := fmt.Sprintf("%s -%s-> %s", from, h.Event, h.To)
	if h.Actor != "" {
		s += " by " + string(h.Actor)
	}
	return s
}

// where names a row.
func where(line int, machine, id string, sequence uint64) string {
	var parts []string
	if line > 0 {
		parts = append(parts, "line "+strconv.Itoa(line))
	}
	if machine != "" {
		parts = append(parts, machine)
	}
	if id != "" {
		parts = append(parts, clip(id))
	}
	if sequence > 0 {
		parts = append(parts, "#"+strconv.FormatUint(sequence, 10))
	}
	return strings.Join(parts, " ")
}
