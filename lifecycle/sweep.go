package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/decide"
)

// Sweep looks once at every object that is stuck: its deadline has passed, or the owner of
// its operation is dead. The deadline row of the table decides what happens: the object
// returns to its origin, it moves to a failed state, or the operation starts again and this
// process does its work. [Config.Observe] may look at the outside world first and choose
// another event.
//
// Only [Manager.Do] records work. An operation that another call has started, such as a Fire
// or an Override, starts again without work, at every deadline: it is for a peer that acts on
// the new operation and reports about it.
//
// A transitional object that has no deadline although the table has one for its state
// was written by another program or before the table had it. Its deadline is the
// table's, counted from its last change. If the store does not have the time of that
// change, and the object has no owner, the result is [NeedsOperator]: [Adopt]
// or [Manager.Override] gives the object a deadline. An operation that waits for its turn has
// no deadline while its owner is alive.
//
// Sweep declares an [Owner] dead after it has seen no heartbeat of it for one TTL. It
// measures that time from sweep to sweep, on the monotonic clock of this process. The time
// between two sweeps counts for at most a third of the TTL. The measurement of an owner
// starts again after a sweep that cannot read the owners, or cannot record within a third
// of the owner's TTL that one is dead, or whose [Config.Owner] has sent heartbeats without
// success for a third of either TTL. So a new manager needs at least one TTL and four
// sweeps; call Sweep at least every third of the TTL. A program that sweeps once finds the
// owners that others have declared dead.
//
// The history row of a change by Sweep has the cause as its reason: which owner is
// dead, or which deadline has passed.
//
// Clocks decide when Sweep acts, compare-and-set decides which writer wins: several
// sweepers, and owners that return, never do the same work twice. Sweep reads the
// owners, and four indexed ranges of objects without payloads: those past their
// deadlines, those of owners that are not alive, and transitional objects without a
// deadline that have no owner or have not changed for the shortest timeout of the
// table. All other objects cost nothing.
//
// Sweep also ends the work of this manager whose operation another process has
// taken. Call it at the start of a process, after [Join]: it finds what an earlier
// process of the same name has left, without waiting for deadlines.
//
// The result has an entry for each stuck object, moved or not. If an object could not be
// moved, its entry has the error, and the sweep continues. Any other error of the store, and
// the end of the context, ends the sweep, which returns it with the entries so far. A read or
// write that takes longer than a minute is an error.
func (m *Manager[S, E, T]) Sweep(ctx context.Context) ([]SweepResult, error) {
	began, s := time.Now(), newSweep(m.core)
	err := s.run(ctx, s.readOwners, s.endTaken, s.unresolved, s.orphaned, s.overdue, s.ownerless, s.undated)
	if err != nil {
		err = s.failed("sweep", "", err)
	}
	if swept := s.observer.Swept; swept != nil {
		swept(ctx, Swept{Machine: s.table.Name, Results: s.results, Err: err, Took: time.Since(began)})
	}
	return s.results, err
}

// Sweeper is a [Manager] of any machine.
type Sweeper interface {
	Sweep(ctx context.Context) ([]SweepResult, error)
}

// Run sweeps the objects of all managers until ctx ends, and then returns nil. The interval
// is every, up to a fifth shorter or longer at random, so that several processes do not
// sweep at the same moment. If report is not nil, it receives the results and the error of
// each manager's sweep. After an error the next sweep tries again. An interval of 0 is 10
// seconds, a third of [DefaultTTL]; a negative one is [ErrInvalid]. With an interval above
// a third of an owner's TTL, a dead owner is found after four sweeps, see [Manager.Sweep].
// Run starts no goroutine.
func Run(ctx context.Context, every time.Duration, report func([]SweepResult, error), managers ...Sweeper) error {
	if every < 0 {
		return fmt.Errorf("%w: sweep interval %v is below 0", ErrInvalid, every)
	}
	if every == 0 {
		every = 10 * time.Second
	}
	every = min(every, math.MaxInt64/2) // with its jitter
	for {
		if !sleep(ctx, nil, every-every/5+rand.N(every/5*2+1)) {
			return nil
		}
		for _, m := range managers {
			results, err := m.Sweep(ctx)
			if report != nil && (ctx.Err() == nil || len(results) > 0) {
				report(results, err)
			}
		}
	}
}

