package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/decide"
	"github.com/interlock-go/interlock/queue"
)

// DoTogether is [Manager.Do] for an operation that other objects take part in:
// a disk that is attached changes, and the machine that it is attached to.
//
// The parts are admitted in the same commit as the object itself, all of them or
// none, as by [Together]. The work takes the turns of all of them in the queue.
// Its outcome is written for all of them in one commit as well, for each by the
// events of its own manager; a part that somebody else has moved meanwhile, that
// has no event for it, or that is foreign now ([ErrForeign]), is left as it is.
// [Task.With] tells the work the operations of its parts. A part
// that the event leaves at rest has no outcome.
//
// The parts belong to this process as the object does. If it dies, each is looked
// after by the sweeps of its own manager, by the row of its own table.
//
// Errors: those of Do and Together; [ErrInvalid] for a part whose manager has no
// Worker or Done, or another Owner, and for a queue that takes one key at a time.
func (m *Manager[S, E, T]) DoTogether(ctx context.Context, id string, e E, actor fsm.Actor, work Work, change *Change[T], parts ...AnyPart) (*Handle[S, T], error) {
	steps := []Step[E]{{Event: e, Work: work}}
	err := m.checkSteps(steps)
	if err == nil {
		err = checkParts(parts)
	}
	for i := 0; i < len(parts) && err == nil; i++ {
		err = parts[i].joins(m.store, m.owner)
	}
	if err != nil {
		c := m.call("do", id, actor)
		c.event = e
		return nil, c.fail(err)
	}
	o := m.operation()
	o.with = parts
	return m.do(ctx, o, id, actor, steps, change)
}

// Companion is the operation of an object that takes part in that of another.
type Companion struct {
	Key
	Operation OpID
}

// manyQueue is a [Queue] that takes actions of several keys. A [queue.Queuer] of
// keys is one.
type manyQueue interface {
	SubmitAll(ctx context.Context, keys []Key, act *queue.Action) (*queue.Ticket[Key], error)
}

