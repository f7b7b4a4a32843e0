package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// Along is what goes along with a change of an object, in the same commit: see
// [Config.Along]. The zero Along is nothing.
//
// A part is decided on the object as it is then. If it was chosen for what the
// object was when somebody looked, its [Change.Expect] is to say so.
type Along struct {
	Parts   []AnyPart      // changes of other objects of the same store
	Require []Precondition // conditions on others
}

// alongError is the error of what was to go along.
type alongError struct{ err error }

func (e *alongError) Error() string { return e.err.Error() }
func (e *alongError) Unwrap() error { return e.err }

// joint is a commit of several changes: those that were asked for, and what goes
// along with them.
type joint struct {
	commit Commit
	writes []AnyPart        // of the changes of parts, which are the last of the commit
	needs  [][]Precondition // of each of them, as it was asked for
	seen   map[Key]bool     // whose parts they are
	asked  int              // how many changes somebody has asked for; they come first
	pins   []Precondition   // of what goes along
}

// gather prepares parts and, with them, what goes along, all of one store. The
// culprit is the part that the error is about.
func (j *joint) gather(ctx context.Context, store Store, parts []AnyPart) (culprit AnyPart, err error) {
	for _, p := range parts {
		if err := oneStore(p.store(), store); err != nil {
			return p, err
		}
		if j.seen[p.key()] { // also if the table ignores one of them
			return p, fmt.Errorf("%w: two parts about %s", ErrInvalid, p.key().text())
		}
		if j.seen == nil {
			j.seen = make(map[Key]bool)
		}
		j.seen[p.key()] = true
		if err := p.check(); err != nil {
			return p, err
		}
	}
	var along []AnyPart
	for _, p := range parts {
		ch, also, err := p.prepare(ctx)
		if err != nil {
			return p, err
		}
		if ch == nil {
			continue
		}
		j.add(p, ch, also)
		more, err := p.along(ctx, ch)
		if err != nil {
			return p, err
		}
		j.pin(more.Require)
		along = append(along, more.Parts...)
	}
	if len(along) == 0 {
		return nil, nil
	}
	return j.gather(ctx, store, along)
}

// oneStore refuses two stores. A store that cannot be compared cannot be told
// from another one.
func oneStore(a, b Store) error {
	switch {
	case !reflect.ValueOf(a).Comparable():
		return fmt.Errorf("%w: parts of a commit in a %T, which cannot be compared", ErrInvalid, a)
	case !reflect.ValueOf(b).Comparable() || a != b:
		return fmt.Errorf("%w: parts of one commit in different stores", ErrInvalid)
	}
	return nil
}

func (j *joint) add(p AnyPart, ch *StoredChange, also *Change[struct{}]) {
	j.writes, j.needs = append(j.writes, p), append(j.needs, also.Require)
	j.commit.Changes = append(j.commit.Changes, *ch)
	j.commit.Require = append(j.commit.Require, also.Require...)
	j.commit.Messages = append(j.commit.Messages, also.Messages...)
}

// written notes the commit in all parts, whose changes begin there, and then tells
// the observers.
func (j *joint) written(begin int) {
	for i, p := range j.writes {
		p.written(&j.commit.Changes[begin+i], j.commit.Token)
	}
	for _, p := range j.writes {
		p.tell()
	}
}

func (j *joint) pin(pins []Precondition) {
	j.pins = append(j.pins, pins...)
	j.commit.Require = append(j.commit.Require, pins...)
}

// overtaken reports whether the answer to the commit says that somebody has moved
// what goes along, or what it depends on: who is asked again will say something
// else.
func (j *joint) overtaken(err error) bool {
	if errors.Is(err, ErrUnknownOutcome) {
		return false
	}
	if lost, ok := err.(*ConflictError); ok {
		return lost.Change >= j.asked
	}
	unmet, ok := err.(*PreconditionError)
	return ok && slices.ContainsFunc(j.pins, func(p Precondition) bool { return p.Key == unmet.Key })
}

// moved returns the conflict that a commit of what is gathered would meet, if it
// would: who has failed with err was asked later, when another object of the commit
// was no longer what the change of it was decided on, or is itself no longer what
// it was expected to be. The culprit is nil, or a part that goes along.
func (j *joint) moved(ctx context.Context, store Store, culprit AnyPart, err error) *ConflictError {
	if lost, ok := err.(*ConflictError); ok && culprit != nil && lost.Current.Key == culprit.key() {
		return &ConflictError{Change: len(j.commit.Changes), Expect: lost.Expect, From: lost.From, Current: lost.Current}
	}
	for i := range j.commit.Changes {
		ch := &j.commit.Changes[i]
		now, err := store.Get(ctx, ch.To.Key)
		if err == nil && now.Revision != ch.Expect {
			return &ConflictError{Change: i, Expect: ch.Expect, From: ch.From, Current: now}
		}
	}
	return nil
}

// commitAlong is commit for a manager with Config.Along.
func (c *call[S, E, T]) commitAlong(ctx context.Context, payload T) error {
	for attempt := 1; ; attempt++ {
		c.sent = false
		j := joint{asked: 1, seen: map[Key]bool{c.m.key(c.id): true}, commit: Commit{
			Token: NewToken(), Changes: slices.Clone(c.one[:]),
			Require: slices.Clone(c.draft.Require), Messages: slices.Clone(c.draft.Messages),
		}}
		var culprit AnyPart
		along, err := c.m.goesAlong(ctx, &j.commit.Changes[0])
		if err == nil {
			j.pin(along.Require)
			culprit, err = j.gather(ctx, c.m.store, along.Parts)
		}
		if err == nil {
			c.lent = true
			if err = c.send(ctx, &j.commit); err == nil {
				c.lent, c.draft.Token, c.one[0] = false, j.commit.Token, j.commit.Changes[0]
				c.written(payload)
				j.written(1)
				c.tell()
				return nil
			}
		} else if lost := j.moved(ctx, c.m.store, culprit, err); lost != nil {
			c.sent, err = true, lost
		} else if culprit != nil {
			return &alongError{culprit.fail(err)}
		}
		if !j.overtaken(err) {
			return err
		}
		if attempt == maxAttempts {
			c.sent = false // the conflict is not about this object
			return &alongError{err}
		}
	}
}

// goesAlong asks what goes along with a change.
func (m *Manager[S, E, T]) goesAlong(ctx context.Context, ch *StoredChange) (Along, error) {
	if m.along == nil {
		return Along{}, nil
	}
	along, err := m.along(ctx, ch)
	if err == nil {
		err = checkParts(along.Parts)
	}
	for i := range along.Require {
		if err == nil {
			err = along.Require[i].check()
		}
	}
	if err != nil {
		return along, &alongError{err}
	}
	return along, nil
}