// sweep is one pass over the stuck objects of a core.
type sweep struct {
	*core
	results []SweepResult
	seen    map[string]bool   // the objects of the results
	alive   []OwnerRef        // the owners that are alive
	epochs  map[string]uint64 // of the owners, by name; 0: dead; those that are not here have not been read
	most    int               // > 0: the sweep moves nothing, and ends after so many results
	once    bool              // of its requests
}

func newSweep(c *core) *sweep {
	return &sweep{core: c, seen: map[string]bool{}, alive: []OwnerRef{}, epochs: map[string]uint64{}}
}

// callWithin is how long one read or write of a sweep may take. The bad schedule without a
// limit: one connection hangs, and [Run] never sweeps again.
const callWithin = time.Minute

// get is [core.get], for no longer than callWithin.
func (s *sweep) get(ctx context.Context, key Key) (StoredRecord, error) {
	ctx, stop := context.WithTimeout(ctx, callWithin)
	defer stop()
	return s.core.get(ctx, key)
}

// run takes steps until one fails.
func (s *sweep) run(ctx context.Context, steps ...func(context.Context) error) error {
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// endTaken ends work of this process whose operation is over. The work that goes on has the
// deadline of its record.
func (s *sweep) endTaken(ctx context.Context) error {
	admitted, _ := s.tasks.all()
	for _, t := range admitted {
		now, err := s.get(ctx, t.Key)
		if err != nil {
			return err
		}
		t.seeDeadline(&now)
		t.loseIfTaken(&now, now.Version)
	}
	return nil
}

// pendingFor is how long an admission of unknown outcome may still be committed. Without an
// end, one that was never committed is read in every sweep, for the life of the process.
const pendingFor = time.Hour

// unresolved reports operations that this process has ended without knowing what was
// written, if they go on.
func (s *sweep) unresolved(ctx context.Context) error {
	_, unresolved := s.tasks.all()
	for _, t := range unresolved {
		now, err := s.get(ctx, t.Key)
		if err != nil {
			return err
		}
		switch {
		case now.Revision == t.expect && time.Since(t.since) < pendingFor:
			// Its admission is not committed yet. The bad schedule without this case: the
			// statement waits for a lock, this sweep forgets the operation, and only then
			// the statement runs.
		case !t.owns(&now):
			s.tasks.removeUnresolved(t)
		case s.timeout(&now) == 0 || waits(&now): // with a deadline, the sweep that finds it overdue acts
			if err := s.care(ctx, &now, decide.Cause{OwnerDead: true}, "this process could not write the outcome"); err != nil {
				return err
			}
		}
	}
	return nil
}

// timeout returns the timeout of the deadline row that the table has for the record; 0:
// it has none.
func (c *core) timeout(r *StoredRecord) time.Duration {
	known, _, err := c.recognize(r)
	if err != nil {
		return 0
	}
	timeout, _ := c.table.Timeout(known.State, known.Origin)
	return timeout
}

// overdue acts on objects past their deadlines. A transitional state counts even if
// it has no deadline row: another version of the table has set the deadline.
func (s *sweep) overdue(ctx context.Context) error {
	leaves := func(state int) bool { return s.transitional(state) || s.shortest(state) > 0 }
	return s.inStates(ctx, leaves, Query{Overdue: true}, s.late)
}

// late acts on an object past its deadline.
func (s *sweep) late(ctx context.Context, r *StoredRecord) error {
	return s.care(ctx, r, decide.Cause{Overdue: true}, deadlinePassed(r.Deadline))
}

// ownerless acts on transitional objects that have neither an owner nor a deadline
// in the table. It reports those whose deadline in the table counts from an unknown time, and
// moves none of them: another program may be at work.
func (s *sweep) ownerless(ctx context.Context) error {
	return s.inStates(ctx, s.transitional, Query{NoDeadline: true, Unowned: true}, func(ctx context.Context, r *StoredRecord) error {
		switch {
		case s.timeout(r) == 0:
			return s.care(ctx, r, decide.Cause{OwnerDead: true}, noOwner)
		case r.ChangedAt.IsZero() && !s.seen[r.ID]:
			return s.add(SweepResult{Key: r.Key, From: r.State, Operation: r.Operation, Cause: noOwner, Resolution: NeedsOperator})
		}
		return nil
	})
}

// undated acts on transitional objects without a deadline whose state has one in the
// table, see [Manager.Sweep]. The query has their age, because the clock of the store
// counts: for the shortest timeout of the table first, and for a longer one only if that
// finds an object which has it.
func (s *sweep) undated(ctx context.Context) error {
	dated := func(state int) bool { return s.transitional(state) && s.shortest(state) > 0 }
	var next time.Duration
	for state := range s.table.States {
		if dated(state) {
			next = min(s.shortest(state), cmp.Or(next, s.shortest(state)))
		}
	}
	for next > 0 {
		age := next
		next = 0
		err := s.inStates(ctx, dated, Query{NoDeadline: true, UnchangedFor: age}, func(ctx context.Context, r *StoredRecord) error {
			switch timeout := s.timeout(r); {
			case timeout == 0 || waits(r):
				return nil
			case timeout <= age:
				return s.care(ctx, r, decide.Cause{Overdue: true}, deadlinePassed(r.ChangedAt.Add(timeout)))
			case next == 0 || timeout < next:
				next = timeout
			}
			return nil
		})
		if err != nil && !errors.Is(err, errors.ErrUnsupported) { // a table of the user's may have no column for the age
			return err
		}
	}
	return nil
}

// transitional reports whether a state is transitional.
func (c *core) transitional(state int) bool { return c.table.States[state].Kind == fsm.Transitional }

// shortest returns the shortest timeout of the rows that leave a state; 0: none has one.
func (c *core) shortest(state int) (timeout time.Duration) {
	for i := range c.table.Rows {
		row := &c.table.Rows[i]
		if row.Timeout > 0 && slices.Contains(row.From, state) {
			timeout = min(row.Timeout, cmp.Or(timeout, row.Timeout))
		}
	}
	return timeout
}

// inStates is each for the objects in the states that a condition holds for, in records of
// all versions.
func (s *sweep) inStates(ctx context.Context, condition func(state int) bool, q Query, f func(context.Context, *StoredRecord) error) error {
	for i := range s.table.States {
		if condition(i) {
			q.States = append(q.States, s.storedNames(s.table.States[i].Name)...)
		}
	}
	if len(q.States) == 0 {
		return nil
	}
	return s.each(ctx, q, f)
}

// each calls f for the records of this machine that a query selects, without
// payloads.
func (s *sweep) each(ctx context.Context, q Query, f func(context.Context, *StoredRecord) error) error {
	q.Machine, q.WithoutPayload = s.table.Name, true
	return s.eachRecord(ctx, q, func(r *StoredRecord) error { return f(ctx, r) })
}

// eachRecord calls f for the records that a query selects, page after page.
func (c *core) eachRecord(ctx context.Context, q Query, f func(*StoredRecord) error) error {
	q.Limit = MaxPage
	for {
		limited, stop := context.WithTimeout(ctx, callWithin)
		found, err := c.list(limited, q)
		stop()
		if err != nil {
			return err
		}
		for i := range found {
			if err := f(&found[i]); err != nil {
				return err
			}
		}
		if len(found) < q.Limit {
			return nil
		}
		q.After = found[len(found)-1].ID
	}
}

// care does what is decided about one object. Its error ends the sweep; an error
// about the object alone is in the result. The text is the cause, for the result and the
// history.
func (s *sweep) care(ctx context.Context, r *StoredRecord, cause decide.Cause, text string) error {
	if s.seen[r.ID] { // found a second time, and nothing helped the first time
		return nil
	}
	result := SweepResult{Key: r.Key, From: r.State, Operation: r.Operation, Owner: r.Owner, Overdue: cause.Overdue, Cause: text}
	if cause.OwnerDead {
		var err error
		if result.OwnerDead, err = s.ownerDead(ctx, r); err != nil {
			return err
		}
	}
	known, _, err := s.recognize(r)
	if err != nil {
		result.resolve("", err)
		return s.add(result)
	}
	result.From = r.State
	ask, care := decide.Sweep(s.table, &known, cause)
	switch care {
	case decide.LeaveAlone:
		return nil
	case decide.NeedsOperator:
		result.Resolution, result.Manual = NeedsOperator, s.table.States[known.State].Manual
	case decide.NoRow:
		result.Resolution = NoRow
	case decide.FireEvent:
		if s.most > 0 {
			result.Resolution, result.Event, result.Actor = Unswept, s.table.Events[ask.Event], ask.Actor
		} else {
			s.fire(ctx, r, &known, ask, &result)
		}
	}
	if err := s.add(result); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return Ended(ctx)
	}
	return nil
}

