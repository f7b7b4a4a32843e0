package decide_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/decide"
)

var errReason = errors.New("the guard refuses")

// oracle makes a decision the slow way, from the rows of the table alone and the words
// of the design. The error of its decision is the sentinel.
type oracle struct {
	table  *fsm.Table
	rec    decide.Record
	q      decide.Request
	refuse func(row int) error
}

func (o *oracle) decide() decide.Decision {
	rec, q := o.rec, o.q
	switch {
	case (q.Verb == decide.Create || q.Verb == decide.Add) && rec.Exists:
		return o.refused(decide.ErrExists)
	case q.Verb == decide.Add && o.kind(q.To) == fsm.Absent:
		return o.refused(decide.ErrNoEntry)
	case q.Verb == decide.Add:
		return o.written(-1, fsm.Absent, q.To, q.To, false)
	case q.Verb == decide.Create:
		state, ok := o.absent()
		if !ok {
			return o.refused(decide.ErrNoEntry)
		}
		rec.State, rec.Origin = state, state
	case namesOperation(q.Verb) && q.Operation < rec.Operation:
		return decide.Decision{Row: -1, Verdict: decide.Stale, Err: decide.ErrStale}
	case namesOperation(q.Verb) && (q.Operation > rec.Operation || q.Operation == 0):
		return o.refused(decide.ErrStale)
	case namesOperation(q.Verb) && q.Owned && (q.Owner != rec.Owner || q.Epoch != rec.Epoch):
		return decide.Decision{Row: -1, Verdict: decide.Stale, Err: decide.ErrStale}
	case q.Verb == decide.Report && q.Repeats && (!rec.Exists || o.kind(rec.State).Resting()):
		return decide.Decision{Row: -1, Verdict: decide.Repeated}
	case !rec.Exists:
		return o.refused(decide.ErrNotFound)
	case q.Verb == decide.Override:
		return o.override()
	case q.Verb == decide.Heartbeat:
		return o.heartbeat()
	case q.Verb == decide.Migrate:
		return o.migrate()
	}
	d := o.fire(rec.State, rec.Origin)
	if d.Err != nil && q.Verb == decide.Report && q.Repeats && d.Row < 0 {
		return decide.Decision{Row: -1, Verdict: decide.Repeated}
	}
	return d
}

// fire takes the first row whose guard passes, or returns why there is none.
func (o *oracle) fire(state, origin int) decide.Decision {
	var inCell, mine, byForce, guarded bool
	for i, r := range o.table.Rows {
		if !slices.Contains(r.From, state) || r.Event != o.q.Event {
			continue
		}
		inCell = true
		if !o.mayFire(r) {
			continue
		}
		mine = true
		if len(r.Origin) > 0 && !slices.Contains(r.Origin, origin) {
			continue
		}
		if r.Then == fsm.ThenReturn && !o.kind(origin).Resting() {
			continue
		}
		if r.Forced && !o.q.Force {
			byForce = true
			continue
		}
		if r.Guard != "" && o.refuse(i) != nil {
			guarded = true
			continue
		}
		return o.take(i, state, origin)
	}
	switch {
	case guarded:
		return o.refused(fsm.ErrGuard)
	case inCell && !mine:
		return o.refused(fsm.ErrWrongActor)
	case o.q.Verb == decide.Fire && o.kind(state) == fsm.Transitional:
		return o.refused(decide.ErrBusy)
	case byForce:
		return o.refused(fsm.ErrForcedOnly)
	}
	return o.refused(fsm.ErrNotAllowed)
}

func (o *oracle) mayFire(r fsm.TableRow) bool {
	actor := slices.Index(o.table.Actors, o.q.Actor)
	return actor >= 0 && (len(r.Actors) == 0 || slices.Contains(r.Actors, actor))
}

func (o *oracle) take(row, state, origin int) decide.Decision {
	r := o.table.Rows[row]
	switch {
	case r.Then == fsm.ThenIgnore:
		return decide.Decision{Row: row, Verdict: decide.Repeated}
	case r.Then == fsm.ThenReturn:
		return o.written(row, o.kind(state), origin, origin, r.Supersede)
	case o.kind(r.To).Resting():
		return o.written(row, o.kind(state), r.To, r.To, r.Supersede)
	case o.kind(state).Resting():
		return o.written(row, o.kind(state), r.To, state, r.Supersede)
	}
	return o.written(row, o.kind(state), r.To, origin, r.Supersede)
}

// written is a change to a state, out of a state of the given kind.
func (o *oracle) written(row int, from fsm.Kind, state, origin int, supersede bool) decide.Decision {
	d := decide.Decision{
		Write: true, Row: row, State: state, Origin: origin,
		Sequence: o.rec.Sequence + 1, Operation: o.rec.Operation,
		Removes: row >= 0 && o.kind(state) == fsm.Absent,
		Timeout: o.timeout(state, origin),
	}
	if o.kind(state) == fsm.Transitional && (from != fsm.Transitional || supersede) {
		if o.q.Verb == decide.Report {
			return decide.Decision{Row: row, Verdict: decide.Refused, Err: decide.ErrBegins}
		}
		d.Begins = true
		d.Operation++
	} else if (o.q.Verb == decide.Create || o.q.Verb == decide.Add) && o.rec.Operation > 0 {
		d.Operation++ // reports about the removed object are stale
	}
	d.Work = o.worker(o.kind(state), d.Begins)
	return d
}

