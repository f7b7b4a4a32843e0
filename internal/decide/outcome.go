package decide

import "github.com/interlock-go/interlock/fsm"

// Outcome is how the work of an operation ended.
type Outcome uint8

const (
	Succeeded Outcome = iota + 1
	Failed
	Panicked
	Canceled
	TimedOut
	Lost // the operation was taken away: there is nothing to say about it any more
)

// Events are the events that say how work ended, by index, each list in the
// order in which they are tried.
type Events struct{ Done, Failed, Canceled, TimedOut []int }

// Of returns the events to try for an outcome. A panic is a failure; so are a
// cancellation and a time-out for which nothing else is said, or has no row.
func (e Events) Of(o Outcome) []int {
	switch o {
	case Succeeded:
		return e.Done
	case Failed, Panicked:
		return e.Failed
	case Canceled:
		return append(e.Canceled[:len(e.Canceled):len(e.Canceled)], e.Failed...)
	case TimedOut:
		return append(e.TimedOut[:len(e.TimedOut):len(e.TimedOut)], e.Failed...)
	case Lost:
	}
	return nil
}

// Outcome returns the request that writes how work ended: the report q by the
// first of the events that the table lets its actor say now. Where the table has
// none for work that did not succeed, its answer to an operation that nobody
// finishes counts at once: the event of the deadline, by the sweeper. If there is
// neither, it is the report by the first of the events, which is refused and says
// why; it is false if there are no events.
func (q Request) Outcome(t *fsm.Table, rec *Record, o Outcome, events []int) (Request, bool) {
	q.Verb = Report
	var rows [4]int // of no interest
	for _, e := range events {
		q.Event = e
		if _, d, ok := q.Candidates(t, rec, rows[:0]); ok || d.Verdict == Stale || d.Verdict == Repeated {
			return q, true
		}
	}
	if o != Succeeded && rec.Exists && t.States[rec.State].Kind == fsm.Transitional {
		late := q
		if _, row := t.Deadline(rec.State, rec.Origin); row >= 0 && !Redoes(t, rec.State, rec.Origin) {
			late.Event, late.Actor, late.Force = t.Rows[row].Event, fsm.Sweeper, t.Rows[row].Forced
			if _, d, ok := late.Candidates(t, rec, rows[:0]); ok || d.Verdict == Stale || d.Verdict == Repeated {
				return late, true
			}
		}
	}
	if len(events) == 0 {
		return q, false
	}
	q.Event = events[0]
	return q, true
}
