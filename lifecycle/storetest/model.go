package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/lifecycle"
)

var modelDemands = []demand{
	{name: "Model/random_commits_agree", check: randomCommitsAgree},
}

// Random commits have the results that a naive model has. The model decides about
//   - changes: creations, moves, removals, MetadataOnly changes, the same content;
//   - conflicts: outdated revisions and wrong states, and which change they name;
//   - preconditions on states and on absence, also of objects of the same commit;
//   - commits that are sent again, at once and later, or under another token;
//   - numbers, revisions and deadlines, and the records of removed objects;
//   - lists by every condition but time, and their pages;
//   - histories, recent changes, and messages, with their pages.
//
// The package pgregory.net/rapid draws the sequences and shortens one that fails.
func randomCommitsAgree(t *tester) {
	runs := 0
	rapid.Check(t, func(r *rapid.T) {
		runs++
		m := &model{
			tester: &tester{TB: rapidTB{t.TB, r}, config: t.config, stores: t.stores, store: t.store, has: t.has},
			draw:   r, machine: fmt.Sprintf("machine of run %d", runs),
			now: map[string]lifecycle.StoredRecord{}, past: map[string][]lifecycle.Revision{},
			history: map[string][]lifecycle.HistoryRow{}, follows: t.follows(),
		}
		m.emptyOutbox()
		r.Repeat(map[string]func(*rapid.T){
			"commit":     func(*rapid.T) { m.commitSomething() },
			"send again": func(*rapid.T) { m.sendAgain() },
			"discard":    func(*rapid.T) { m.discardSome() },
			"":           func(*rapid.T) { m.compare() },
		})
	})
}

// rapidTB is a test that reports failures to rapid.
type rapidTB struct {
	testing.TB
	r *rapid.T
}

func (t rapidTB) Helper()                           { t.r.Helper() }
func (t rapidTB) Logf(format string, args ...any)   { t.r.Logf(format, args...) }
func (t rapidTB) FailNow()                          { t.r.FailNow() }
func (t rapidTB) Errorf(format string, args ...any) { t.r.Errorf(format, args...) }
func (t rapidTB) Fatalf(format string, args ...any) { t.r.Fatalf(format, args...) }

// model is what a store must hold of one machine, by id.
type model struct {
	*tester
	draw    *rapid.T
	machine string
	now     map[string]lifecycle.StoredRecord
	past    map[string][]lifecycle.Revision // that changes have replaced
	history map[string][]lifecycle.HistoryRow
	follows bool
	commits []sentCommit

	messages  []lifecycle.Message
	discarded []uint64
}

// modelIDs are the ids of the objects, and otherIDs those of no object, for pages after them.
var (
	modelIDs = []string{"B", "a", "a ", "é"}
	otherIDs = []string{"", "A", "ab", "b"}
)

// below draws a number from 0 to n-1.
func (m *model) below(n int) int { return rapid.IntRange(0, n-1).Draw(m.draw, "number") }

// pick draws one of a list.
func pick[T any](m *model, list ...T) T { return list[m.below(len(list))] }

// everyByte is a payload that is no text.
var everyByte = func() (list []byte) {
	for i := range 256 {
		list = append(list, byte(i))
	}
	return list
}()

// manyOwners are more than a statement of some engines can have.
var manyOwners = func() (list []lifecycle.OwnerRef) {
	for i := range 1000 {
		list = append(list, owner(fmt.Sprint("process ", i/2), uint64(1+i%2)))
	}
	return append(list, owner("one", 2), owner("ONE", 1), owner("on", 1), owner("two", 1), owner("three", 1<<62))
}()

// states draws some states.
func (m *model) states() (list []string) {
	for range m.below(4) {
		list = append(list, pick(m, "", idle, moving, broken, "Being moved"))
	}
	return list
}

func (m *model) key(id string) lifecycle.Key { return lifecycle.Key{Machine: m.machine, ID: id} }

// read reads an object. The numbers of an absent object may have grown. Its record has no
// other field than its revision and, of its removal, time, reason, event and actor.
func (m *model) read(id string) lifecycle.StoredRecord {
	r, want := m.get(m.key(id)), m.now[id]
	if !want.Exists() {
		m.continues(want, r)
		want.Key, want.Revision, want.Sequence, want.Operation = m.key(id), r.Revision, r.Sequence, r.Operation
		want.ChangedAt, want.Reason = r.ChangedAt, r.Reason
		if r.Event == "" && r.Actor == "" {
			want.Event, want.Actor = "", ""
		}
	}
	equal(m.tester, want, r, "the record of "+id)
	return r
}