// add adds a result. Its error ends a sweep that has enough of them.
func (s *sweep) add(result SweepResult) error {
	s.seen[result.ID] = true
	s.results = append(s.results, result)
	if len(s.results) == s.most {
		return errEnough
	}
	return nil
}

// fire fires the event of the deadline row, or the one that was observed.
func (s *sweep) fire(ctx context.Context, r *StoredRecord, known *decide.Record, ask decide.Request, result *SweepResult) {
	event := s.table.Events[ask.Event]
	if s.observe != nil {
		seen, err := s.look(ctx, r)
		if err != nil {
			result.resolve("", err)
			return
		}
		// The deadline's own event by the sweeper means its row.
		if own := seen.event == ask.Event && seen.actor == ask.Actor; seen.actor != "" && !own {
			event, ask = seen.name, decide.Request{Verb: decide.Fire, Event: seen.event, Actor: seen.actor}
		}
	}
	result.Event, result.Actor = event, ask.Actor
	// The object is moved from the record that was found, and from no other.
	move := &request{
		core: s.core, verb: "sweep", key: r.Key, event: event, ask: ask, Change: Change[[]byte]{Reason: result.Cause}, pinned: r.Revision, once: s.once,
		attempt: attempt{before: *r},
	}
	how, err := Moved, error(nil)
	limited, stop := context.WithTimeout(ctx, callWithin)
	defer stop()
	if ask.Redoes(s.table, known) {
		how, err = s.redo(limited, r, move)
	} else if _, err = apply(limited, []*request{move}, nil); err != nil {
		err = move.fail(limited, err)
	}
	switch {
	case err != nil:
	case move.written():
		result.To = move.change.To.State
	case how == Moved:
		err = fmt.Errorf("%w: the table ignores %s", fsm.ErrNotAllowed, event)
	}
	result.resolve(how, err)
}

