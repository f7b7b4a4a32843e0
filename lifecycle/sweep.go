package lifecycle

import (
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

// Sweep looks once at every object that is stuck: its deadline has passed, or the
// owner of its operation is dead. The deadline row of the table is the policy: back
// to the origin, to a failed state, or the operation again, whose work this process
// then does. [Config.Observe] may look at the outside world first and choose another
// event.
//
// Clocks decide when Sweep acts, compare-and-set decides which writer wins: several
// sweepers, and owners that come back, never do the same work twice. Sweep reads
// three indexed ranges without payloads: objects past their deadlines, objects of
// owners that are not alive, and transitional objects with neither deadline nor
// owner. All other objects cost nothing.
//
// Sweep also ends the work of this manager whose operation another process has
// taken. Call it at the start of a process, after [Join]: it finds what an earlier
// process of the same name has left, without waiting for deadlines.
//
// The result has an entry for each stuck object, moved or not. The error is the
// store's or the context's and ends the sweep; the entries until then are returned
// too.
func (m *Manager[S, E, T]) Sweep(ctx context.Context) ([]SweepResult, error) {
	return m.core.sweep(ctx)
}

// Sweeper is a [Manager] of any machine.
type Sweeper interface {
	Sweep(ctx context.Context) ([]SweepResult, error)
}

// Run sweeps the objects of all managers until ctx ends, and then returns nil: at
// random times around every, up to a fifth earlier or later, so that several
// processes do not sweep at the same moment. The function report, if it is not nil,
// receives the results and the error of each manager's sweep. After an error the
// next sweep tries again. An interval of 0 is 10 seconds; a negative one is
// [ErrInvalid]. Run starts no goroutine.
func Run(ctx context.Context, every time.Duration, report func([]SweepResult, error), managers ...Sweeper) error {
	if every < 0 {
		return fmt.Errorf("%w: sweeping every %v", ErrInvalid, every)
	}
	if every == 0 {
		every = 10 * time.Second
	}
	every = min(every, math.MaxInt64/2) // with its jitter
	for {
		pause := time.NewTimer(every - every/5 + rand.N(every/5*2+1))
		select {
		case <-ctx.Done():
			pause.Stop()
			return nil
		case <-pause.C:
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
	epochs  map[string]uint64 // of the owners that are alive, by name; 0: dead
}

func (c *core) sweep(ctx context.Context) ([]SweepResult, error) {
	s := &sweep{core: c, seen: map[string]bool{}, epochs: map[string]uint64{}}
	for _, step := range []func(context.Context) error{s.endLost, s.expireOwners, s.overdue, s.orphaned, s.ownerless} {
		if err := step(ctx); err != nil {
			return s.results, c.failed("sweep", "", err)
		}
	}
	return s.results, nil
}

// endLost ends work of this process whose operation is over. It reports operations
// that this process has ended without knowing what was written, if they go on.
func (s *sweep) endLost(ctx context.Context) error {
	running, unresolved := s.tasks.all()
	for _, t := range running {
		now, err := s.store.Get(ctx, t.Key)
		if err != nil {
			return err
		}
		s.tasks.taken(&now)
	}
	for _, t := range unresolved {
		now, err := s.store.Get(ctx, t.Key)
		if err != nil {
			return err
		}
		if !t.owns(&now) {
			s.tasks.resolved(t)
			continue
		}
		// If it has a deadline, the sweep that finds it overdue acts.
		if !s.hasDeadline(&now) || waits(&now) {
			if err := s.care(ctx, &now, decide.Cause{OwnerDead: true}); err != nil {
				return err
			}
		}
	}
	return nil
}

// hasDeadline reports whether the table has a deadline row for the record.
func (c *core) hasDeadline(r *StoredRecord) bool {
	known, err := c.known(r)
	if err != nil {
		return false
	}
	_, row := c.table.Deadline(known.State, known.Origin)
	return row >= 0
}

// expireOwners declares owners dead that have sent no heartbeat within their TTL.
// From then on the store accepts nothing that they write: their next heartbeat
// fails, and other processes take their operations by compare-and-set.
func (s *sweep) expireOwners(ctx context.Context) error {
	if s.owners == nil {
		return nil
	}
	expire := &sweep{core: s.owners, seen: map[string]bool{}}
	return expire.overdue(ctx)
}

// overdue acts on objects past their deadlines. A transitional state counts even if
// it has no deadline row: another version of the table has set the deadline.
func (s *sweep) overdue(ctx context.Context) error {
	states := s.statesWith(func(state int) bool {
		return s.table.States[state].Kind == fsm.Transitional || slices.ContainsFunc(s.table.Rows, func(row fsm.TableRow) bool {
			return row.Timeout > 0 && slices.Contains(row.From, state)
		})
	})
	if len(states) == 0 {
		return nil
	}
	return s.each(ctx, Query{States: states, Overdue: true}, func(r *StoredRecord) error {
		return s.care(ctx, r, decide.Cause{Overdue: true})
	})
}

// orphaned acts on objects whose owner is not alive.
func (s *sweep) orphaned(ctx context.Context) error {
	if s.owners == nil {
		return nil
	}
	alive := []OwnerRef{}
	owners := Query{Machine: ownersTable, States: []string{string(ownerAlive)}, WithoutPayload: true}
	err := s.page(ctx, owners, func(r *StoredRecord) error {
		alive = append(alive, OwnerRef{Name: r.ID, Epoch: uint64(r.Operation)})
		s.epochs[r.ID] = uint64(r.Operation)
		return nil
	})
	if err != nil {
		return err
	}
	return s.each(ctx, Query{NotOwnedBy: alive}, func(r *StoredRecord) error {
		dead, err := s.ownerDead(ctx, r)
		if err != nil || !dead {
			return err
		}
		return s.care(ctx, r, decide.Cause{OwnerDead: true})
	})
}

// ownerDead reports whether the owner of a record is dead, or alive with another
// epoch. A record without an owner has no dead one.
func (s *sweep) ownerDead(ctx context.Context, r *StoredRecord) (bool, error) {
	if r.Owner == "" {
		return false, nil
	}
	// The list of owners may be older than the record. The bad schedule: the owners
	// are listed, a process joins and starts an operation, and only then the record
	// of its object is read. Epochs grow: an earlier epoch than the known one is
	// over for good, and any other is read again.
	epoch, known := s.epochs[r.Owner]
	if !known || r.Epoch > epoch {
		owner, err := s.store.Get(ctx, Key{ownersTable, r.Owner})
		if err != nil {
			return false, err
		}
		epoch = 0
		if owner.State == string(ownerAlive) {
			epoch = uint64(owner.Operation)
		}
		s.epochs[r.Owner] = epoch
	}
	return epoch != r.Epoch, nil
}

// ownerless acts on transitional objects that have neither an owner nor a deadline
// in the table.
func (s *sweep) ownerless(ctx context.Context) error {
	states := s.statesWith(func(state int) bool { return s.table.States[state].Kind == fsm.Transitional })
	if len(states) == 0 {
		return nil
	}
	return s.each(ctx, Query{States: states, NoDeadline: true, Unowned: true}, func(r *StoredRecord) error {
		if s.hasDeadline(r) {
			return nil
		}
		return s.care(ctx, r, decide.Cause{OwnerDead: true})
	})
}

// statesWith returns the names of the states that a condition holds for.
func (c *core) statesWith(condition func(state int) bool) (names []string) {
	for i := range c.table.States {
		if condition(i) {
			names = append(names, c.table.States[i].Name)
		}
	}
	return names
}

// each calls f for the records of this machine that a query selects, without
// payloads.
func (s *sweep) each(ctx context.Context, q Query, f func(*StoredRecord) error) error {
	q.Machine, q.WithoutPayload = s.table.Name, true
	return s.page(ctx, q, f)
}

func (s *sweep) page(ctx context.Context, q Query, f func(*StoredRecord) error) error {
	q.Limit = MaxPage
	for {
		found, err := s.store.List(ctx, q)
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
// about the object alone is in the result.
func (s *sweep) care(ctx context.Context, r *StoredRecord, cause decide.Cause) error {
	if s.seen[r.ID] { // found a second time, and nothing helped the first time
		return nil
	}
	result := SweepResult{Key: r.Key, From: r.State, Operation: r.Operation, Owner: r.Owner}
	known, err := s.known(r)
	if err != nil {
		result.resolve(0, err)
		s.add(result)
		return nil
	}
	if cause.OwnerDead {
		if result.OwnerDead, err = s.ownerDead(ctx, r); err != nil {
			return err
		}
	}
	ask, care := decide.Sweep(s.table, &known, cause)
	switch care {
	case decide.LeaveAlone:
		return nil
	case decide.NeedsOperator:
		result.Resolution, result.Manual = NeedsOperator, s.table.States[known.State].Manual
	case decide.NoRow:
		result.Resolution = NoRow
	case decide.FireEvent:
		s.fire(ctx, r, &known, ask, &result)
	}
	s.add(result)
	if ctx.Err() != nil {
		return Ended(ctx)
	}
	return nil
}

func (s *sweep) add(result SweepResult) {
	s.seen[result.ID] = true
	s.results = append(s.results, result)
}

// fire fires the event of the deadline row, or the one that was observed.
func (s *sweep) fire(ctx context.Context, r *StoredRecord, known *decide.Record, ask decide.Request, result *SweepResult) {
	event := s.eventName(ask.Event)
	if s.observe != nil {
		seen, err := s.look(ctx, r)
		if err != nil {
			result.resolve(0, err)
			return
		}
		// The deadline's own event by the sweeper means its row.
		if own := seen.event == ask.Event && seen.actor == ask.Actor; seen.actor != "" && !own {
			event, ask = seen.name, decide.Request{Verb: decide.Fire, Event: seen.event, Actor: seen.actor}
		}
	}
	result.Event, result.Actor = event, ask.Actor
	if ask.Event >= 0 { // the table may not have what was observed
		result.Event = s.eventName(ask.Event)
	}
	// The object is moved from the record that was found, and from no other.
	move := &request{core: s.core, verb: "sweep", id: r.ID, event: event, ask: ask, expect: r.Revision, before: *r}
	if ask.Sweep && r.Work != "" && decide.Redoes(s.table, known.State, known.Origin) {
		s.redo(ctx, r, move, result)
		return
	}
	_, err := apply(ctx, []*request{move}, nil)
	if err != nil {
		err = move.fail(ctx, err)
	}
	result.resolve(Moved, err)
	result.to(move)
}

// look calls Config.Observe with the whole record, if that is still the one that
// was found.
func (s *sweep) look(ctx context.Context, r *StoredRecord) (sighting, error) {
	now, err := s.store.Get(ctx, r.Key)
	switch {
	case err != nil:
		return sighting{}, err
	case now.Revision != r.Revision:
		return sighting{}, &ConflictError{Expect: r.Revision, From: r.State, Current: now}
	}
	return s.observe(ctx, now)
}

// to sets the state that a request has moved its object to.
func (s *SweepResult) to(r *request) {
	if s.Err == nil && r.written() {
		s.To = r.change.To.State
	}
}

var errWaits = errors.New("lifecycle: its work waits for its turn in this process")

// redo starts the operation of a dead owner again, with its work in this process.
func (s *sweep) redo(ctx context.Context, r *StoredRecord, move *request, result *SweepResult) {
	if s.handlers[r.Work] == nil || s.checkWorker() != nil {
		result.Resolution = NoHandler // this process could not do the work, or not report its outcome
		return
	}
	// Behind work of the same object that hangs, every deadline would add one more.
	if s.tasks.waits(r) {
		result.resolve(0, errWaits)
		return
	}
	full, err := s.store.Get(ctx, r.Key) // the arguments were not listed
	if err != nil {
		result.resolve(0, err)
		return
	}
	work, err := recordedWork(&full)
	if err != nil {
		result.resolve(0, err)
		return
	}
	o := newOperation(s.core, work, move)
	if err = o.submit(ctx); errors.Is(err, errNoWork) {
		result.resolve(Moved, nil)
	} else {
		result.resolve(Redone, err)
	}
	result.to(move)
}
