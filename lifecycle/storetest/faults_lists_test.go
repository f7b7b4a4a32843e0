package storetest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// listFaults are the planted faults of the history, requests, messages and lists, by the demand that finds them.
var listFaults = map[string]map[string]fault{
	"Model/random_commits_agree": {
		"request is unique: for one object": changed(func(ch *edit) {
			if ch.Request != "" && ch.To.ID != "a" {
				ch.Request += " of " + ch.To.ID
			}
		}),
		"request is unique: in any case":    changed(func(ch *edit) { ch.Request = strings.ToLower(ch.Request) }),
		"request is unique: no fingerprint": changed(func(ch *edit) { ch.Fingerprint = "" }),
		"request is unique: in a commit of one": {before: func(_ *faulty, c *commits) {
			if len(c.Changes) > 1 {
				c.Changes = slices.Clone(c.Changes)
				c.Changes[1].Request = ""
			}
		}},
		"request is known: of the last change only": {requested: func(s *faulty, row lifecycle.HistoryRow) lifecycle.HistoryRow {
			if s.now(row.Key).Sequence != row.Sequence {
				return lifecycle.HistoryRow{}
			}
			return row
		}},
		"request is known: of objects that exist": {requested: func(s *faulty, row lifecycle.HistoryRow) lifecycle.HistoryRow {
			if now := s.now(row.Key); !now.Exists() {
				return lifecycle.HistoryRow{}
			}
			return row
		}},
		"messages: in reverse": {before: func(_ *faulty, c *commits) {
			c.Messages = slices.Clone(c.Messages)
			slices.Reverse(c.Messages)
		}},
		"messages: up to a NUL": {messages: eachMessage(func(_ *faulty, m *lifecycle.OutboxMessage) {
			m.Payload, _, _ = bytes.Cut(m.Payload, []byte{0})
		})},
		"messages: those of the process": {
			apart: true,
			before: func(s *faulty, c *commits) {
				for _, m := range c.Messages {
					s.cache[lifecycle.Key{Machine: m.Topic, ID: string(m.Payload)}] = record{}
				}
			},
			messages: func(s *faulty, _ int, list []lifecycle.OutboxMessage) []lifecycle.OutboxMessage {
				return slices.DeleteFunc(list, func(m lifecycle.OutboxMessage) bool {
					_, ok := s.cache[lifecycle.Key{Machine: m.Topic, ID: string(m.Payload)}]
					return !ok
				})
			},
		},
		"messages: not copied": {
			before: func(s *faulty, c *commits) { s.sent = append(s.sent, c.Messages...) },
			messages: eachMessage(func(s *faulty, m *lifecycle.OutboxMessage) {
				m.Message = s.sent[m.Number-1]
			}),
		},
		"pages of a history: from a number on": {pages: func(after *uint64, _ *int) { *after = max(*after, 1) - 1 }},
		"pages of a history: no limit":         {pages: func(_ *uint64, limit *int) { *limit = all }},
		"pages of a history: 0 is no limit":    {pages: func(_ *uint64, limit *int) { *limit = cmp.Or(*limit, all) }},
		"has the newest change: an older number": {recent: func(list []lifecycle.ChangedObject, _ asked) []lifecycle.ChangedObject {
			for i := range list {
				list[i].Sequence = 1
			}
			return list
		}},
		"has the newest change: twice": {recent: func(list []lifecycle.ChangedObject, _ asked) []lifecycle.ChangedObject {
			return slices.Concat(list, list)
		}},
		"has the newest change: only new objects": {recent: func(list []lifecycle.ChangedObject, _ asked) []lifecycle.ChangedObject {
			return slices.DeleteFunc(list, func(o lifecycle.ChangedObject) bool { return o.Sequence > 1 })
		}},
		"pages of recent changes: no limit": {recent: func(_ []lifecycle.ChangedObject, ask asked) []lifecycle.ChangedObject {
			return slices.DeleteFunc(ask.whole, func(o lifecycle.ChangedObject) bool { return o.ID <= ask.after })
		}},
		"pages of recent changes: from the beginning": {recent: func(_ []lifecycle.ChangedObject, ask asked) []lifecycle.ChangedObject {
			return ask.whole[:min(len(ask.whole), ask.limit)]
		}},
		"pages of recent changes: in reverse": {recent: func(list []lifecycle.ChangedObject, _ asked) []lifecycle.ChangedObject {
			slices.Reverse(list)
			return list
		}},
		"pages of messages: no limit": {messages: func(s *faulty, _ int, _ []lifecycle.OutboxMessage) []lifecycle.OutboxMessage {
			whole, _ := s.MemoryStore.Messages(context.Background(), all)
			return whole
		}},
		"pages of messages: 0 is no limit": {messages: func(s *faulty, limit int, list []lifecycle.OutboxMessage) []lifecycle.OutboxMessage {
			if limit == 0 {
				list, _ = s.MemoryStore.Messages(context.Background(), all)
			}
			return list
		}},
		"pages of messages: reading removes": {messages: eachMessage(func(s *faulty, m *lifecycle.OutboxMessage) {
			_ = s.MemoryStore.Discard(context.Background(), m.Number)
		})},
		"are discarded by number: up to a number": {discard: func(_ *faulty, numbers []uint64) []uint64 {
			for n := slices.Max(append(numbers, 0)); n > 0; n-- {
				numbers = append(numbers, n)
			}
			return numbers
		}},
		"are discarded by number: a hundred": {discard: func(_ *faulty, numbers []uint64) []uint64 {
			return numbers[:min(100, len(numbers))]
		}},
		"are discarded by number: numbers are places": {
			messages: func(_ *faulty, _ int, list []lifecycle.OutboxMessage) []lifecycle.OutboxMessage {
				for i := range list {
					list[i].Number = uint64(i + 1)
				}
				return list
			},
		},
		"returns records: no payloads":                 queried(func(q *lifecycle.Query) { q.WithoutPayload = true }),
		"returns records: payloads that are not asked": queried(func(q *lifecycle.Query) { q.WithoutPayload = false }),
		"returns records: those of the process": {
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
		"returns records: a summary without payloads": {found: func(_ *faulty, q lifecycle.Query, list []record) []record {
			for i := range list {
				if q.WithoutPayload {
					list[i].Reason = ""
				}
			}
			return list
		}},
		"not owned by: names only": selecting(func(q lifecycle.Query, r record) bool {
			return matches(q, r) && !slices.ContainsFunc(q.NotOwnedBy, func(o lifecycle.OwnerRef) bool { return o.Name == r.Owner })
		}),
		"not owned by: prefixes": selecting(func(q lifecycle.Query, r record) bool {
			return matches(q, r) && !slices.ContainsFunc(q.NotOwnedBy, func(o lifecycle.OwnerRef) bool {
				return o.Name != "" && strings.HasPrefix(r.Owner, o.Name) && o.Epoch == r.Epoch
			})
		}),
		"not owned by: many owners": queried(func(q *lifecycle.Query) {
			if len(q.NotOwnedBy) > 300 {
				q.NotOwnedBy = q.NotOwnedBy[:1]
			}
		}),
		"not owned by: empty is nil": queried(func(q *lifecycle.Query) {
			if len(q.NotOwnedBy) == 0 {
				q.NotOwnedBy = nil
			}
		}),
		"not owned by: unowned too": selecting(func(q lifecycle.Query, r record) bool {
			owners := q.NotOwnedBy
			q.NotOwnedBy = nil
			return matches(q, r) && !slices.Contains(owners, owner(r.Owner, r.Epoch))
		}),
		"order of ids: no case": {order: func(x, y record) int {
			return cmp.Or(cmp.Compare(strings.ToLower(x.ID), strings.ToLower(y.ID)), byID(x, y))
		}},
		"order of ids: after an unknown id": {query: func(s *faulty, q *lifecycle.Query) {
			if now := s.now(lifecycle.Key{Machine: q.Machine, ID: q.After}); !now.Exists() {
				q.After = ""
			}
		}},
		"one row per change: no row of a removal": history(func(list rows) rows {
			return slices.DeleteFunc(list, func(row lifecycle.HistoryRow) bool { return row.To == gone })
		}),
		"one row per change: no origin": changed(func(ch *edit) { ch.FromOrigin = ch.From }),
		"keeps the newest rows: a gap": history(func(list rows) rows {
			return slices.DeleteFunc(list, func(row lifecycle.HistoryRow) bool { return row.Sequence == 5 && len(list) > 5 })
		}),
		"keeps the newest rows: seven rows": history(func(list rows) rows { return list[max(0, len(list)-7):] }),
		"keeps the newest rows: not of a removed object": {history: func(s *faulty, k lifecycle.Key, list rows) rows {
			if now := s.now(k); !now.Exists() {
				return nil
			}
			return list
		}},
		"has no row of refused commits: a row": {
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
		"do not come with a refused commit: kept": {after: func(s *faulty, c, _ *commits, err error) error {
			if err != nil {
				s.emit(c.Messages)
			}
			return err
		}},
		"come once: again": {after: func(s *faulty, c, _ *commits, err error) error {
			if s.tokens[c.Token] > 1 {
				s.emit(c.Messages)
			}
			return err
		}},
		"by state: the origin too": selecting(func(q lifecycle.Query, r record) bool {
			origin := r
			origin.State = r.Origin
			return matches(q, r) || matches(q, origin)
		}),
		"unowned and no deadline: unowned is ignored": queried(func(q *lifecycle.Query) { q.Unowned = false }),
		"unowned and no deadline: a deadline in the future": selecting(func(q lifecycle.Query, r record) bool {
			q.NoDeadline = q.NoDeadline && time.Now().After(r.Deadline)
			return matches(q, r)
		}),
		"pages of a list: one is skipped": {found: func(_ *faulty, q lifecycle.Query, list []record) []record {
			if q.After != "" {
				return list[min(1, len(list)):]
			}
			return list
		}},
		"pages of a list: one is repeated": {found: func(s *faulty, q lifecycle.Query, list []record) []record {
			if now := s.now(lifecycle.Key{Machine: q.Machine, ID: q.After}); now.Exists() && inStates(q, now) {
				list = slices.Insert(list, 0, now)[:min(q.Limit, len(list)+1)]
			}
			return list
		}},
		"pages of a list: by owner": {order: func(x, y record) int { return cmp.Or(cmp.Compare(x.Owner, y.Owner), byID(x, y)) }},
	},
	"Concurrent/one_request_wins": {
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
	"Concurrent/messages_are_read_once": {
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
	"Concurrent/pages_miss_nothing": {
		"state by state": {wrap: func(s *faulty) store { return &byState{s} }},
		"one is skipped now and then": {found: func(s *faulty, _ lifecycle.Query, list []record) []record {
			if s.calls++; s.calls%5 == 0 {
				list = list[min(1, len(list)):]
			}
			return list
		}},
	},
	"Time/conditions_combine": {
		"recent: any age":       {recent: func(_ []lifecycle.ChangedObject, ask asked) []lifecycle.ChangedObject { return ask.whole }},
		"recent: whole minutes": {within: func(d time.Duration) time.Duration { return d.Truncate(time.Minute) }},
		"recent: minutes up":    {within: func(d time.Duration) time.Duration { return (d + time.Minute - 1).Truncate(time.Minute) }},
		"recent: metadata too":  metadataIsRecent(),
		"overdue or owned by another": selecting(func(q lifecycle.Query, r record) bool {
			owned := q
			owned.Overdue = false
			return matches(q, r) || q.Overdue && q.NotOwnedBy != nil && matches(owned, r)
		}),
		"more, not at least": selecting(func(q lifecycle.Query, r record) bool {
			return matches(q, r) && (q.UnchangedFor == 0 || time.Since(r.ChangedAt) > q.UnchangedFor)
		}),
		"no deadline has passed": selecting(func(q lifecycle.Query, r record) bool {
			overdue := q.Overdue
			q.Overdue = false
			return matches(q, r) && (!overdue || time.Now().After(r.Deadline))
		}),
		"one is enough": selecting(func(q lifecycle.Query, r record) bool {
			either := q
			either.UnchangedFor, either.Overdue = 0, false
			return matches(either, r) && (q.UnchangedFor > 0 && oldEnough(q, r) || q.Overdue && late(q, r))
		}),
		"the longest age overflows": selecting(func(q lifecycle.Query, r record) bool {
			q.UnchangedFor = (q.UnchangedFor + time.Microsecond - 1) / time.Microsecond * time.Microsecond
			return matches(q, r)
		}),
	},
	"Time/clock_of_the_store": {
		"ages of the caller": {ownClock: true, record: shift, query: func(_ *faulty, q *lifecycle.Query) {
			time.Sleep(time.Millisecond)
			q.UnchangedFor *= 1 << 40
		}},
		"the caller's time":         {ownClock: true, query: wait},
		"every deadline has passed": {timeless: true, query: func(_ *faulty, q *lifecycle.Query) { q.Overdue = false }},
	},
}
