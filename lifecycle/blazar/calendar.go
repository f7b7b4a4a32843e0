package blazar

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// The calendar has a record for every event that is UNDONE, and for no other. Its
// id begins with the time of the event, and stores list in the order of ids. So
// Process reads the events that are due, and no later ones. One commit changes the
// record and the event: see [Service.moveNote].

type (
	noteState string
	noteEvent string
)

const (
	noted  noteState = "noted"
	struck noteState = "struck"

	strike noteEvent = "strike"
)

// calendar is the machine of the notes in it.
var calendar = fsm.Must[Due](fsm.Spec[noteState, noteEvent]{
	Name: "calendar", Title: "Blazar: what is to be done when", Initial: noted,
	Actors: []fsm.Actor{Manager},
	States: []fsm.State[noteState]{{Name: noted}, {Name: struck, Kind: fsm.Absent}},
	Rows:   fsm.Rows(fsm.Move(noted, strike, struck).By(Manager)),
})

// noteID is the id of the note of an event. That of an earlier event is less.
func noteID(event string, e *EventSpec) string {
	return e.Time.UTC().Format("2006-01-02T15:04:05.000000000Z/") + event
}

// moveNote adds to the commit of a change of an event: its note comes, moves and
// goes with it.
func (s *Service) moveNote(ctx context.Context, ch *lifecycle.StoredChange) (*lifecycle.Tx, error) {
	id := ch.To.ID
	var before, after string // the notes
	if EventState(ch.From) == EventUndone {
		// If the event has moved since the change was decided, the commit fails.
		e, err := s.Events.Get(ctx, id)
		if err != nil && !errors.Is(err, lifecycle.ErrNotFound) {
			return nil, err
		}
		before = noteID(id, &e.Payload)
	}
	var spec EventSpec
	if !ch.Remove && EventState(ch.To.State) == EventUndone {
		var err error
		if spec, err = content[EventSpec](ch); err != nil {
			return nil, err
		}
		after = noteID(id, &spec)
	}
	if before == after {
		return nil, nil
	}
	var tx lifecycle.Tx
	if before != "" {
		// An event that has no note for any reason can move too.
		switch _, err := s.calendar.Get(ctx, before); {
		case err == nil:
			s.calendar.In(&tx).Fire(before, strike, Manager, nil)
		case !errors.Is(err, lifecycle.ErrNotFound):
			return nil, err
		}
	}
	if after != "" {
		s.calendar.In(&tx).Add(after, Manager, Due{id, spec.Lease, spec.Type, spec.Time}, nil)
	}
	return &tx, nil
}

const (
	lookAhead = 64        // notes are read at once: most looks find few that are due
	thorough  = time.Hour // after so long, a look reads all events
)

// due lists the events that are due. The first look of a service, and one in an
// hour, does not rely on the calendar: an event that was written without this package,
// or by an earlier version of it, has no note.
func (s *Service) due(ctx context.Context) (list []Due, err error) {
	now, began := s.config.Now(), time.Now()
	if last := s.looked.Load(); last == nil || began.Sub(*last) >= thorough {
		for e, err := range s.Events.All(ctx, lifecycle.Select[EventState]{States: []EventState{EventUndone}}) {
			if err != nil {
				return nil, err
			}
			if !e.Payload.Time.After(now) {
				list = append(list, Due{e.ID, e.Payload.Lease, e.Payload.Type, e.Payload.Time})
			}
		}
		s.looked.Store(&began)
		return list, nil
	}
	for note, err := range s.calendar.All(ctx, lifecycle.Select[noteState]{Limit: lookAhead}) {
		if err != nil {
			return nil, err
		}
		d := note.Payload
		if d.Time.After(now) {
			break
		}
		switch e, err := s.Events.Get(ctx, d.ID); {
		case err != nil && !errors.Is(err, lifecycle.ErrNotFound):
			return nil, err
		case e.State == EventUndone && e.Payload.Time.Equal(d.Time):
			list = append(list, d)
		default:
			// It has moved since the note was read, or was moved without it.
			_, err := s.calendar.Fire(ctx, note.ID, strike, Manager, &lifecycle.Change[Due]{Expect: note.Revision})
			if err != nil && !errors.Is(err, lifecycle.ErrNotFound) && !errors.Is(err, lifecycle.ErrConflict) {
				return nil, err
			}
		}
	}
	return list, nil
}