// change draws a change of an object.
func (m *model) change(before lifecycle.StoredRecord) lifecycle.StoredChange {
	kinds := []string{"move", "move", "move"}
	if before.Exists() {
		kinds = append(kinds, "remove", "remove", "metadata", "metadata", "same content")
	}
	if before.Operation < 1<<60 {
		kinds = append(kinds, "every field")
	}
	o := pick(m, owner("", 0), owner("one", 1), owner("one", 2), owner("two", 1), owner("three", 1<<62))
	switch pick(m, kinds...) {
	case "remove":
		return removal(before)
	case "metadata":
		ch := takeOver(before, o.Name, o.Epoch)
		ch.Timeout = pick(m, 0, hour)
		return ch
	case "same content":
		ch := change(before, before.State)
		ch.To = before
		ch.To.Sequence++
		return ch
	case "every field":
		return m.fullChange(before)
	}
	ch := change(before, pick(m, idle, moving, broken))
	ch.To.Payload = pick(m, nil, []byte{}, []byte(`{"a": 1,  "b":"x"}`), everyByte)
	ch.To.Saved = pick(m, nil, []byte{}, everyByte)
	ch.To.Origin = pick(m, idle, moving, broken)
	ch.To.Owner, ch.To.Epoch, ch.Timeout = o.Name, o.Epoch, pick(m, 0, 0, 5*time.Second, hour)
	return ch
}

// spoil changes what a change expects, if it can.
func (m *model) spoil(ch *lifecycle.StoredChange) (wrong bool) {
	past := m.past[ch.To.ID]
	if ch.MetadataOnly || len(past) > 0 && m.below(2) == 0 {
		if len(past) > 0 {
			ch.Expect = pick(m, past...)
		}
		return len(past) > 0
	}
	from := ch.From
	ch.From = pick(m, "", strings.ToLower(from), from+" ", moving, broken)
	return ch.From != from
}

// commitSomething commits up to four changes with preconditions and messages.
func (m *model) commitSomething() {
	c, wrong := commitOf(), -1
	count := 1 + m.below(min(4, m.has.Changes))
	for i, id := range rapid.Permutation(modelIDs).Draw(m.draw, "ids")[:count] {
		ch := m.change(m.read(id))
		if m.below(8) == 0 && m.spoil(&ch) && wrong < 0 {
			wrong = i
		}
		c.Changes = append(c.Changes, ch)
	}
	for n := range m.below(3) {
		if m.has.Messages {
			c.Messages = append(c.Messages, message(fmt.Sprint(len(m.messages)+n)))
		}
	}
	if wrong >= 0 {
		m.logCommit(c)
		ch := c.Changes[wrong]
		want := lifecycle.ConflictError{Change: wrong, Expect: ch.Expect, From: ch.From, Current: m.read(ch.To.ID)}
		equal(m.tester, want, *m.conflict(c, "a wrong expectation"), "the conflict")
		return
	}
	unmet := m.require(c)
	m.logCommit(c)
	if unmet != nil {
		var got *lifecycle.PreconditionError
		require.ErrorAs(m, send(m.Context(), m.store, c), &got)
		equal(m.tester, *unmet, *got, "the failed precondition")
		return
	}
	m.accept(m.sent(c))
}

// logCommit describes a commit in the report of a failure.
func (m *model) logCommit(c *lifecycle.Commit) {
	for _, ch := range c.Changes {
		m.Logf("%q to %q, expects %q at revision %q, owner %q, timeout %v, metadata only: %t, removal: %t",
			ch.To.ID, ch.To.State, ch.From, ch.Expect, ch.To.Owner, ch.Timeout, ch.MetadataOnly, ch.Remove)
	}
	for _, p := range c.Require {
		m.Logf("requires %q in %q", p.ID, p.States)
	}
	m.Logf("in one commit, with %d messages", len(c.Messages))
}

// require adds up to two preconditions. It returns the error of the one that fails.
func (m *model) require(c *lifecycle.Commit) (unmet *lifecycle.PreconditionError) {
	for range m.below(1 + min(2, m.has.Changes-len(c.Changes))) {
		now := m.read(pick(m, modelIDs...))
		p := lifecycle.Precondition{Key: now.Key, States: m.states()}
		switch {
		case slices.Contains(p.States, now.State):
		case unmet == nil && m.below(3) == 0:
			unmet = &lifecycle.PreconditionError{Precondition: p, Current: now}
		default:
			p.States = append(p.States, now.State)
		}
		c.Require = append(c.Require, p)
	}
	return unmet
}

// accept applies a commit that was written.
func (m *model) accept(s sentCommit) {
	for i := range s.filled.Changes {
		ch := &s.filled.Changes[i]
		id := ch.To.ID
		before := m.now[id]
		deadline := time.Time{}
		switch {
		case ch.MetadataOnly:
			require.True(m, ch.To.ChangedAt.Equal(before.ChangedAt), "a MetadataOnly change at %v", ch.To.ChangedAt)
			if deadline = before.Deadline; ch.Timeout > 0 {
				deadline = ch.To.Deadline // is later by the time of the store
			}
		case ch.Timeout > 0:
			deadline = ch.To.ChangedAt.Add(ch.Timeout)
		}
		require.True(m, deadline.Equal(ch.To.Deadline), "the deadline is %v, not %v", ch.To.Deadline, deadline)
		m.past[id] = append(m.past[id], ch.Expect)
		require.NotContains(m, m.past[id], ch.To.Revision, "a revision is repeated")
		if !ch.MetadataOnly {
			m.history[id] = append(m.history[id], ch.Row(s.filled.Token))
		}
		m.now[id] = ch.To
		if ch.Remove {
			m.now[id] = lifecycle.StoredRecord{
				Sequence: ch.To.Sequence, Operation: ch.To.Operation, Event: ch.To.Event, Actor: ch.To.Actor,
			}
		}
	}
	m.messages = append(m.messages, s.filled.Messages...)
	m.commits = append(m.commits, s)
}

