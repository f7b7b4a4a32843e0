package storetest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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

func leaseOnly(c *commits) bool {
	return slices.ContainsFunc(c.Changes, func(ch edit) bool { return ch.MetadataOnly })
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
var faults = map[string]map[string]fault{
	"Capabilities/are_honest": {
		"no history":                 {wrap: func(s *faulty) store { return struct{ store }{s} }},
		"no change":                  {has: func(has *lifecycle.Capabilities) { has.Changes = 0 }},
		"other after the first call": {has: afterTheFirstCall()},
	},
	"Capabilities/undeclared_changes_are_refused": {
		"taken": {commit: func(s *faulty, ctx context.Context, c *commits) error { return s.write(ctx, c) }},
		"preconditions do not count": {commit: func(s *faulty, ctx context.Context, c *commits) error {
			if len(c.Changes) > limit {
				return errors.ErrUnsupported
			}
			return s.write(ctx, c)
		}},
	},
	"Capabilities/undeclared_messages_are_refused": {
		"dropped": {
			has:    func(has *lifecycle.Capabilities) { has.Messages = false },
			before: func(_ *faulty, c *commits) { c.Messages = nil },
		},
	},

	"Capabilities/versions_are_kept_or_refused": {
		"dropped":                  changed(func(ch *edit) { ch.To.Version = "" }),
		"cleared by metadata":      metadata(func(_ record, ch *edit) { ch.To.Version = "" }),
		"that of a removed object": shown(func(r *record) { r.Version = "2" }),
	},

	"Get/absent_object_is_no_error": {
		"an error": {read: func(_ *faulty, r *record) error {
			if !r.Exists() {
				return lifecycle.ErrNotFound
			}
			return nil
		}},
		"no key": shown(func(r *record) { r.Key = lifecycle.Key{} }),
	},
	"Get/returns_every_field": {
		"no target":              changed(func(ch *edit) { ch.To.Target = "" }),
		"arguments are text":     changed(func(ch *edit) { ch.To.Args = bytes.ToValidUTF8(ch.To.Args, []byte("?")) }),
		"numbers are floats":     changed(func(ch *edit) { ch.To.Epoch = uint64(float64(ch.To.Epoch)) }),
		"empty keeps the field":  changedFrom(func(now record, ch *edit) { ch.To.Reason = cmp.Or(ch.To.Reason, now.Reason) }),
		"no admission":           changed(func(ch *edit) { ch.To.Admission = lifecycle.Token{} }),
		"a cache of the process": cached(),
	},
	"Get/keeps_payload_bytes": {
		"an empty Saved is nil": shown(func(r *record) { r.Saved = append([]byte(nil), r.Saved...) }),
		"blanks are removed":    shown(func(r *record) { r.Payload = bytes.ReplaceAll(r.Payload, []byte("  "), []byte(" ")) }),
	},
	"Get/results_are_not_overwritten": {
		"a shared buffer": {record: func(s *faulty, r *record) {
			s.buffer = append(s.buffer[:0], r.Payload...)
			r.Payload = s.buffer
		}},
	},
	"Get/removed_object_is_absent": {
		"keeps its origin": {record: removedHas(func(r *record) { r.Origin = idle })},
		"keeps its owner":  {record: removedHas(func(r *record) { r.Owner, r.Epoch = "one", 1 })},
		"is listed": {found: func(s *faulty, _ lifecycle.Query, list []record) []record {
			return append(list, s.now(key("a")))
		}},
	},

	"Names/any_id": {
		"blanks at the end": keyed(func(k lifecycle.Key) lifecycle.Key { k.ID = strings.TrimRight(k.ID, " "); return k }),
		"254 bytes":         keyed(func(k lifecycle.Key) lifecycle.Key { k.ID = k.ID[:min(254, len(k.ID))]; return k }),
	},
	"Names/any_state": {
		"blanks at the end": selecting(func(q lifecycle.Query, r record) bool {
			return slices.ContainsFunc(q.States, func(state string) bool {
				return strings.TrimRight(state, " ") == strings.TrimRight(r.State, " ")
			})
		}),
	},
	"Names/any_machine": {
		"a key is a path": keyed(func(k lifecycle.Key) lifecycle.Key {
			machine, rest, _ := strings.Cut(k.Machine+"/"+k.ID, "/")
			return lifecycle.Key{Machine: machine + "/", ID: rest}
		}),
	},
	"Names/nul_is_refused_or_kept": {
		"up to a NUL": keyed(func(k lifecycle.Key) lifecycle.Key { k.ID, _, _ = strings.Cut(k.ID, "\x00"); return k }),
		"another error": {read: func(_ *faulty, r *record) error {
			if strings.Contains(r.ID, "\x00") {
				return errors.New("invalid byte sequence")
			}
			return nil
		}},
	},
	"Names/sizes": {
		"payloads end at 64 KiB": changed(func(ch *edit) { ch.To.Payload = ch.To.Payload[:min(len(ch.To.Payload), 1<<16)] }),
		"reasons have 255 bytes": changed(func(ch *edit) { ch.To.Reason = ch.To.Reason[:min(len(ch.To.Reason), 255)] }),
	},

	"Commit/sets_the_fields_of_the_store": {
		"ChangedAt of the caller": {after: func(_ *faulty, c, sent *commits, err error) error {
			c.Changes[0].To.ChangedAt = sent.Changes[0].To.ChangedAt
			return err
		}},
		"deadline of the caller": {after: func(_ *faulty, c, sent *commits, err error) error {
			c.Changes[0].To.Deadline = sent.Changes[0].To.Deadline
			return err
		}},
		"another field": {after: func(_ *faulty, c, _ *commits, err error) error {
			c.Changes[0].To.Actor = "store"
			return err
		}},
	},
	"Commit/deadline_follows_the_timeout": {
		"in minutes": changed(func(ch *edit) { ch.Timeout = ch.Timeout.Truncate(time.Minute) }),
		"is kept": changedFrom(func(now record, ch *edit) {
			if ch.Timeout == 0 && !now.Deadline.IsZero() {
				ch.Timeout = max(1, time.Until(now.Deadline))
			}
		}),
	},
	"Commit/wrong_revision_conflicts": {
		"the revision is ignored": changedFrom(func(now record, ch *edit) { ch.Expect = now.Revision }),
		"a refused change is written": {after: func(s *faulty, _, _ *commits, err error) error {
			if conflict, ok := errors.AsType[*lifecycle.ConflictError](err); ok {
				_ = s.MemoryStore.Commit(context.Background(), commitOf(change(conflict.Current, broken)))
			}
			return err
		}},
	},
	"Commit/wrong_state_conflicts": {
		"the state is ignored": changedFrom(func(now record, ch *edit) { ch.From = now.State }),
		"case is ignored": changedFrom(func(now record, ch *edit) {
			if strings.EqualFold(now.State, ch.From) {
				ch.From = now.State
			}
		}),
	},
	"Commit/wrong_existence_conflicts": {
		"a creation overwrites": changedFrom(func(now record, ch *edit) {
			if ch.From == "" {
				ch.From, ch.Expect = now.State, now.Revision
			}
		}),
	},
	"Commit/conflict_has_the_current_record": {
		"no record":      conflicts(func(c *lifecycle.ConflictError) { c.Current = record{} }),
		"no expectation": conflicts(func(c *lifecycle.ConflictError) { c.Expect = "" }),
	},
	"Commit/same_content_is_a_change": {
		"not written": {commit: func(s *faulty, ctx context.Context, c *commits) error {
			want := s.now(c.Changes[0].To.Key)
			want.Sequence++
			if difference(want, c.Changes[0].To) == "" {
				return nil
			}
			return s.write(ctx, c)
		}},
	},
	"Commit/malformed_is_refused": {
		"the last change counts": {before: func(_ *faulty, c *commits) { c.Changes = c.Changes[max(0, len(c.Changes)-1):] }},
		"an epoch is dropped": changed(func(ch *edit) {
			if ch.To.Owner == "" {
				ch.To.Epoch = 0
			}
		}),
		"no limit": queried(func(q *lifecycle.Query) { q.Limit = max(q.Limit, 1) }),
		"metadata move": changed(func(ch *edit) {
			if ch.From != ch.To.State || ch.Remove {
				ch.MetadataOnly = false
			}
		}),
	},

	"Numbers/sequence_has_no_gap": {
		"a gap": {change: func(s *faulty, ch *edit) {
			if ch.To.Key == key("a") && ch.To.Sequence > 5 {
				ch.To.Sequence++
			}
		}},
	},
	"Numbers/revisions_never_repeat": {
		"modulo 16": revisions(func(_ *faulty, r record) lifecycle.Revision {
			return lifecycle.Revision(fmt.Sprint(r.Sequence % 16))
		}),
		"after a removal": revisions(func(s *faulty, r record) lifecycle.Revision {
			if !r.Exists() {
				s.lives[r.Key] = r
			}
			return lifecycle.Revision(fmt.Sprint(r.Sequence - min(r.Sequence, s.lives[r.Key].Sequence)))
		}),
		"the time": revisions(func(_ *faulty, r record) lifecycle.Revision {
			return lifecycle.Revision(fmt.Sprint(r.ChangedAt.UnixNano()))
		}),
	},
	"Numbers/continue_after_removal": {
		"begin again": restartNumbers(func(*faulty, lifecycle.Key) bool { return true }),
	},
	"Numbers/survive_many_removals": {
		"8 removed objects":    forgetting(8),
		"200 removed objects":  forgetting(200),
		"2000 removed objects": forgetting(2000),
	},
	"Numbers/outdated_creation_conflicts": {
		"only existence counts": changedFrom(func(now record, ch *edit) {
			if ch.From == "" && !now.Exists() {
				ch.Expect, ch.To.Sequence = now.Revision, now.Sequence+1
			}
		}),
	},
	"Numbers/returning_to_a_state_conflicts": {
		"a revision of the content": revisions(func(_ *faulty, r record) lifecycle.Revision {
			return lifecycle.Revision(fmt.Sprint(r.State, r.Origin, r.Operation))
		}),
	},

	"Metadata/changes_lease_fields_only": {
		"ChangedAt moves": {after: func(_ *faulty, c, _ *commits, err error) error {
			if c.Changes[0].MetadataOnly {
				c.Changes[0].To.ChangedAt = time.Now()
			}
			return err
		}},
		"no admission":    metadata(func(_ record, ch *edit) { ch.To.Admission = lifecycle.Token{} }),
		"the owner stays": metadata(func(now record, ch *edit) { ch.To.Owner = now.Owner }),
		"the work stays":  metadata(func(now record, ch *edit) { ch.To.Work, ch.To.Args = now.Work, now.Args }),
		"no timeout clears the deadline": metadata(func(_ record, ch *edit) {
			if ch.Timeout == 0 {
				ch.To.Deadline = time.Time{}
			}
		}),
	},
	"Metadata/among_others_is_written_once": {
		"known by the other change": {commit: func(s *faulty, ctx context.Context, c *commits) error {
			if err := s.write(ctx, c); s.tokens[c.Token] < 2 || !leaseOnly(c) {
				return err
			}
			return nil
		}},
		"written again": {before: func(s *faulty, c *commits) {
			for i := range c.Changes {
				if now := s.now(c.Changes[i].To.Key); s.tokens[c.Token] > 0 && leaseOnly(c) {
					c.Changes[i].Expect, c.Changes[i].From = now.Revision, now.State
				}
			}
		}},
	},
	"Metadata/writes_no_history": {
		"a row": metadata(func(_ record, ch *edit) {
			ch.MetadataOnly = false
			ch.To.Sequence++
		}),
	},
	"Metadata/is_compared": {
		"the last one wins": metadata(func(now record, ch *edit) { ch.Expect = now.Revision }),
		"known by its token": {before: func(s *faulty, c *commits) {
			if c.Changes[0].MetadataOnly && s.tokens[c.Token] > 0 {
				c.Changes[0].Expect = s.now(c.Changes[0].To.Key).Revision
			}
		}},
	},

	"Token/repeated_commit_is_written_once": {
		"tokens are ignored": newTokens(func(*faulty, *commits) bool { return true }),
		"written again": {before: func(s *faulty, c *commits) {
			if s.tokens[c.Token] > 0 {
				now := s.now(c.Changes[0].To.Key)
				c.Changes[0].Expect, c.Changes[0].From, c.Changes[0].To.Sequence = now.Revision, now.State, now.Sequence+1
				c.Token = lifecycle.NewToken()
			}
		}},
		"not filled": {after: func(s *faulty, c, sent *commits, err error) error {
			if s.tokens[c.Token] > 1 {
				c.Changes = sent.Changes
			}
			return err
		}},
	},
	"Token/is_known_while_the_history_has_it": {
		"of the last change only": newTokens(func(s *faulty, c *commits) bool {
			return s.now(c.Changes[0].To.Key).Sequence > c.Changes[0].To.Sequence
		}),
		"not of a removed object": newTokens(func(s *faulty, c *commits) bool {
			now := s.now(c.Changes[0].To.Key)
			return !now.Exists()
		}),
	},
	"Token/covers_all_changes": {
		"the first only": {after: func(s *faulty, c, sent *commits, err error) error {
			if s.tokens[c.Token] > 1 {
				copy(c.Changes[1:], sent.Changes[1:])
			}
			return err
		}},
	},
	"Token/precedes_preconditions": {
		"preconditions first": {commit: func(s *faulty, ctx context.Context, c *commits) error {
			return cmp.Or(s.unmet(c), s.write(ctx, c))
		}},
	},
	"Token/another_token_conflicts": {
		"the result counts": {after: func(_ *faulty, c, _ *commits, err error) error {
			if conflict, ok := errors.AsType[*lifecycle.ConflictError](err); ok && conflict.Current.State == c.Changes[0].To.State {
				return nil
			}
			return err
		}},
	},

	"Transaction/changes_several_objects": {
		"three only": {before: func(_ *faulty, c *commits) { c.Changes = c.Changes[:min(3, len(c.Changes))] }},
	},
	"Transaction/writes_all_or_nothing": {
		"one after the other": {commit: func(s *faulty, ctx context.Context, c *commits) error {
			for i := range c.Changes {
				if err := s.write(ctx, &commits{Token: c.Token, Changes: c.Changes[i : i+1]}); err != nil {
					return err
				}
			}
			return nil
		}},
	},
	"Transaction/conflict_names_the_first_change": {
		"always the first": conflicts(func(c *lifecycle.ConflictError) { c.Change = 0 }),
		"the first in order of keys": {before: func(_ *faulty, c *commits) {
			slices.SortFunc(c.Changes, func(x, y edit) int { return byID(x.To, y.To) })
		}},
	},
	"Transaction/preconditions_hold_or_nothing_is_written": {
		"ignored":        {before: func(_ *faulty, c *commits) { c.Require = nil }},
		"the first only": {before: func(_ *faulty, c *commits) { c.Require = c.Require[:min(1, len(c.Require))] }},
	},
	"Transaction/absence_is_a_precondition": {
		"no state is absence": {before: requirement(func(_ *commits, p *lifecycle.Precondition) {
			p.States = slices.DeleteFunc(slices.Clone(p.States), func(s string) bool { return s == "" })
		})},
	},
	"Transaction/preconditions_see_the_state_before": {
		"the state after": {before: requirement(func(c *commits, p *lifecycle.Precondition) {
			for _, ch := range c.Changes {
				if ch.To.Key == p.Key && slices.Contains(p.States, ch.To.State) {
					p.States = []string{ch.From}
				}
			}
		})},
	},
	"Transaction/owner_is_alive_or_nothing_is_written": {
		"ignored": owned(func(_ *faulty, c *commits) { c.Owner = lifecycle.OwnerRef{} }),
		"only for operations": owned(func(_ *faulty, c *commits) {
			if leaseOnly(c) {
				c.Owner = lifecycle.OwnerRef{}
			}
		}),
		"without the epoch": owned(func(s *faulty, c *commits) { c.Owner.Epoch = uint64(s.now(c.Owner.Key()).Operation) }),
		"later epochs": owned(func(s *faulty, c *commits) {
			c.Owner.Epoch = min(c.Owner.Epoch, uint64(s.now(c.Owner.Key()).Operation))
		}),
		"without the state": owned(func(s *faulty, c *commits) {
			if now := s.now(c.Owner.Key()); now.State == dead {
				c.Owner = lifecycle.OwnerRef{}
			}
		}),
		"one of the process": {apart: true, before: func(s *faulty, c *commits) {
			for i := range c.Changes {
				s.cache[c.Changes[i].To.Key] = c.Changes[i].To
			}
			if r, ok := s.cache[c.Owner.Key()]; ok && c.Owner.Alive(&r) {
				c.Owner = lifecycle.OwnerRef{}
			}
		}},
		"a conflict": {after: func(_ *faulty, c, _ *commits, err error) error {
			if errors.Is(err, lifecycle.ErrStale) {
				return &lifecycle.ConflictError{Current: c.Changes[0].To}
			}
			return err
		}},
		"messages remain": {after: func(s *faulty, c, _ *commits, err error) error {
			if errors.Is(err, lifecycle.ErrStale) {
				s.emit(c.Messages)
			}
			return err
		}},
	},
	"Transaction/owner_is_compared_last": {
		"before all": {commit: func(s *faulty, ctx context.Context, c *commits) error {
			if now := s.now(c.Owner.Key()); c.Owner.Name != "" && !c.Owner.Alive(&now) {
				return &lifecycle.OwnerError{Owner: c.Owner}
			}
			return s.write(ctx, c)
		}},
		"before preconditions": {commit: func(s *faulty, ctx context.Context, c *commits) error {
			now, free := s.now(c.Owner.Key()), clone(c)
			if free.Require = nil; c.Owner.Name == "" || c.Owner.Alive(&now) {
				free.Require = c.Require
			}
			err := s.write(ctx, free)
			c.Changes = free.Changes
			return err
		}},
	},

	"History/one_row_per_change": {
		"no row of a removal": history(func(list rows) rows {
			return slices.DeleteFunc(list, func(row lifecycle.HistoryRow) bool { return row.To == gone })
		}),
		"no origin": changed(func(ch *edit) { ch.FromOrigin = ch.From }),
	},
	"History/keeps_the_newest_rows": {
		"a gap": history(func(list rows) rows {
			return slices.DeleteFunc(list, func(row lifecycle.HistoryRow) bool { return row.Sequence == 5 && len(list) > 5 })
		}),
		"seven rows": history(func(list rows) rows { return list[max(0, len(list)-7):] }),
		"not of a removed object": {history: func(s *faulty, k lifecycle.Key, list rows) rows {
			if now := s.now(k); !now.Exists() {
				return nil
			}
			return list
		}},
	},
	"History/has_no_row_of_refused_commits": {
		"a row": {
			after: func(s *faulty, c, _ *commits, err error) error {
				if err != nil {
					s.notes[c.Changes[0].To.Key] = c.Changes[0].To
				}
				return err
			},
			history: func(s *faulty, k lifecycle.Key, list rows) rows {
				if r, ok := s.notes[k]; ok {
					list = append(list, lifecycle.HistoryRow{Key: k, Sequence: r.Sequence})
				}
				return list
			},
		},
	},
	"History/pages": {
		"from a number on": {pages: func(after *uint64, _ *int) { *after = max(*after, 1) - 1 }},
		"no limit":         {pages: func(_ *uint64, limit *int) { *limit = all }},
	},

	"Request/is_unique_in_its_machine": {
		"for one object": changed(func(ch *edit) {
			if ch.Request != "" && ch.To.ID != "a" {
				ch.Request += " of " + ch.To.ID
			}
		}),
		"in any case":    changed(func(ch *edit) { ch.Request = strings.ToLower(ch.Request) }),
		"no fingerprint": changed(func(ch *edit) { ch.Fingerprint = "" }),
		"in a commit of one": {before: func(_ *faulty, c *commits) {
			if len(c.Changes) > 1 {
				c.Changes = slices.Clone(c.Changes)
				c.Changes[1].Request = ""
			}
		}},
	},
	"Request/is_known_after_later_changes": {
		"of the last change only": {requested: func(s *faulty, row lifecycle.HistoryRow) lifecycle.HistoryRow {
			if s.now(row.Key).Sequence != row.Sequence {
				return lifecycle.HistoryRow{}
			}
			return row
		}},
		"of objects that exist": {requested: func(s *faulty, row lifecycle.HistoryRow) lifecycle.HistoryRow {
			if now := s.now(row.Key); !now.Exists() {
				return lifecycle.HistoryRow{}
			}
			return row
		}},
	},
	"Request/one_of_many_is_written": {
		"by check and write": {commit: func(s *faulty, ctx context.Context, c *commits) error {
			ch := c.Changes[0]
			row, err := s.MemoryStore.Requested(ctx, ch.To.Machine, ch.Request)
			if err != nil || row.Request != "" {
				return cmp.Or(err, error(&lifecycle.RepeatedError{Row: row}))
			}
			s.meet(lifecycle.Key{Machine: ch.To.Machine, ID: ch.Request})
			err = s.write(ctx, c)
			if errors.Is(err, lifecycle.ErrRepeated) {
				c.Changes[0].Request = ""
				return s.write(ctx, c)
			}
			return err
		}},
	},

	"Messages/come_with_the_commit": {
		"in reverse": {before: func(_ *faulty, c *commits) {
			c.Messages = slices.Clone(c.Messages)
			slices.Reverse(c.Messages)
		}},
		"up to a NUL": {messages: eachMessage(func(_ *faulty, m *lifecycle.OutboxMessage) {
			m.Payload, _, _ = bytes.Cut(m.Payload, []byte{0})
		})},
		"those of the process": {
			apart: true,
			before: func(s *faulty, c *commits) {
				for _, m := range c.Messages {
					s.cache[lifecycle.Key{ID: m.Topic}] = record{}
				}
			},
			messages: func(s *faulty, _ int, list []lifecycle.OutboxMessage) []lifecycle.OutboxMessage {
				return slices.DeleteFunc(list, func(m lifecycle.OutboxMessage) bool {
					_, ok := s.cache[lifecycle.Key{ID: m.Topic}]
					return !ok
				})
			},
		},
		"not copied": {
			before: func(s *faulty, c *commits) { s.sent = append(s.sent, c.Messages...) },
			messages: eachMessage(func(s *faulty, m *lifecycle.OutboxMessage) {
				m.Message = s.sent[m.Number-1]
			}),
		},
	},
	"Messages/do_not_come_with_a_refused_commit": {
		"kept": {after: func(s *faulty, c, _ *commits, err error) error {
			if err != nil {
				s.emit(c.Messages)
			}
			return err
		}},
	},
	"Messages/come_once": {
		"again": {after: func(s *faulty, c, _ *commits, err error) error {
			if s.tokens[c.Token] > 1 {
				s.emit(c.Messages)
			}
			return err
		}},
	},
	"Messages/pages": {
		"no limit": {messages: func(s *faulty, _ int, _ []lifecycle.OutboxMessage) []lifecycle.OutboxMessage {
			whole, _ := s.MemoryStore.Messages(context.Background(), all)
			return whole
		}},
		"reading removes": {messages: eachMessage(func(s *faulty, m *lifecycle.OutboxMessage) {
			_ = s.MemoryStore.Discard(context.Background(), m.Number)
		})},
	},
	"Messages/are_discarded_by_number": {
		"up to a number": {discard: func(_ *faulty, numbers []uint64) []uint64 {
			for n := slices.Max(append(numbers, 0)); n > 0; n-- {
				numbers = append(numbers, n)
			}
			return numbers
		}},
		"numbers are places": {
			messages: func(_ *faulty, _ int, list []lifecycle.OutboxMessage) []lifecycle.OutboxMessage {
				for i := range list {
					list[i].Number = uint64(i + 1)
				}
				return list
			},
		},
	},
	"Messages/reader_misses_none": {
		"late numbers are lost": {messages: func(s *faulty, _ int, list []lifecycle.OutboxMessage) []lifecycle.OutboxMessage {
			return slices.DeleteFunc(list, func(m lifecycle.OutboxMessage) bool { return m.Number%5 == 0 })
		}},
		"the newest first": {messages: func(s *faulty, limit int, _ []lifecycle.OutboxMessage) []lifecycle.OutboxMessage {
			whole, _ := s.MemoryStore.Messages(context.Background(), all)
			if slices.Reverse(whole); len(whole) <= 8 { // two of more than eight are of one writer
				return nil
			}
			return whole[:limit]
		}},
	},

	"List/returns_records": {
		"no payloads":                 queried(func(q *lifecycle.Query) { q.WithoutPayload = true }),
		"payloads that are not asked": queried(func(q *lifecycle.Query) { q.WithoutPayload = false }),
		"those of the process": {
			apart: true,
			before: func(s *faulty, c *commits) {
				for i := range c.Changes {
					s.cache[c.Changes[i].To.Key] = record{}
				}
			},
			found: func(s *faulty, _ lifecycle.Query, list []record) []record {
				return slices.DeleteFunc(list, func(r record) bool { _, ok := s.cache[r.Key]; return !ok })
			},
		},
		"a summary without payloads": {found: func(_ *faulty, q lifecycle.Query, list []record) []record {
			for i := range list {
				if q.WithoutPayload {
					list[i].Reason = ""
				}
			}
			return list
		}},
	},
	"List/by_state": {
		"the origin too": selecting(func(q lifecycle.Query, r record) bool {
			origin := r
			origin.State = r.Origin
			return matches(q, r) || matches(q, origin)
		}),
	},
	"List/not_owned_by": {
		"names only": selecting(func(q lifecycle.Query, r record) bool {
			return matches(q, r) && !slices.ContainsFunc(q.NotOwnedBy, func(o lifecycle.OwnerRef) bool { return o.Name == r.Owner })
		}),
		"prefixes": selecting(func(q lifecycle.Query, r record) bool {
			return matches(q, r) && !slices.ContainsFunc(q.NotOwnedBy, func(o lifecycle.OwnerRef) bool {
				return o.Name != "" && strings.HasPrefix(r.Owner, o.Name) && o.Epoch == r.Epoch
			})
		}),
		"many owners": queried(func(q *lifecycle.Query) {
			if len(q.NotOwnedBy) > 300 {
				q.NotOwnedBy = q.NotOwnedBy[:1]
			}
		}),
		"empty is nil": queried(func(q *lifecycle.Query) {
			if len(q.NotOwnedBy) == 0 {
				q.NotOwnedBy = nil
			}
		}),
		"unowned too": selecting(func(q lifecycle.Query, r record) bool {
			owners := q.NotOwnedBy
			q.NotOwnedBy = nil
			return matches(q, r) && !slices.Contains(owners, owner(r.Owner, r.Epoch))
		}),
	},
	"List/unowned_and_no_deadline": {
		"unowned is ignored": queried(func(q *lifecycle.Query) { q.Unowned = false }),
		"a deadline in the future": selecting(func(q lifecycle.Query, r record) bool {
			q.NoDeadline = q.NoDeadline && time.Now().After(r.Deadline)
			return matches(q, r)
		}),
	},
	"List/order_of_ids": {
		"no case": {order: func(x, y record) int {
			return cmp.Or(cmp.Compare(strings.ToLower(x.ID), strings.ToLower(y.ID)), byID(x, y))
		}},
		"after an unknown id": {query: func(s *faulty, q *lifecycle.Query) {
			if now := s.now(lifecycle.Key{Machine: q.Machine, ID: q.After}); !now.Exists() {
				q.After = ""
			}
		}},
	},
	"List/pages": {
		"one is skipped": {found: func(_ *faulty, q lifecycle.Query, list []record) []record {
			if q.After != "" {
				return list[min(1, len(list)):]
			}
			return list
		}},
		"one is repeated": {found: func(s *faulty, q lifecycle.Query, list []record) []record {
			if now := s.now(lifecycle.Key{Machine: q.Machine, ID: q.After}); now.Exists() && inStates(q, now) {
				list = slices.Insert(list, 0, now)[:min(q.Limit, len(list)+1)]
			}
			return list
		}},
		"by owner": {order: func(x, y record) int { return cmp.Or(cmp.Compare(x.Owner, y.Owner), byID(x, y)) }},
	},
	"List/pages_during_changes": {
		"one is skipped now and then": {found: func(s *faulty, _ lifecycle.Query, list []record) []record {
			if s.calls++; s.calls%5 == 0 {
				list = list[min(1, len(list)):]
			}
			return list
		}},
	},

	"Time/list_by_age": {
		"more, not at least": selecting(func(q lifecycle.Query, r record) bool {
			return matches(q, r) && (q.UnchangedFor == 0 || time.Since(r.ChangedAt) > q.UnchangedFor)
		}),
	},
	"Time/list_overdue": {
		"no deadline has passed": selecting(func(q lifecycle.Query, r record) bool {
			overdue := q.Overdue
			q.Overdue = false
			return matches(q, r) && (!overdue || time.Now().After(r.Deadline))
		}),
	},
	"Time/conditions_combine": {
		"one is enough": selecting(func(q lifecycle.Query, r record) bool {
			either := q
			either.UnchangedFor, either.Overdue = 0, false
			return matches(either, r) && (q.UnchangedFor > 0 && oldEnough(q, r) || q.Overdue && late(q, r))
		}),
	},
	"Time/clock_of_the_store": {
		"ages of the caller": {ownClock: true, record: shift, query: func(_ *faulty, q *lifecycle.Query) {
			time.Sleep(time.Millisecond)
			q.UnchangedFor *= 1 << 40
		}},
		"the caller's time": {ownClock: true, query: wait},
	},

	"Context/ended_is_refused": {
		"not by commits": {commit: func(s *faulty, ctx context.Context, c *commits) error {
			return s.write(context.WithoutCancel(ctx), c)
		}},
		"without the cause": {ended: func(_ string, err error) error {
			if errors.Is(err, context.Canceled) {
				return context.Canceled
			}
			return err
		}},
	},
	"Context/end_during_a_call_is_exact": {
		"written and refused": {commit: func(s *faulty, ctx context.Context, c *commits) error {
			err := s.write(context.WithoutCancel(ctx), c)
			return cmp.Or(err, endedError(ctx))
		}},
		"an empty list": {ended: func(call string, err error) error {
			if call == "List" {
				return nil
			}
			return err
		}, found: func(_ *faulty, _ lifecycle.Query, list []record) []record { return nil }},
	},
	"Close/refuses_calls": {
		"not reads": {ended: func(call string, err error) error {
			if call == "History" {
				return nil
			}
			return err
		}},
	},
	"Kill/keeps_everything": {
		"no messages": {kill: func(s *faulty) store {
			_ = s.MemoryStore.Discard(context.Background(), 1)
			return s
		}},
		"nothing": {kill: func(*faulty) store { return newFaulty(fault{}) }},
		"not what the process has buffered": {
			after: func(s *faulty, _, sent *commits, err error) error {
				if err == nil {
					s.log = append(s.log, clone(sent))
				}
				return err
			},
			kill: func(s *faulty) store {
				left := newFaulty(fault{})
				for _, c := range s.log[:len(s.log)-1] {
					_ = left.MemoryStore.Commit(context.Background(), c)
				}
				return left
			},
		},
	},

	"Outage/commit_cut_before_a_request": {"written": written},
	"Outage/commit_cut_in_a_request":     {"a conflict": conflicted},
	"Outage/commit_cut_after_a_request": {
		"not written": notWritten,
		"sent again under another token": lost(func(r *remote, ctx context.Context, c *commits, _ error) error {
			c.Token = lifecycle.NewToken()
			return r.sendAgain(ctx, c)
		}),
	},
	"Outage/commit_cut_in_an_answer": {"a part is enough": {remote: &remoteFault{partial: true}}},
	"Outage/context_ends_at_every_request": {
		"not written": lost(func(r *remote, ctx context.Context, c *commits, _ error) error {
			return cmp.Or(endedError(ctx), r.sendAgain(ctx, c))
		}),
		"ignored": {remote: &remoteFault{deaf: true}},
	},
	"Outage/reads_are_right_or_fail": {
		"a part is enough":  {remote: &remoteFault{partial: true}},
		"an earlier result": {remote: &remoteFault{older: true}},
	},
	"Outage/owner_is_read_without_waiting": {
		"a lock of the record": {remote: &remoteFault{locks: make(chan struct{}, 1)}},
	},
	"Outage/store_recovers": {"stays broken": {remote: &remoteFault{broken: true}}},
	"Outage/restart_keeps_everything": {
		"nothing":     restarting(func(r *remote) { r.engine = lifecycle.NewMemoryStore() }),
		"no tokens":   restarting(func(r *remote) { r.lives++ }),
		"last commit": restarting(func(r *remote) { r.replay(1) }),
	},

	"Concurrent/history_is_linearizable": {
		"reads of an older record": {
			before: func(s *faulty, c *commits) { s.notes[c.Changes[0].To.Key] = s.now(c.Changes[0].To.Key) },
			read: func(s *faulty, r *record) error {
				if old := s.notes[r.Key]; old.Exists() {
					*r = old
				}
				return nil
			},
		},
		"check, then write":     racing(asExpected),
		"a lock of the process": underLock(),
		"a loser gets what it knows": conflicts(func(c *lifecycle.ConflictError) {
			c.Current.Sequence, c.Current.Revision = 0, c.Expect
		}),
		"only the state is compared": racing(func(now record, ch edit) bool { return now.State == ch.From }),
	},
	"Concurrent/one_creation_wins": {
		"check, then create":    racing(func(now record, ch edit) bool { return ch.From == "" && !now.Exists() }),
		"a lock of the process": underLock(),
	},
	"Concurrent/single_writer_never_conflicts": {
		"now and then": {commit: nowAndThen(&lifecycle.ConflictError{})},
		"heartbeats of the owner": {commit: func(s *faulty, ctx context.Context, c *commits) error {
			before := s.now(c.Owner.Key())
			end := time.Now().Add(50 * time.Millisecond) // the next heartbeat is due at once
			for c.Owner.Name != "" && time.Now().Before(end) {
				if now := s.now(c.Owner.Key()); now.Revision != before.Revision {
					return &lifecycle.ConflictError{Current: now}
				}
				time.Sleep(time.Millisecond)
			}
			return s.write(ctx, c)
		}},
	},
	"Concurrent/transactions_in_any_order": {
		"a deadlock": {commit: nowAndThen(errors.New("deadlock found when trying to get lock"))},
	},
	"Concurrent/preconditions_hold_at_the_commit": {
		"checked before": checkedBefore(func(*faulty, lifecycle.Precondition) bool { return true }),
	},
	"Concurrent/absence_holds_at_the_commit": {
		"no lock without a row": checkedBefore(func(s *faulty, p lifecycle.Precondition) bool {
			return s.now(p.Key).Sequence == 0
		}),
	},
	"Model/random_commits_agree": {
		"a removal clears other deadlines": {before: func(_ *faulty, c *commits) {
			if slices.ContainsFunc(c.Changes, func(ch edit) bool { return ch.Remove }) {
				for i := range c.Changes {
					c.Changes[i].Timeout = 0
				}
			}
		}},
	},
}

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
