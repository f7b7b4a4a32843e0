package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/decide"
)

// Part is one of several changes that are made in one commit, see [Together]. It
// is made by [Manager.Firing], [Manager.Creating] or [Manager.Adding], used once,
// and not by several goroutines.
type Part[S, E comparable, T any] struct {
	c       *call[S, E, T]
	payload T
}

// Record returns the record as the commit has left it. It is the zero Record
// before, and after an error.
func (p *Part[S, E, T]) Record() (rec Record[S, T]) {
	p.c.record(&rec)
	return rec
}

// AnyPart is a [Part] of any manager.
type AnyPart interface {
	made() bool
	store() Store
	key() Key
	check() error
	prepare(ctx context.Context) (*StoredChange, *Change[struct{}], error)
	along(ctx context.Context, ch *StoredChange) (Along, error)
	send(ctx context.Context, commit *Commit) (lost *ConflictError, err error)
	written(ch *StoredChange, token Token)
	tell()
	creates() bool
	forget()
	fail(err error) error

	// For [Manager.DoTogether].
	joins(store Store, owner *Owner) error
	operation() (OpID, bool)
	ending(outcome Outcome, reason string) AnyPart
	refused() bool
	beat(ctx context.Context) error
	looseEnd()
}

// Firing is what [Manager.Fire] does, as a part of a commit.
func (m *Manager[S, E, T]) Firing(id string, e E, actor fsm.Actor, change *Change[T]) *Part[S, E, T] {
	c := m.call("fire", id, actor)
	c.event = e
	c.fires(change)
	return &Part[S, E, T]{c: c}
}

// Creating is what [Manager.Create] does, as a part of a commit. The change's
// Edit works on the given payload.
func (m *Manager[S, E, T]) Creating(id string, e E, actor fsm.Actor, payload T, change *Change[T]) *Part[S, E, T] {
	c := m.call("create", id, actor)
	c.event, c.payload = e, payload
	c.changes(change)
	c.q.Verb, c.q.Event = decide.Create, m.machine.EventIndex(e)
	return &Part[S, E, T]{c: c}
}

// Adding is what [Manager.Add] does, as a part of a commit. The change's Edit
// works on the given payload.
func (m *Manager[S, E, T]) Adding(id string, actor fsm.Actor, payload T, change *Change[T]) *Part[S, E, T] {
	c := m.call("add", id, actor)
	c.payload = payload
	c.changes(change)
	c.q.Verb = decide.Add
	return &Part[S, E, T]{c: c}
}

// Together makes several changes in one commit, of objects of one or several
// managers of one store: all of them, or none.
//
//	lease := leases.Firing("l1", Start, Service, nil)
//	err := lifecycle.Together(ctx, lease, reservations.Firing("r1", Reserve, Service, nil))
//	lease.Record()
//
// Every part is decided on the object as it is, by the rules of the verb that it
// stands for; guards and Edit of one part do not see what another part changes.
// The conditions of all parts are conditions of the commit, on the states before
// it, and their messages are appended in the order of the parts. A part whose
// event the table ignores changes nothing and is no condition.
//
// The error is that of the part that fails, as of its own verb, an [*Error] about
// its object: [ErrConflict] too, of the first object that somebody else has
// moved. Further [ErrInvalid] without parts, for one that is nil, for two parts
// about one object, and for parts of different stores; [errors.ErrUnsupported] if the store has no
// commit of so many changes and conditions. Nothing is written then, but for
// [ErrUnknownOutcome].
func Together(ctx context.Context, parts ...AnyPart) error {
	if len(parts) == 0 {
		return fmt.Errorf("%w: no parts of a commit", ErrInvalid)
	}
	if err := checkParts(parts); err != nil {
		return err
	}
	for attempt := 1; ; attempt++ {
		lost, culprit, err := together(ctx, parts)
		if err == nil {
			return nil
		}
		again := lost != nil && culprit.creates() && !lost.Current.Exists() && attempt < maxAttempts
		if again {
			continue // only the numbers of an absent object moved on
		}
		if lost != nil && culprit.creates() && lost.Current.Exists() {
			err = &existsError{lost}
		}
		for _, p := range parts {
			p.forget()
		}
		return culprit.fail(err)
	}
}