// look calls Config.Observe with the whole record, if that is still the one that
// was found.
func (s *sweep) look(ctx context.Context, r *StoredRecord) (sighting, error) {
	now, err := s.get(ctx, r.Key)
	switch {
	case err != nil:
		return sighting{}, err
	case now.Revision != r.Revision:
		return sighting{}, &ConflictError{Expect: r.Revision, From: r.State, Current: now}
	}
	if _, _, err := s.recognize(&now); err != nil {
		return sighting{}, err
	}
	return s.observe(ctx, now)
}

var errWaits = errors.New("lifecycle: its work waits for its turn in this process")

// redo starts the operation of a dead owner again, with its work in this process.
func (s *sweep) redo(ctx context.Context, r *StoredRecord, move *request) (Resolution, error) {
	if !s.canDo(r.Work) {
		return NoHandler, nil
	}
	if s.tasks.waits(r) { // behind work of the same object that hangs, every deadline would add one more
		return "", errWaits
	}
	full, err := s.core.get(ctx, r.Key) // the arguments were not listed
	if err != nil {
		return "", err
	}
	work, err := recordedWork(&full)
	if err != nil {
		return "", err
	}
	if err = newOperation(s.core, work, move).submit(ctx); errors.Is(err, errNoWork) {
		return Moved, nil
	}
	return Redone, err
}
