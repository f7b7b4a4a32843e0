package decide

import "github.com/interlock-go/interlock/fsm"

// Events are the events that report how work ended, by index, each list in the order in
// which the events are tried: Done after success, Failed after anything else.
type Events struct{ Done, Failed []int }

// Outcome returns the request that writes how work ended: the report q by the first of the
// events that the table permits now. If the table permits none for work that did not
// succeed, it is the event of the deadline row by the sweeper: the table's answer to an
// operation that is not completed applies at once. If there is no such row either, it is the
// report by the first event, which is refused with the reason. Outcome returns false if there
// are no events.
func (q Request) Outcome(t *fsm.Table, rec *Record, succeeded bool, of Events) (Request, bool) {
	events := of.Failed
	if succeeded {
		events = of.Done
	}
	q.Verb = Report
	permitted := func(q *Request) bool {
		var rows [4]int
		_, d, ok := q.Candidates(t, rec, rows[:0])
		return ok || d.Verdict == Stale || d.Verdict == Repeated
	}
	for _, e := range events {
		if q.Event = e; permitted(&q) {
			return q, true
		}
	}
	if !succeeded && rec.Exists && t.States[rec.State].Kind == fsm.Transitional {
		late := q
		if _, row := t.Timeout(rec.State, rec.Origin); row >= 0 && !redoes(t, rec.State, rec.Origin) {
			late.Event, late.Actor = t.Rows[row].Event, fsm.Sweeper
			if permitted(&late) {
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
