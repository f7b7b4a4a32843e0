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

// recordFaults are the planted faults of records, their names and numbers, by the demand that finds them.
var recordFaults = map[string]map[string]fault{
	"Capabilities/are_honest": {
		"no history": {wrap: func(s *faulty) store { return struct{ store }{s} }},
		"no change":  {has: func(has *lifecycle.Capabilities) { has.Changes = 0 }},
		"no == of two stores": {wrap: func(s *faulty) store {
			return struct {
				*faulty
				options []string
			}{faulty: s}
		}},
		"other after the first call": {has: afterTheFirstCall()},
	},
	"Names/sizes_of_pages": {
		"lists of half the limit": {found: func(_ *faulty, _ lifecycle.Query, list []record) []record { return list[:min(500, len(list))] }},
		"recent changes of half the limit": {recent: func(list []lifecycle.ChangedObject, _ asked) []lifecycle.ChangedObject {
			return list[:min(500, len(list))]
		}},
	},
	"Model/random_commits_agree": {
		"version: dropped":                  changed(func(ch *edit) { ch.To.Version = "" }),
		"version: fence dropped":            changed(func(ch *edit) { ch.To.Fence = 0 }),
		"version: cleared by metadata":      metadata(func(_ record, ch *edit) { ch.To.Version = "" }),
		"version: that of a removed object": shown(func(r *record) { r.Version = "2" }),
		"results are not overwritten: a shared buffer": {record: func(s *faulty, r *record) {
			s.buffer = append(s.buffer[:0], r.Payload...)
			r.Payload = s.buffer
		}},
		"fields of the store: ChangedAt of the caller": {after: func(_ *faulty, c, sent *commits, err error) error {
			c.Changes[0].To.ChangedAt = sent.Changes[0].To.ChangedAt
			return err
		}},
		"fields of the store: deadline of the caller": {after: func(_ *faulty, c, sent *commits, err error) error {
			c.Changes[0].To.Deadline = sent.Changes[0].To.Deadline
			return err
		}},
		"fields of the store: a timeout of whole seconds": changed(func(ch *edit) { ch.Timeout = ch.Timeout.Truncate(time.Second) }),
		"fields of the store: another field": {after: func(_ *faulty, c, _ *commits, err error) error {
			c.Changes[0].To.Actor = "store"
			return err
		}},
		"absent object is not an error: an error": {read: func(_ *faulty, r *record) error {
			if !r.Exists() {
				return lifecycle.ErrNotFound
			}
			return nil
		}},
		"absent object is not an error: no key":       shown(func(r *record) { r.Key = lifecycle.Key{} }),
		"returns every field: no target":              changed(func(ch *edit) { ch.To.Target = "" }),
		"returns every field: arguments are text":     changed(func(ch *edit) { ch.To.Args = bytes.ToValidUTF8(ch.To.Args, []byte("?")) }),
		"returns every field: numbers are floats":     changed(func(ch *edit) { ch.To.Epoch = uint64(float64(ch.To.Epoch)) }),
		"returns every field: empty keeps the field":  changedFrom(func(now record, ch *edit) { ch.To.Reason = cmp.Or(ch.To.Reason, now.Reason) }),
		"returns every field: no admission":           changed(func(ch *edit) { ch.To.Admission = lifecycle.Token{} }),
		"returns every field: a cache of the process": cached(),
		"keeps payload bytes: an empty Saved is nil":  shown(func(r *record) { r.Saved = append([]byte(nil), r.Saved...) }),
		"keeps payload bytes: blanks are removed":     shown(func(r *record) { r.Payload = bytes.ReplaceAll(r.Payload, []byte("  "), []byte(" ")) }),
		"removed object is absent: keeps its origin":  {record: removedHas(func(r *record) { r.Origin = idle })},
		"removed object is absent: keeps its owner":   {record: removedHas(func(r *record) { r.Owner, r.Epoch = "one", 1 })},
		"removed object is absent: keeps its version": {
			change: func(s *faulty, ch *edit) {
				if ch.Remove {
					s.lives[ch.To.Key] = ch.To
				}
			},
			record: func(s *faulty, r *record) {
				if !r.Exists() {
					r.Version = s.lives[r.Key].Version
				}
			},
		},
		"removed object is absent: is listed": {found: func(s *faulty, _ lifecycle.Query, list []record) []record {
			return append(list, s.now(key("a")))
		}},
		"deadline follows the timeout: in minutes": changed(func(ch *edit) { ch.Timeout = ch.Timeout.Truncate(time.Minute) }),
		"deadline follows the timeout: is kept": changedFrom(func(now record, ch *edit) {
			if ch.Timeout == 0 && !now.Deadline.IsZero() {
				ch.Timeout = max(1, time.Until(now.Deadline))
			}
		}),
		"wrong revision conflicts: the revision is ignored": changedFrom(func(now record, ch *edit) { ch.Expect = now.Revision }),
		"wrong revision conflicts: a refused change is written": {after: func(s *faulty, _, _ *commits, err error) error {
			if conflict, ok := errors.AsType[*lifecycle.ConflictError](err); ok {
				_ = s.MemoryStore.Commit(context.Background(), commitOf(change(conflict.Current, broken)))
			}
			return err
		}},
		"wrong state conflicts: the state is ignored": changedFrom(func(now record, ch *edit) { ch.From = now.State }),
		"wrong state conflicts: case is ignored": changedFrom(func(now record, ch *edit) {
			if strings.EqualFold(now.State, ch.From) {
				ch.From = now.State
			}
		}),
		"wrong existence conflicts: a creation overwrites": changedFrom(func(now record, ch *edit) {
			if ch.From == "" {
				ch.From, ch.Expect = now.State, now.Revision
			}
		}),
		"conflict has the current record: no record":      conflicts(func(c *lifecycle.ConflictError) { c.Current = record{} }),
		"conflict has the current record: no expectation": conflicts(func(c *lifecycle.ConflictError) { c.Expect = "" }),
		"same content is a change: not written": {commit: func(s *faulty, ctx context.Context, c *commits) error {
			want := s.now(c.Changes[0].To.Key)
			want.Sequence++
			if difference(want, c.Changes[0].To) == "" {
				return nil
			}
			return s.write(ctx, c)
		}},
		"every field is kept: an event for none": shown(func(r *record) {
			if r.Exists() {
				r.Event = cmp.Or(r.Event, "none")
			}
		}),
		"sequence has no gap: a gap": {change: func(s *faulty, ch *edit) {
			if ch.To.ID == "a" && ch.To.Sequence > 5 {
				ch.To.Sequence++
			}
		}},
		"continue after removal: begin again": restartNumbers(func(*faulty, lifecycle.Key) bool { return true }),
		"outdated creation conflicts: only existence counts": changedFrom(func(now record, ch *edit) {
			if ch.From == "" && !now.Exists() {
				ch.Expect, ch.To.Sequence = now.Revision, now.Sequence+1
			}
		}),
		"returning to a state conflicts: a revision of the content": revisions(func(_ *faulty, r record) lifecycle.Revision {
			return lifecycle.Revision(fmt.Sprint(r.State, r.Origin, r.Operation))
		}),
	},
	"Names/any_id_machine_and_state": {
		"blanks at the end": keyed(func(k lifecycle.Key) lifecycle.Key { k.ID = strings.TrimRight(k.ID, " "); return k }),
		"254 bytes":         keyed(func(k lifecycle.Key) lifecycle.Key { k.ID = k.ID[:min(254, len(k.ID))]; return k }),
		"state: blanks at the end": selecting(func(q lifecycle.Query, r record) bool {
			return slices.ContainsFunc(q.States, func(state string) bool {
				return strings.TrimRight(state, " ") == strings.TrimRight(r.State, " ")
			})
		}),
		"a key of a history is a path": {history: func(s *faulty, k lifecycle.Key, list rows) rows {
			if k == (lifecycle.Key{Machine: "m", ID: "x/y/z"}) {
				other, _ := s.MemoryStore.History(context.Background(), lifecycle.Key{Machine: "m/x", ID: "y/z"}, 0, all)
				list = slices.Concat(list, other)
			}
			return list
		}},
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
	"Commit/malformed_or_undeclared_is_refused": {
		"taken": {commit: func(s *faulty, ctx context.Context, c *commits) error { return s.write(ctx, c) }},
		"preconditions do not count": {commit: func(s *faulty, ctx context.Context, c *commits) error {
			if len(c.Changes) > limit {
				return errors.ErrUnsupported
			}
			return s.write(ctx, c)
		}},
		"dropped": {
			has:    func(has *lifecycle.Capabilities) { has.Messages = false },
			before: func(_ *faulty, c *commits) { c.Messages = nil },
		},
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
	"Numbers/never_repeat": {
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
		"forgets 8 removed objects":    forgetting(8),
		"forgets 200 removed objects":  forgetting(200),
		"forgets 2000 removed objects": forgetting(2000),
	},
}
