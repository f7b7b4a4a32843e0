package storetest

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// commitFaults are the planted faults of commits, by the demand that finds them.
var commitFaults = map[string]map[string]fault{
	"Model/random_commits_agree": {
		"metadata: ChangedAt moves": {after: func(_ *faulty, c, _ *commits, err error) error {
			if c.Changes[0].MetadataOnly {
				c.Changes[0].To.ChangedAt = time.Now()
			}
			return err
		}},
		"metadata: no admission":    metadata(func(_ record, ch *edit) { ch.To.Admission = lifecycle.Token{} }),
		"metadata: the owner stays": metadata(func(now record, ch *edit) { ch.To.Owner = now.Owner }),
		"metadata: the work stays":  metadata(func(now record, ch *edit) { ch.To.Work, ch.To.Args = now.Work, now.Args }),
		"metadata: no timeout clears the deadline": metadata(func(_ record, ch *edit) {
			if ch.Timeout == 0 {
				ch.To.Deadline = time.Time{}
			}
		}),
		"owner is alive: ignored": owned(func(_ *faulty, c *commits) { c.Owner = lifecycle.OwnerRef{} }),
		"owner is alive: only for operations": owned(func(_ *faulty, c *commits) {
			if leaseOnly(c) {
				c.Owner = lifecycle.OwnerRef{}
			}
		}),
		"owner is alive: without the epoch": owned(func(s *faulty, c *commits) { c.Owner.Epoch = uint64(s.now(c.Owner.Key()).Operation) }),
		"owner is alive: later epochs": owned(func(s *faulty, c *commits) {
			c.Owner.Epoch = min(c.Owner.Epoch, uint64(s.now(c.Owner.Key()).Operation))
		}),
		"owner is alive: without the state": owned(func(s *faulty, c *commits) {
			if now := s.now(c.Owner.Key()); now.State == dead {
				c.Owner = lifecycle.OwnerRef{}
			}
		}),
		"owner is alive: one of the process": {apart: true, before: func(s *faulty, c *commits) {
			for i := range c.Changes {
				s.cache[c.Changes[i].To.Key] = c.Changes[i].To
			}
			if r, ok := s.cache[c.Owner.Key()]; ok && c.Owner.Alive(&r) {
				c.Owner = lifecycle.OwnerRef{}
			}
		}},
		"owner is alive: a conflict": {after: func(_ *faulty, c, _ *commits, err error) error {
			if errors.Is(err, lifecycle.ErrStale) {
				return &lifecycle.ConflictError{Current: c.Changes[0].To}
			}
			return err
		}},
		"owner is alive: messages remain": {after: func(s *faulty, c, _ *commits, err error) error {
			if errors.Is(err, lifecycle.ErrStale) {
				s.emit(c.Messages)
			}
			return err
		}},
		"owner is compared last: before all": {commit: func(s *faulty, ctx context.Context, c *commits) error {
			if now := s.now(c.Owner.Key()); c.Owner.Name != "" && !c.Owner.Alive(&now) {
				return &lifecycle.OwnerError{Owner: c.Owner}
			}
			return s.write(ctx, c)
		}},
		"owner is compared last: before preconditions": {commit: func(s *faulty, ctx context.Context, c *commits) error {
			now, free := s.now(c.Owner.Key()), clone(c)
			if free.Require = nil; c.Owner.Name == "" || c.Owner.Alive(&now) {
				free.Require = c.Require
			}
			err := s.write(ctx, free)
			c.Changes = free.Changes
			return err
		}},
		"among others is written once: known by the other change": {commit: func(s *faulty, ctx context.Context, c *commits) error {
			if err := s.write(ctx, c); s.tokens[c.Token] < 2 || !leaseOnly(c) {
				return err
			}
			return nil
		}},
		"among others is written once: written again": {before: func(s *faulty, c *commits) {
			for i := range c.Changes {
				if now := s.now(c.Changes[i].To.Key); s.tokens[c.Token] > 0 && leaseOnly(c) {
					c.Changes[i].Expect, c.Changes[i].From = now.Revision, now.State
				}
			}
		}},
		"writes no history: a row": metadata(func(_ record, ch *edit) {
			ch.MetadataOnly = false
			ch.To.Sequence++
		}),
		"is compared: the last one wins": metadata(func(now record, ch *edit) { ch.Expect = now.Revision }),
		"is compared: known by its token": {before: func(s *faulty, c *commits) {
			if c.Changes[0].MetadataOnly && s.tokens[c.Token] > 0 {
				c.Changes[0].Expect = s.now(c.Changes[0].To.Key).Revision
			}
		}},
		"repeated commit is written once: tokens are ignored": newTokens(func(*faulty, *commits) bool { return true }),
		"repeated commit is written once: written again": {before: func(s *faulty, c *commits) {
			if s.tokens[c.Token] > 0 {
				now := s.now(c.Changes[0].To.Key)
				c.Changes[0].Expect, c.Changes[0].From, c.Changes[0].To.Sequence = now.Revision, now.State, now.Sequence+1
				c.Token = lifecycle.NewToken()
			}
		}},
		"repeated commit is written once: not filled": {after: func(s *faulty, c, sent *commits, err error) error {
			if s.tokens[c.Token] > 1 {
				c.Changes = sent.Changes
			}
			return err
		}},
		"is known while the history has it: of the last change only": newTokens(func(s *faulty, c *commits) bool {
			return s.now(c.Changes[0].To.Key).Sequence > c.Changes[0].To.Sequence
		}),
		"is known while the history has it: not of a removed object": newTokens(func(s *faulty, c *commits) bool {
			now := s.now(c.Changes[0].To.Key)
			return !now.Exists()
		}),
		"covers all changes: the first only": {after: func(s *faulty, c, sent *commits, err error) error {
			if s.tokens[c.Token] > 1 {
				copy(c.Changes[1:], sent.Changes[1:])
			}
			return err
		}},
		"precedes preconditions: preconditions first": {commit: func(s *faulty, ctx context.Context, c *commits) error {
			return cmp.Or(s.unmet(c), s.write(ctx, c))
		}},
		"another token conflicts: the result counts": {after: func(_ *faulty, c, _ *commits, err error) error {
			if conflict, ok := errors.AsType[*lifecycle.ConflictError](err); ok && conflict.Current.State == c.Changes[0].To.State {
				return nil
			}
			return err
		}},
		"changes several objects: three only": {before: func(_ *faulty, c *commits) { c.Changes = c.Changes[:min(3, len(c.Changes))] }},
		"writes all or nothing: one after the other": {commit: func(s *faulty, ctx context.Context, c *commits) error {
			for i := range c.Changes {
				if err := s.write(ctx, &commits{Token: c.Token, Changes: c.Changes[i : i+1]}); err != nil {
					return err
				}
			}
			return nil
		}},
		"conflict names the first change: always the first": conflicts(func(c *lifecycle.ConflictError) { c.Change = 0 }),
		"conflict names the first change: the first in order of keys": {before: func(_ *faulty, c *commits) {
			slices.SortFunc(c.Changes, func(x, y edit) int { return byID(x.To, y.To) })
		}},
		"preconditions hold or nothing is written: ignored":        {before: func(_ *faulty, c *commits) { c.Require = nil }},
		"preconditions hold or nothing is written: the first only": {before: func(_ *faulty, c *commits) { c.Require = c.Require[:min(1, len(c.Require))] }},
		"absence is a precondition: no state is absence": {before: requirement(func(_ *commits, p *lifecycle.Precondition) {
			p.States = slices.DeleteFunc(slices.Clone(p.States), func(s string) bool { return s == "" })
		})},
		"preconditions see the state before: the state after": {before: requirement(func(c *commits, p *lifecycle.Precondition) {
			for _, ch := range c.Changes {
				if ch.To.Key == p.Key && slices.Contains(p.States, ch.To.State) {
					p.States = []string{ch.From}
				}
			}
		})},
	},
	"Commit/as_many_as_declared": {
		"a precondition counts twice": {commit: func(s *faulty, ctx context.Context, c *commits) error {
			if len(c.Changes)+2*len(c.Require) > limit {
				return errors.ErrUnsupported
			}
			return s.write(ctx, c)
		}},
	},
	"Commit/grants_are_held_or_nothing_is_written": {
		"ignored": {before: func(_ *faulty, c *commits) {
			c.Require = slices.DeleteFunc(slices.Clone(c.Require), func(p lifecycle.Precondition) bool { return p.Grant != nil })
		}},
		"a revoked grant is not held": {commit: func(s *faulty, ctx context.Context, c *commits) error {
			for _, p := range c.Require {
				if p.Grant != nil && p.Grant.Check() != nil {
					return &lifecycle.PreconditionError{Precondition: p}
				}
			}
			return s.write(ctx, c)
		}},
		"refused as unsupported after it was written": {after: func(_ *faulty, c, _ *commits, err error) error {
			if err == nil && slices.ContainsFunc(c.Require, func(p lifecycle.Precondition) bool { return p.Grant != nil }) {
				return errors.ErrUnsupported
			}
			return err
		}},
	},
}

func leaseOnly(c *commits) bool {
	return slices.ContainsFunc(c.Changes, func(ch edit) bool { return ch.MetadataOnly })
}
