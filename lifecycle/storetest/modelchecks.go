package storetest

import (
	"fmt"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// sendAgain sends a commit again that the store must recognize, or that it must refuse.
func (m *model) sendAgain() {
	if len(m.commits) == 0 {
		return
	}
	last := len(m.commits) - 1
	c := m.commits[pick(m, last, m.below(last+1))]
	switch {
	case slices.ContainsFunc(c.Changes, func(ch lifecycle.StoredChange) bool { return ch.MetadataOnly }):
		m.conflict(c, "a commit with a MetadataOnly change that is sent again")
	case m.below(4) == 0:
		m.conflict(commitOf(c.Changes...), "the same changes under another token")
	case m.known(c):
		m.repeat(c, "later")
	}
}

// known reports whether the store must recognize the token of a commit.
func (m *model) known(c *lifecycle.Commit) bool {
	for i := range c.Changes {
		id := c.Changes[i].To.ID
		newest := slices.ContainsFunc(m.newest(id), func(row lifecycle.HistoryRow) bool { return row.Token == c.Token })
		if !newest || m.now[id].Revision != c.Changes[i].To.Revision && !m.has.History {
			return false
		}
	}
	return true
}

// compare compares a list, the record and the history of one object, and the outbox.
func (m *model) compare() {
	q := lifecycle.Query{
		Machine: m.machine, States: m.states(), After: pick(m, slices.Concat(modelIDs, otherIDs)...), Limit: 1 + m.below(5),
		Unowned: m.below(4) == 0, NoDeadline: m.below(4) == 0, WithoutPayload: m.below(4) == 0,
	}
	if m.below(4) == 0 {
		q.NotOwnedBy = pick(m, []lifecycle.OwnerRef{}, []lifecycle.OwnerRef{owner("one", 1)}, manyOwners)
	}
	var want []lifecycle.StoredRecord
	for _, id := range modelIDs {
		if r := m.now[id]; selects(q, r) && len(want) < q.Limit {
			if q.WithoutPayload {
				r.Payload, r.Saved, r.Args = nil, nil, nil
			}
			want = append(want, r)
		}
	}
	got := m.list(q)
	m.hold(got...)
	equal(m.tester, want, got, fmt.Sprintf("the result of %+v", q))
	id := pick(m, modelIDs...)
	m.read(id)
	m.compareHistory(id)
	m.compareRecent()
	m.compareOutbox()
}

// compareHistory compares the rows that are kept: the newest ones, without a gap. A page
// has rows above a sequence number, ascending. A page of 0 has none.
func (m *model) compareHistory(id string) {
	if !m.has.History {
		return
	}
	want, rows := m.history[id], m.rows(m.key(id), 0, all)
	require.GreaterOrEqual(m, len(rows), min(kept, len(want)), "rows of %s: the store has lost some of the newest %d", id, kept)
	require.LessOrEqual(m, len(rows), len(want), "rows of %s: more than changes with a row", id)
	equal(m.tester, want[len(want)-len(rows):], rows, "the history")
	if len(rows) > 0 {
		from, limit := m.below(len(rows)), m.below(4)
		page := rows[from+1 : min(from+1+limit, len(rows))]
		equal(m.tester, page, m.rows(m.key(id), rows[from].Sequence, limit), fmt.Sprintf("a page of at most %d rows after number %d", limit, rows[from].Sequence))
	}
	if len(m.requests) > 0 {
		request := m.request()
		got, err := m.store().(lifecycle.Historian).Requested(m.Context(), m.machine, request)
		require.NoError(m, err)
		equal(m.tester, m.requested(request), got, "the row of request "+request)
	}
}

// compareRecent compares a page of the objects that have changed, removed ones included.
func (m *model) compareRecent() {
	if !m.follows {
		return
	}
	after, limit := pick(m, slices.Concat(modelIDs, otherIDs)...), m.below(5)
	var want []lifecycle.ChangedObject
	for _, id := range modelIDs {
		if rows := m.history[id]; len(rows) > 0 && id > after && len(want) < limit {
			want = append(want, lifecycle.ChangedObject{ID: id, Sequence: rows[len(rows)-1].Sequence})
		}
	}
	got, err := m.store().(lifecycle.Follower).Recent(m.Context(), m.machine, hour, after, limit)
	require.NoError(m, err)
	equal(m.tester, want, got, "the recent changes")
}

// compareOutbox compares the oldest messages. Reading removes none.
func (m *model) compareOutbox() {
	limit := m.below(5)
	numbers := m.outbox(all, m.emitted, "these commits")
	page := m.outbox(limit, m.emitted[:min(limit, len(m.emitted))], "these commits")
	require.True(m, slices.Equal(numbers[:len(page)], page), "the numbers %v of a page of %v", page, numbers)
}

// discardSome discards some messages, once more those that were discarded, and numbers that
// no message has.
func (m *model) discardSome() {
	if !m.has.Messages {
		return
	}
	var left []lifecycle.Message
	numbers := m.outbox(all, m.emitted, "these commits")
	for i, n := range numbers {
		require.NotContains(m, m.discarded, n, "a number is repeated")
		if m.below(3) == 0 {
			m.discarded = append(m.discarded, n)
		} else {
			left = append(left, m.emitted[i])
		}
	}
	first := slices.Max(append(numbers, 0)) + 1000
	unknown := []uint64{0, first}
	if m.below(4) == 0 { // more than a statement of some engines can have
		for n := range uint64(1000) {
			unknown = append(unknown, first+n)
		}
	}
	m.discard(append(unknown, m.discarded...)...)
	m.emitted = left
}

// selects reports whether a query without conditions about time selects a record.
func selects(q lifecycle.Query, r lifecycle.StoredRecord) bool {
	return r.Exists() && r.Machine == q.Machine && r.ID > q.After &&
		(len(q.States) == 0 || slices.Contains(q.States, r.State)) &&
		(!q.NoDeadline || r.Deadline.IsZero()) && (!q.Unowned || r.Owner == "") &&
		(q.NotOwnedBy == nil || r.Owner != "" && !slices.Contains(q.NotOwnedBy, owner(r.Owner, r.Epoch)))
}
