package history

import (
	"fmt"
	"time"

	"github.com/interlock-go/interlock/fsm"
)

// Row is one accepted change of one object. ID and To are mandatory. The zero value
// of another field means that the feed does not have it. A Row is a plain value.
type Row struct {
	Machine   string `json:"machine,omitempty"` // name of the table; optional if there is only one
	ID        string `json:"id"`                // of the object
	Version   string `json:"version,omitempty"` // of the table, see [TableVersion]
	Sequence  uint64 `json:"sequence,omitempty"`
	Operation uint64 `json:"operation,omitempty"`

	From       string    `json:"from,omitempty"` // empty if the row creates the object
	FromOrigin string    `json:"fromOrigin,omitempty"`
	To         string    `json:"to"`
	Origin     string    `json:"origin,omitempty"`
	Event      string    `json:"event,omitempty"` // empty if the object was added without an event
	Actor      fsm.Actor `json:"actor,omitempty"`
	At         time.Time `json:"at,omitzero"`

	Line int `json:"-"` // of the text, counted from 1; Read sets it
}

// step returns the change as text.
func (r *Row) step() string {
	from := r.From
	if from == "" {
		from = "nothing"
	}
	s := fmt.Sprintf("%s -%s-> %s", from, r.Event, r.To)
	if r.Actor != "" {
		s += " by " + string(r.Actor)
	}
	return s
}