// sendAgain sends a commit again that the store must recognize, or that it must refuse.
func (m *model) sendAgain() {
	if len(m.commits) == 0 {
		return
	}
	last := len(m.commits) - 1
	s := m.commits[pick(m, last, m.below(last+1))]
	switch {
	case leaseOnly(s.sent):
		m.conflict(clone(s.sent), "a commit with a MetadataOnly change that is sent again")
	case m.below(4) == 0:
		m.conflict(commitOf(s.sent.Changes...), "the same changes under another token")
	case m.known(s.filled):
		m.repeat(s, "later")
		m.repeat(sentCommit{s.filled, s.filled}, "with the fields of the store")
	}
}

// known reports whether the store must recognize the token of a commit.
func (m *model) known(c *lifecycle.Commit) bool {
	for i := range c.Changes {
		rows := m.history[c.Changes[i].To.ID]
		newest := slices.IndexFunc(rows, func(row lifecycle.HistoryRow) bool { return row.Token == c.Token })
		changed := m.now[c.Changes[i].To.ID].Revision != c.Changes[i].To.Revision
		if newest < len(rows)-kept || changed && !m.has.History {
			return false
		}
	}
	return true
}

func leaseOnly(c *lifecycle.Commit) bool {
	return slices.ContainsFunc(c.Changes, func(ch lifecycle.StoredChange) bool { return ch.MetadataOnly })
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
	if d := difference(want, m.list(q)); d != "" {
		m.Fatalf("the result of %+v differs (-want +got):\n%s", q, d)
	}
	id := pick(m, modelIDs...)
	m.read(id)
	m.compareHistory(id)
	m.compareRecent()
	m.compareOutbox()
}

// compareHistory compares the rows that are kept: the newest ones, without a gap. A page
// has rows above a sequence number, ascending.
func (m *model) compareHistory(id string) {
	if !m.has.History {
		return
	}
	want, rows := m.history[id], m.rows(m.key(id), 0, all)
	require.GreaterOrEqual(m, len(rows), min(kept, len(want)))
	require.LessOrEqual(m, len(rows), len(want))
	equal(m.tester, want[len(want)-len(rows):], rows, "the history")
	if len(rows) > 0 {
		from, limit := m.below(len(rows)), 1+m.below(3)
		page := rows[from+1 : min(from+1+limit, len(rows))]
		equal(m.tester, page, m.rows(m.key(id), rows[from].Sequence, limit), fmt.Sprintf("%d rows", limit))
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
	got, err := m.store.(lifecycle.Follower).Recent(m.Context(), m.machine, hour, after, limit)
	require.NoError(m, err)
	equal(m.tester, want, got, "the recent changes")
}

// compareOutbox compares the oldest messages. Reading removes none.
func (m *model) compareOutbox() {
	if m.has.Messages {
		limit := 1 + m.below(4)
		numbers := m.outbox(m.messages, "these commits")
		page := m.oldest(limit, m.messages[:min(limit, len(m.messages))], "these commits")
		require.Equal(m, numbers[:len(page)], page)
	}
}

// discardSome discards some messages, once more those that were discarded, and numbers that
// no message has.
func (m *model) discardSome() {
	if !m.has.Messages {
		return
	}
	var left []lifecycle.Message
	unknown := []uint64{0, 1000 + uint64(len(m.messages))}
	for i, n := range m.outbox(m.messages, "these commits") {
		require.NotContains(m, m.discarded, n, "a number is repeated")
		unknown[1] = max(unknown[1], n+1000)
		if m.below(3) == 0 {
			m.discarded = append(m.discarded, n)
		} else {
			left = append(left, m.messages[i])
		}
	}
	m.discard(append(unknown, m.discarded...)...)
	m.messages = left
}

// selects reports whether a query without conditions about time selects a record.
func selects(q lifecycle.Query, r lifecycle.StoredRecord) bool {
	return r.Exists() && r.Machine == q.Machine && r.ID > q.After &&
		(len(q.States) == 0 || slices.Contains(q.States, r.State)) &&
		(!q.NoDeadline || r.Deadline.IsZero()) && (!q.Unowned || r.Owner == "") &&
		(q.NotOwnedBy == nil || r.Owner != "" && !slices.Contains(q.NotOwnedBy, owner(r.Owner, r.Epoch)))
}

// emptyOutbox discards the messages of the runs before.
func (m *model) emptyOutbox() {
	if m.has.Messages {
		list, err := m.store.(lifecycle.Outbox).Messages(m.Context(), all)
		require.NoError(m, err)
		for _, msg := range list {
			m.discard(msg.Number)
		}
	}
}
