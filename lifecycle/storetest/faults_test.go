package storetest

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

func byID(x, y record) int { return cmp.Compare(x.ID, y.ID) }

// Constructors of the most common faults.

func changed(f func(ch *edit)) fault {
	return fault{change: func(_ *faulty, ch *edit) { f(ch) }}
}

func changedFrom(f func(now record, ch *edit)) fault {
	return fault{change: func(s *faulty, ch *edit) { f(s.now(ch.To.Key), ch) }}
}

func shown(f func(r *record)) fault { return fault{record: func(_ *faulty, r *record) { f(r) }} }

func queried(f func(q *lifecycle.Query)) fault {
	return fault{query: func(_ *faulty, q *lifecycle.Query) { f(q) }}
}

func selecting(f func(q lifecycle.Query, r record) bool) fault {
	return fault{selects: func(_ *faulty, q lifecycle.Query, r record) bool { return f(q, r) }}
}

func keyed(f func(k lifecycle.Key) lifecycle.Key) fault { return fault{key: f} }

func history(f func(list rows) rows) fault {
	return fault{history: func(_ *faulty, _ lifecycle.Key, list rows) rows { return f(list) }}
}

func conflicts(f func(conflict *lifecycle.ConflictError)) fault {
	return fault{after: func(_ *faulty, _, _ *commits, err error) error {
		if conflict, ok := errors.AsType[*lifecycle.ConflictError](err); ok {
			f(conflict)
		}
		return err
	}}
}

// racing replaces a commit of one change that fits by check, pause and write.
func racing(fits func(now record, ch edit) bool) fault {
	return fault{commit: func(s *faulty, ctx context.Context, c *commits) error {
		if ch := c.Changes[0]; len(c.Changes) > 1 || !fits(s.now(ch.To.Key), ch) {
			return s.write(ctx, c)
		}
		s.meet(c.Changes[0].To.Key)
		return s.force(ctx, c)
	}}
}

func asExpected(now record, ch edit) bool { return now.Revision == ch.Expect && now.State == ch.From }

// underLock is a racing store in which a lock of the process prevents the race.
func underLock() fault {
	f := racing(asExpected)
	check := f.commit
	f.apart, f.commit = true, func(s *faulty, ctx context.Context, c *commits) error {
		s.process.Lock()
		defer s.process.Unlock()
		return check(s, ctx, c)
	}
	return f
}

// cached returns the record that this process has read first, until it changes the object.
func cached() fault {
	return fault{
		apart: true,
		read: func(s *faulty, r *record) error {
			if old, ok := s.cache[r.Key]; ok {
				*r = old
			}
			s.cache[r.Key] = *r
			return nil
		},
		after: func(s *faulty, c, _ *commits, err error) error {
			for i := range c.Changes {
				delete(s.cache, c.Changes[i].To.Key)
			}
			return err
		},
	}
}

// owned changes the owner of a commit before it is compared.
func owned(f func(s *faulty, c *commits)) fault {
	return fault{before: func(s *faulty, c *commits) {
		if c.Owner.Name != "" {
			f(s, c)
		}
	}}
}

func lost(f func(r *remote, ctx context.Context, c *commits, err error) error) fault {
	return fault{remote: &remoteFault{lost: f}}
}

func restarting(f func(r *remote)) fault { return fault{remote: &remoteFault{restart: f}} }

var (
	notWritten = lost(func(_ *remote, _ context.Context, _ *commits, err error) error { return err })
	conflicted = lost(func(_ *remote, _ context.Context, c *commits, _ error) error {
		return &lifecycle.ConflictError{Current: c.Changes[0].To}
	})
	written = lost(func(*remote, context.Context, *commits, error) error { return nil })
)

// shift moves the clock of a store years ahead, and wait lets it run during queries.
func shift(_ *faulty, r *record) {
	if !r.ChangedAt.IsZero() {
		r.ChangedAt = r.ChangedAt.AddDate(20, 0, 0)
	}
	if !r.Deadline.IsZero() {
		r.Deadline = r.Deadline.AddDate(20, 0, 0)
	}
}

func wait(*faulty, *lifecycle.Query) { time.Sleep(time.Millisecond) }

