package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/queue"
)

// inspector is a queue that can be looked into, as queue.Queuer can.
type inspector interface {
	Inspect(Key) []queue.Info[Key]
}

func (m *Manager[S, E, T]) inTheWay(ctx context.Context, x *Explanation, r *StoredRecord, require []Precondition) error {
	if q, ok := m.queue.(inspector); ok {
		x.InTheWay = append(x.InTheWay, inQueue(q.Inspect(r.Key), r)...)
	}
	if m.locks != nil {
		holders, err := m.locks(ctx, *r)
		if err != nil {
			x.InTheWay = append(x.InTheWay, "locks: they cannot be asked about: "+err.Error())
		}
		var held []string
		for _, h := range holders {
			held = append(held, "lock: "+h.String())
		}
		x.InTheWay = append(x.InTheWay, few(held, "lock: and %d more")...)
	}
	for _, p := range require {
		now, err := m.store.Get(ctx, p.Key)
		if err != nil {
			return err
		}
		if !slices.Contains(p.States, now.State) {
			x.InTheWay = append(x.InTheWay, "precondition: "+(&PreconditionError{Precondition: p, Current: now}).detail())
		}
	}
	return nil
}

// inQueue are the first places in the queue, and that of the object's own operation.
func inQueue(infos []queue.Info[Key], r *StoredRecord) []string {
	const most = 10
	var places []string
	own := len(infos) - 1
	for own >= 0 && infos[own].Name != r.Event {
		own--
	}
	left := 0
	for i, a := range infos {
		if i >= most && i != own {
			left++
			continue
		}
		text := "queue: " + a.Name + " is " + a.State.String()
		switch {
		case a.State == queue.Running:
			text += " since " + a.Started.UTC().Format(time.RFC3339)
		case a.Ahead > 0:
			text += fmt.Sprintf(" since %s, %d ahead", a.Accepted.UTC().Format(time.RFC3339), a.Ahead)
		}
		places = append(places, text)
	}
	if left > 0 {
		places = append(places, fmt.Sprintf("queue: and %d more", left))
	}
	return places
}