// enqueue gives an action its place in the lanes of a key and of further ones.
func (m *Manager[S, E, T]) enqueue(ctx context.Context, key Key, also []Key, act *queue.Action) (*queue.Ticket[Key], error) {
	if len(also) == 0 {
		return m.queue.Submit(ctx, key, act)
	}
	many, ok := m.queue.(manyQueue)
	if !ok {
		return nil, fmt.Errorf("%w: a queue that takes one key at a time", ErrInvalid)
	}
	keys := []Key{key}
	for _, k := range also {
		if !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	return many.SubmitAll(ctx, keys, act)
}

// lanes are the keys of the other objects whose turn the operation takes.
func (o *operation[S, E, T]) lanes(w *Work) []Key {
	if len(o.with) == 0 {
		return w.Also
	}
	keys := slices.Clone(w.Also)
	for _, p := range o.with {
		keys = append(keys, p.key())
	}
	return keys
}

// companions are the operations of the parts, once they are admitted.
func (o *operation[S, E, T]) companions() (list []Companion) {
	for _, p := range o.with {
		if of, ok := p.operation(); ok {
			list = append(list, Companion{p.key(), of})
		}
	}
	return list
}

// concludeTogether is conclude for an operation with parts. Without a call, the
// operation itself is lost, and only its parts are ended.
//
// A part that the table or another operation refuses, or that has become foreign, is
// left out: whoever moved it answers for it. If the operation itself is refused, its parts are ended all
// the same: nobody else does their work.
func (o *operation[S, E, T]) concludeTogether(ctx context.Context, c *call[S, E, T], outcome Outcome, reason string) error {
	var ending []AnyPart
	defer func() { // also if somebody's code panics
		for _, p := range ending {
			p.looseEnd()
		}
	}()
	for attempt := 1; ; attempt++ {
		ending = nil
		for _, p := range o.with {
			if _, ok := p.operation(); ok {
				ending = append(ending, p.ending(outcome, reason))
			}
		}
		parts := ending
		if c != nil {
			parts = append([]AnyPart{&Part[S, E, T]{c: c}}, ending...)
		}
		overtaken, err := conclude(ctx, parts)
		if !overtaken || attempt == maxAttempts {
			return err
		}
	}
}

// conclude commits the parts that are not refused, and what goes along with them.
// If it is overtaken, nothing is written, and who decides anew may decide
// something else.
func conclude(ctx context.Context, parts []AnyPart) (overtaken bool, err error) {
	j := joint{commit: Commit{Token: NewToken()}, seen: make(map[Key]bool)}
	var along []AnyPart
	for _, p := range parts {
		ch, also, err := p.prepare(ctx)
		switch {
		case p.refused() || err == nil && ch == nil:
			continue
		case err != nil:
			return false, err
		}
		j.add(p, ch, also)
		j.seen[p.key()] = true
		more, err := p.along(ctx, ch)
		if err != nil {
			if lost := j.moved(ctx, p.store(), nil, err); lost != nil {
				return true, &alongError{lost}
			}
			return false, err
		}
		j.pin(more.Require)
		along = append(along, more.Parts...)
	}
	j.asked = len(j.writes)
	if j.asked == 0 {
		return false, nil
	}
	if culprit, err := j.gather(ctx, parts[0].store(), along); err != nil {
		if lost := j.moved(ctx, parts[0].store(), culprit, err); lost != nil {
			return true, &alongError{lost}
		}
		return false, &alongError{culprit.fail(err)}
	}
	if lost, err := j.writes[0].send(ctx, &j.commit); err != nil {
		if j.overtaken(err) {
			return true, &alongError{err}
		}
		return lost != nil, err
	}
	j.written(0)
	return false, nil
}

func (p *Part[S, E, T]) refused() bool { return p.c.d.Err != nil }

// joins makes the part one of an operation of this owner.
func (p *Part[S, E, T]) joins(store Store, owner *Owner) error {
	m := p.c.m
	if err := oneStore(m.store, store); err != nil {
		return err
	}
	switch {
	case m.worker == "" || len(m.events.Done) == 0:
		return fmt.Errorf("%w: the Config of %s says no Worker, or no event for Done", ErrInvalid, m.table.Name)
	case m.owner != owner:
		return fmt.Errorf("%w: the manager of %s has another owner", ErrInvalid, m.table.Name)
	}
	p.c.joins = true
	return nil
}

// operation returns the operation that the part has begun or gone on with, false
// if it is over.
func (p *Part[S, E, T]) operation() (OpID, bool) {
	if c := p.c; c.wrote {
		return c.after().Operation, c.m.table.States[c.d.State].Kind == fsm.Transitional
	}
	return 0, false
}

// ending is the outcome of the part.
func (p *Part[S, E, T]) ending(outcome Outcome, reason string) AnyPart {
	m := p.c.m
	c := m.call("outcome", p.c.id, m.worker)
	c.d = decide.Decision{} // nothing was decided yet
	c.outcome, c.ends, c.reason = outcome, m.events.Of(decide.Outcome(outcome)), reason
	c.outcomeOf = decide.Request{Verb: decide.Report, Actor: m.worker, Operation: uint64(p.c.after().Operation), Owned: true}
	c.outcomeOf.Owner, c.outcomeOf.Epoch = m.self()
	return &Part[S, E, T]{c: c}
}

// beat prolongs the deadline of the part, as long as it is the operation's.
func (p *Part[S, E, T]) beat(ctx context.Context) error {
	operation, ok := p.operation()
	if !ok {
		return nil
	}
	owner, epoch := p.c.m.self()
	err := p.c.m.beat(ctx, &Task{Key: p.key(), Operation: operation, Owner: owner, Epoch: epoch})
	if errors.Is(err, ErrStale) {
		return nil
	}
	return err
}

// looseEnd notes that nobody here does the operation of a part any more, although it
// is, or may be, still going on: sweeps of its manager say so if the table has no
// deadline for it. The part is an ending that may not be written, or one whose
// admission may be.
func (p *Part[S, E, T]) looseEnd() {
	c, t := p.c, &Task{Key: p.key()}
	switch {
	case c.wrote, c.d.Err != nil && c.d.Verdict == decide.Stale:
		return
	case c.outcome != 0:
		t.Operation, t.Owner, t.Epoch = OpID(c.outcomeOf.Operation), c.outcomeOf.Owner, c.outcomeOf.Epoch
	case c.d.Write && c.m.table.States[c.d.State].Kind == fsm.Transitional:
		r := c.after()
		t.Operation, t.Owner, t.Epoch = r.Operation, r.Owner, r.Epoch
	default:
		return
	}
	c.m.tasks.unsettled(t)
}