// override always starts a new operation, without work.
func (o *oracle) override() decide.Decision {
	to := o.q.To
	d := decide.Decision{
		Write: true, Row: -1, State: to, Origin: to, Begins: true,
		Sequence: o.rec.Sequence + 1, Operation: o.rec.Operation + 1, Removes: o.kind(to) == fsm.Absent,
	}
	if !o.kind(to).Resting() {
		d.Origin = o.rec.Origin
	}
	d.Timeout = o.timeout(to, d.Origin)
	return d
}

// heartbeat changes nothing but the deadline of work.
func (o *oracle) heartbeat() decide.Decision {
	rec := o.rec
	timeout := o.timeout(rec.State, rec.Origin)
	switch {
	case o.kind(rec.State) != fsm.Transitional:
		return decide.Decision{Row: -1, Verdict: decide.Stale, Err: decide.ErrStale}
	case timeout == 0:
		return decide.Decision{Row: -1}
	}
	return decide.Decision{
		Write: true, MetadataOnly: true, Work: decide.SameWork, Row: -1,
		State: rec.State, Origin: rec.Origin, Sequence: rec.Sequence, Operation: rec.Operation, Timeout: timeout,
	}
}

func (o *oracle) migrate() decide.Decision {
	rec, work := o.rec, decide.NoWork
	if o.kind(rec.State) == fsm.Transitional {
		work = decide.SameWork
	}
	return decide.Decision{
		Write: true, Work: work, Row: -1, State: rec.State, Origin: rec.Origin,
		Sequence: rec.Sequence + 1, Operation: rec.Operation, Timeout: o.timeout(rec.State, rec.Origin),
	}
}

// worker is the work after a change, in the words of the constants.
func (o *oracle) worker(to fsm.Kind, begins bool) decide.Work {
	q := o.q
	continues := to == fsm.Transitional && !begins
	switch {
	case q.Verb == decide.Add:
		return decide.NoWork
	case continues:
		return decide.SameWork
	case begins && q.Work:
		return decide.NewWork
	case begins && q.Sweep && o.rec.Work:
		return decide.Redo
	}
	return decide.NoWork
}

// timeout is the shortest timeout of the rows of the state that fit an object of this
// origin; 0: none.
func (o *oracle) timeout(state, origin int) (shortest time.Duration) {
	for _, r := range o.table.Rows {
		if r.Timeout <= 0 || !slices.Contains(r.From, state) {
			continue
		}
		fits := len(r.Origin) == 0 || slices.Contains(r.Origin, origin)
		if r.Then == fsm.ThenReturn {
			fits = fits && o.kind(origin).Resting()
		}
		if fits && (shortest == 0 || r.Timeout < shortest) {
			shortest = r.Timeout
		}
	}
	return shortest
}

func (o *oracle) refused(sentinel error) decide.Decision {
	return decide.Decision{Row: -1, Verdict: decide.Refused, Err: sentinel}
}

func (o *oracle) kind(state int) fsm.Kind { return o.table.States[state].Kind }

// absent is the state of an object that is not there.
func (o *oracle) absent() (int, bool) {
	if o.kind(o.table.Initial) == fsm.Absent {
		return o.table.Initial, true
	}
	for i := range o.table.States {
		if o.kind(i) == fsm.Absent {
			return i, true
		}
	}
	return 0, false
}

// sentinels are all that a decision may refuse with, the most special first.
var sentinels = []error{
	decide.ErrExists, decide.ErrNotFound, decide.ErrBusy, decide.ErrStale, decide.ErrNoEntry, decide.ErrBegins,
	fsm.ErrGuard, fsm.ErrForcedOnly, fsm.ErrWrongActor, fsm.ErrNotAllowed,
}

func sentinelOf(err error) error {
	for _, s := range sentinels {
		if errors.Is(err, s) {
			return s
		}
	}
	return err
}

// TestOracle compares every decision but its payload rule, which has a model of
// its own, with the slow one: random tables, records, requests and guards.
func TestOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := drawTable(t)
		for range 20 {
			rec := drawRecord(t, table)
			q := drawRequest(t, table, rec)
			refuse := drawGuards(t, table)
			got := decision(table, rec, q, refuse)
			got.Err, got.Saves, got.Saved = sentinelOf(got.Err), false, false
			o := oracle{table: table, rec: rec, q: q, refuse: refuse}
			if diff := cmp.Diff(o.decide(), got, cmpopts.EquateErrors()); diff != "" {
				t.Fatalf("%+v of %+v (-oracle +decided):\n%s", q, rec, diff)
			}
		}
	})
}

// TestGuardReason: a refusal by guards unwraps to the reason of each of them.
func TestGuardReason(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := drawTable(t)
		rec := drawRecord(t, table)
		q := drawRequest(t, table, rec)
		q.Repeats = false
		reasons := map[int]error{}
		d := decision(table, rec, q, func(row int) error {
			reasons[row] = fmt.Errorf("row %d", row)
			return reasons[row]
		})
		if !errors.Is(d.Err, fsm.ErrGuard) {
			return
		}
		if len(reasons) == 0 {
			t.Fatalf("refused by a guard, and none was asked: %v", d.Err)
		}
		for row, reason := range reasons {
			if !errors.Is(d.Err, reason) {
				t.Fatalf("the reason of row %d is lost in: %v", row, d.Err)
			}
		}
	})
}

// drawGuards draws for every row whether its guard would refuse.
func drawGuards(t *rapid.T, table *fsm.Table) func(row int) error {
	refuses := rapid.SliceOfN(rapid.Bool(), len(table.Rows), len(table.Rows)).Draw(t, "guards refuse")
	return func(row int) error {
		if refuses[row] {
			return errReason
		}
		return nil
	}
}