// together tries once, or again where only what goes along was overtaken. The
// culprit is the part that the error is about.
func together(ctx context.Context, parts []AnyPart) (lost *ConflictError, culprit AnyPart, err error) {
	for attempt := 1; ; attempt++ {
		j := joint{commit: Commit{Token: NewToken()}}
		culprit, err = j.gather(ctx, parts[0].store(), parts)
		for _, p := range j.writes {
			if slices.Contains(parts, p) {
				j.asked++
			}
		}
		switch {
		case err != nil:
			along := culprit
			if slices.Contains(parts, culprit) {
				along = nil
			}
			if lost = j.moved(ctx, parts[0].store(), along, err); lost == nil {
				return nil, culprit, err
			}
			err = lost
		case len(j.writes) == 0:
			return nil, nil, nil
		default:
			lost, err = j.writes[0].send(ctx, &j.commit)
		}
		switch {
		case err != nil && j.overtaken(err) && attempt < maxAttempts:
			continue
		case lost != nil && lost.Change == len(j.writes):
			return nil, culprit, err
		case lost != nil:
			return lost, j.writes[lost.Change], err
		case err != nil:
			return nil, j.writes[whose(err, j.needs)], err
		}
		j.written(0)
		return nil, nil, nil
	}
}

// whose returns the part whose condition has failed; of any other error, which is
// about the whole commit, the first.
func whose(err error, needs [][]Precondition) int {
	failed, ok := errors.AsType[*PreconditionError](err)
	if !ok {
		return 0
	}
	return max(0, slices.IndexFunc(needs, func(list []Precondition) bool {
		return slices.ContainsFunc(list, func(p Precondition) bool {
			return p.Key == failed.Key && slices.Equal(p.States, failed.States)
		})
	}))
}

// checkParts refuses what is no part.
func checkParts(parts []AnyPart) error {
	for i, p := range parts {
		if p == nil || !p.made() {
			return fmt.Errorf("%w: part %d is not made by a manager", ErrInvalid, i)
		}
	}
	return nil
}

func (p *Part[S, E, T]) made() bool { return p != nil && p.c != nil }

func (p *Part[S, E, T]) store() Store { return p.c.m.store }

func (p *Part[S, E, T]) key() Key { return p.c.m.key(p.c.id) }

func (p *Part[S, E, T]) check() error { return p.c.check() }

func (p *Part[S, E, T]) creates() bool { return p.c.q.Verb < decide.Fire }

// prepare returns nothing to write for an event that the table ignores.
func (p *Part[S, E, T]) prepare(ctx context.Context) (*StoredChange, *Change[struct{}], error) {
	c := p.c
	err := c.prepare(ctx)
	if c.d.Err == decide.ErrExists {
		return nil, nil, &existsError{&ConflictError{Current: c.before}}
	}
	if err != nil || !c.d.Write {
		return nil, nil, err
	}
	c.lent = true
	if p.payload, err = c.plan(); err != nil {
		if _, edited := errors.AsType[*editError](err); !edited && errors.Is(err, ErrForeign) {
			err = c.refuses(err)
		}
		return nil, nil, err
	}
	return &c.one[0], &Change[struct{}]{Require: c.draft.Require, Messages: c.draft.Messages}, nil
}

func (p *Part[S, E, T]) along(ctx context.Context, ch *StoredChange) (Along, error) {
	return p.c.m.goesAlong(ctx, ch)
}

func (p *Part[S, E, T]) send(ctx context.Context, commit *Commit) (*ConflictError, error) {
	err := p.c.send(ctx, commit)
	lost, conflict := p.c.lost(err)
	if !conflict || lost.Change >= len(commit.Changes) {
		return nil, err
	}
	return lost, err
}

func (p *Part[S, E, T]) written(ch *StoredChange, token Token) {
	p.c.one[0], p.c.draft.Token = *ch, token
	p.c.written(p.payload)
}

func (p *Part[S, E, T]) tell() { p.c.tell() }

// forget drops the record of an event that the table ignores.
func (p *Part[S, E, T]) forget() {
	p.c.ignored = false
}

func (p *Part[S, E, T]) fail(err error) error { return p.c.fail(err) }
