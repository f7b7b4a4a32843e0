package blazar

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// The calendar has a record for every event that is UNDONE, and for no other. Its
// id begins with the time of the event, and stores list in the order of ids: so a
// look reads what is due, and no lease that has time. Record and event come, move
// and go in one commit, whoever moves the event: see [Service.noted].

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

// noted says what of the calendar goes along with a change of an event.
func (s *Service) noted(ctx context.Context, ch *lifecycle.StoredChange) (along lifecycle.Along, err error) {
	id := ch.To.ID
	var before, after string // the notes
	if EventState(ch.From) == EventUndone {
		// If this is not what the change was decided on, the commit will fail.
		e, err := s.Events.Get(ctx, id)
		if err != nil && !errors.Is(err, lifecycle.ErrNotFound) {
			return along, err
		}
		before = noteID(id, &e.Payload)
	}
	var spec EventSpec
	if !ch.Remove && EventState(ch.To.State) == EventUndone {
		if spec, err = eventSpec(ch); err != nil {
			return along, err
		}
		after = noteID(id, &spec)
	}
	if before == after {
		return along, nil
	}
	if before != "" {
		// An event that has no note, whoever is to blame for that, can move too.
		switch _, err := s.calendar.Get(ctx, before); {
		case err == nil:
			along.Parts = append(along.Parts, s.calendar.Firing(before, strike, Manager, nil))
		case !errors.Is(err, lifecycle.ErrNotFound):
			return along, err
		}
	}
	if after != "" {
		along.Parts = append(along.Parts, s.calendar.Adding(after, Manager, Due{id, spec.Lease, spec.Type, spec.Time}, nil))
	}
	return along, nil
}

// eventSpec is the content of an event after a change.
func eventSpec(ch *lifecycle.StoredChange) (spec EventSpec, err error) {
	data, err := ch.To.Payload.Bytes()
	if err == nil {
		err = json.Unmarshal(data, &spec)
	}
	return spec, err
}

const (
	lookAhead = 64        // notes are read at once: most looks find few that are due
	thorough  = time.Hour // after so long, a look reads all events
)

// due lists the events that are due. The first look of a service, and one now and
// then, does not rely on the calendar: an event that somebody has written without
// this package, or an earlier version of it, has no note.
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