// faults are the planted faults, by the demand that finds them.
var faults = func() map[string]map[string]fault {
	all := make(map[string]map[string]fault)
	for _, list := range []map[string]map[string]fault{recordFaults, commitFaults, listFaults, runFaults} {
		for demand, planted := range list {
			if all[demand] == nil {
				all[demand] = make(map[string]fault)
			}
			for name, f := range planted {
				if _, twice := all[demand][name]; twice {
					panic("two faults of " + demand + " are named " + name)
				}
				all[demand][name] = f
			}
		}
	}
	return all
}()

// afterTheFirstCall declares other capabilities at every second call: a demand that passes
// otherwise calls twice.
func afterTheFirstCall() func(has *lifecycle.Capabilities) {
	calls := 0
	return func(has *lifecycle.Capabilities) {
		if calls++; calls%2 == 0 {
			has.OwnClock = true
		}
	}
}

// metadataIsRecent counts a MetadataOnly change as a recent one.
func metadataIsRecent() fault {
	var extended []lifecycle.ChangedObject
	return fault{
		after: func(_ *faulty, c, _ *commits, err error) error {
			if to := &c.Changes[0].To; err == nil && c.Changes[0].MetadataOnly {
				extended = append(extended, lifecycle.ChangedObject{ID: to.ID, Sequence: to.Sequence})
			}
			return err
		},
		recent: func(list []lifecycle.ChangedObject, _ asked) []lifecycle.ChangedObject {
			return slices.Concat(list, extended)
		},
	}
}

// byState is a store whose List reads the objects of one state after the other.
type byState struct{ *faulty }

func (s *byState) List(ctx context.Context, q lifecycle.Query) (found []record, err error) {
	states := q.States
	if len(states) == 0 {
		states = []string{idle, moving}
	}
	for _, state := range states {
		q.States = []string{state}
		list, err := s.faulty.List(ctx, q)
		if err != nil {
			return nil, err
		}
		found = append(found, list...)
		time.Sleep(time.Millisecond)
	}
	slices.SortFunc(found, byID)
	found = slices.CompactFunc(found, func(x, y record) bool { return x.ID == y.ID })
	return found[:min(q.Limit, len(found))], nil
}

func removedHas(f func(r *record)) func(*faulty, *record) {
	return func(_ *faulty, r *record) {
		if !r.Exists() && r.Sequence > 0 {
			f(r)
		}
	}
}

func metadata(f func(now record, ch *edit)) fault {
	return changedFrom(func(now record, ch *edit) {
		if ch.MetadataOnly {
			f(now, ch)
		}
	})
}

func requirement(f func(c *commits, p *lifecycle.Precondition)) func(*faulty, *commits) {
	return func(_ *faulty, c *commits) {
		c.Require = slices.Clone(c.Require)
		for i := range c.Require {
			f(c, &c.Require[i])
		}
	}
}

func eachMessage(
	f func(s *faulty, m *lifecycle.OutboxMessage),
) func(*faulty, int, []lifecycle.OutboxMessage) []lifecycle.OutboxMessage {
	return func(s *faulty, _ int, list []lifecycle.OutboxMessage) []lifecycle.OutboxMessage {
		for i := range list {
			f(s, &list[i])
		}
		return list
	}
}

// checkedBefore checks some preconditions before the commit and not in it.
func checkedBefore(early func(s *faulty, p lifecycle.Precondition) bool) fault {
	return fault{commit: func(s *faulty, ctx context.Context, c *commits) error {
		if err := s.unmet(c); err != nil {
			return s.write(ctx, c)
		}
		free := clone(c)
		free.Require = slices.DeleteFunc(slices.Clone(c.Require), func(p lifecycle.Precondition) bool { return early(s, p) })
		if len(free.Require) < len(c.Require) {
			s.meet(lifecycle.Key{})
		}
		err := s.write(ctx, free)
		c.Changes = free.Changes
		return err
	}}
}

// nowAndThen returns an error instead of every seventh commit.
func nowAndThen(err error) func(s *faulty, ctx context.Context, c *commits) error {
	return func(s *faulty, ctx context.Context, c *commits) error {
		s.mu.Lock()
		s.calls++
		fails := s.calls%7 == 0
		s.mu.Unlock()
		if fails {
			return err
		}
		return s.write(ctx, c)
	}
}

func endedError(ctx context.Context) error {
	if ctx.Err() != nil {
		return lifecycle.Ended(ctx)
	}
	return nil
}
