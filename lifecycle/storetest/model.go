package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/lifecycle"
)

// Random commits have the results that a naive model has. The model decides about
//   - changes: creations, moves, removals, MetadataOnly changes, the same content;
//   - the fields that a store sets, and all others, in records and in the history;
//   - times, which are not rounded to seconds: a deadline would come early;
//   - conflicts: outdated revisions and wrong states, and which change they name;
//   - preconditions on states and on absence, also of objects of the same commit;
//   - the owner of a commit, which must be alive in its epoch, whatever heartbeats it sends:
//     it is compared after expectations and preconditions;
//   - requests, which no two rows of a machine have, and every machine may have;
//   - commits that are sent again, at once and later, or under another token;
//   - numbers, revisions and deadlines, and the records of removed objects;
//   - lists by every condition but time, and their pages;
//   - histories, recent changes, and messages, with their pages;
//   - bytes that a store has returned, which never change.
//
// The package pgregory.net/rapid draws the sequences and shortens one that fails.
func randomCommitsAgree(t *tester) {
	runs, keepsRequests, fractions := 0, t.keepsRequests(), map[bool]bool{}
	rapid.Check(t, func(r *rapid.T) {
		runs++
		m := &model{
			tester: &tester{TB: rapidTB{t.TB, r}, config: t.config, stores: t.stores, turns: new(atomic.Uint64), has: t.has},
			draw:   r, machine: fmt.Sprintf("machine of run %d", runs), owner: owner(fmt.Sprint("process/", runs), 2),
			now: map[string]lifecycle.StoredRecord{}, past: map[string][]lifecycle.Revision{},
			history: map[string][]lifecycle.HistoryRow{}, follows: t.follows(), fractions: fractions,
		}
		if keepsRequests {
			m.requests = []string{"Request 1", "request 1", "Request 1 ", "2", "é", "e\u0301"}
		}
		for _, msg := range m.oldest(all) { // of the runs before
			m.discard(msg.Number)
		}
		r.Repeat(map[string]func(*rapid.T){
			"commit": func(*rapid.T) { m.commitSomething() },
			"other":  func(*rapid.T) { pick(m, m.sendAgain, m.sendAgain, m.discardSome, m.changeOwner)() },
			"":       func(*rapid.T) { m.compare() },
		})
		require.Equal(m, m.copies, m.held, "bytes that the store has returned")
	})
	// A few short sequences (see -rapid.checks and -rapid.steps) may have no commit that is accepted.
	require.False(t, fractions[false] && !fractions[true], "every ChangedAt is a whole second, so deadlines come early: keep fractions of seconds")
}

// rapidTB is a test that reports failures to rapid.
type rapidTB struct {
	testing.TB
	r *rapid.T
}

func (t rapidTB) Logf(format string, args ...any)   { t.r.Logf(format, args...) }
func (t rapidTB) FailNow()                          { t.r.FailNow() }
func (t rapidTB) Errorf(format string, args ...any) { t.r.Errorf(format, args...) }

// model is what a store must hold of one machine, by id.
type model struct {
	*tester
	draw    *rapid.T
	machine string
	now     map[string]lifecycle.StoredRecord
	past    map[string][]lifecycle.Revision // that changes have replaced
	history map[string][]lifecycle.HistoryRow
	follows bool
	commits []*lifecycle.Commit

	owner     lifecycle.OwnerRef  // of the commits that have one
	requests  []string            // that no change has had
	emitted   []lifecycle.Message // and not discarded
	discarded []uint64

	held, copies [][]byte      // bytes that the store has returned, and what they were
	fractions    map[bool]bool // true: a ChangedAt was no whole second, false: one was; in all runs
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

// noText is a payload that is not a text.
var noText = []byte("\x00\x01\t\r\n \"'\\%\x7f\x80\xc3\x28\xfe\xff\x00")

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
// other field than its revision and, of its removal, fence, time, reason, event and actor. A
// store that keeps no row for it keeps no fence.
func (m *model) read(id string) lifecycle.StoredRecord {
	r, want := m.get(m.key(id)), m.now[id]
	m.hold(r)
	if !want.Exists() {
		m.continues(want, r)
		want.Key, want.Revision, want.Sequence, want.Operation = m.key(id), r.Revision, r.Sequence, r.Operation
		want.ChangedAt, want.Reason = r.ChangedAt, r.Reason
		if r.Event == "" && r.Actor == "" {
			want.Event, want.Actor = "", ""
		}
		if r.Fence == 0 {
			want.Fence = 0
		}
	}
	equal(m.tester, want, r, "the record of "+id)
	m.now[id] = r
	return r
}

// hold notes bytes that the store has returned.
func (m *model) hold(records ...lifecycle.StoredRecord) {
	for i := range records {
		for _, data := range [][]byte{records[i].Payload, records[i].Saved, records[i].Args} {
			m.held, m.copies = append(m.held, data), append(m.copies, bytes.Clone(data))
		}
	}
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
	case "remove": // most of the record that was removed does not stay
		ch, full := removal(before), m.fullChange(before).To
		full.State, full.Operation, full.Event = gone, before.Operation, ch.To.Event
		ch.To = full
		return ch
	case "metadata":
		ch := takeOver(before, o.Name, o.Epoch)
		ch.Timeout, ch.To.Work = pick(m, 0, hour), pick(m, "", "lower", before.Work)
		ch.To.Args, ch.To.WorkOptions = pick(m, nil, noText, before.Args), pick(m, nil, []byte("{}"), before.WorkOptions)
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
	ch.To.Payload = pick(m, nil, []byte{}, []byte(`{"a": 1,  "b":"x"}`), noText)
	ch.To.Saved = pick(m, nil, []byte{}, noText)
	ch.To.Origin, ch.To.Event = pick(m, idle, moving, broken), pick(m, ch.To.Event, "")
	ch.To.Owner, ch.To.Epoch, ch.Timeout = o.Name, o.Epoch, pick(m, 0, 0, 1500*time.Millisecond, hour)
	return ch
}

// spoil may change what a change expects.
func (m *model) spoil(ch *lifecycle.StoredChange) {
	past := m.past[ch.To.ID]
	switch {
	case len(past) > 0 && (ch.MetadataOnly || m.below(2) == 0):
		ch.Expect = pick(m, past...)
	case !ch.MetadataOnly:
		ch.From = pick(m, "", strings.ToLower(ch.From), ch.From+" ", moving, broken)
	}
}

// commitSomething commits up to four changes with preconditions, messages, an owner and a
// request.
func (m *model) commitSomething() {
	c := commitOf()
	count := 1 + m.below(min(4, m.has.Changes))
	for _, id := range rapid.Permutation(modelIDs).Draw(m.draw, "ids")[:count] {
		ch := m.change(m.read(id))
		if m.below(8) == 0 {
			m.spoil(&ch)
		}
		c.Changes = append(c.Changes, ch)
	}
	for n := range m.below(3) {
		c.Messages = append(c.Messages, m.messages(fmt.Sprint(len(m.emitted)+n))...)
	}
	if m.below(2) == 0 {
		c.Owner = m.owner
	}
	if !errors.Is(m.expected(c), lifecycle.ErrConflict) { // the order of the two errors is not defined
		m.require(c)
	}
	ch := &c.Changes[len(c.Changes)-1]
	if m.expected(c) == nil && len(m.requests) > 0 && !ch.MetadataOnly && m.below(3) == 0 {
		ch.Request, ch.Fingerprint = m.request(), "a fingerprint"
	}

	m.Logf("%+v", *c)
	want := m.expected(c)
	err := m.send(c)
	if want == nil {
		require.NoError(m, err, "a commit whose conditions hold")
		m.accept(c)
		return
	}
	got := reflect.New(reflect.TypeOf(want)) // a variable for errors.As
	require.ErrorAs(m, err, got.Interface(), "the error of a commit that must be refused: %v", want)
	equal[any](m.tester, want, got.Elem().Interface(), "the error of the commit")
	if conflict, ok := errors.AsType[*lifecycle.ConflictError](err); ok {
		m.hold(conflict.Current)
	}
}

// expected returns the error that a commit must have.
func (m *model) expected(c *lifecycle.Commit) error {
	for i, ch := range c.Changes {
		if now := m.now[ch.To.ID]; ch.Expect != now.Revision || ch.From != now.State {
			return &lifecycle.ConflictError{Change: i, Expect: ch.Expect, From: ch.From, Current: now}
		}
	}
	for _, p := range c.Require {
		if now := m.now[p.ID]; !slices.Contains(p.States, now.State) {
			return &lifecycle.PreconditionError{Precondition: p, Current: now}
		}
	}
	if c.Owner.Name != "" {
		if now := m.get(c.Owner.Key()); !c.Owner.Alive(&now) {
			return &lifecycle.OwnerError{Owner: c.Owner}
		}
	}
	for _, ch := range c.Changes {
		if row := m.requested(ch.Request); row.Request != "" {
			return &lifecycle.RepeatedError{Row: row}
		}
	}
	return nil
}

// request draws the request of a row that the store must know, or a new one.
func (m *model) request() string {
	for _, row := range m.newest(pick(m, modelIDs...)) {
		if row.Request != "" {
			return row.Request
		}
	}
	return m.requests[0]
}

// requested returns the row of a request, if the store must know it.
func (m *model) requested(request string) (row lifecycle.HistoryRow) {
	for _, id := range modelIDs {
		for _, r := range m.newest(id) {
			if r.Request == request {
				row = r
			}
		}
	}
	return row
}

// newest returns the rows that a store must know.
func (m *model) newest(id string) []lifecycle.HistoryRow {
	rows := m.history[id]
	return rows[max(0, len(rows)-kept):]
}

// changeOwner writes the record of the owner: it joins, also in other epochs, sends a
// heartbeat, dies, or leaves.
func (m *model) changeOwner() {
	now := m.get(m.owner.Key())
	switch step := m.below(6); {
	case !now.Exists(), !m.owner.Alive(&now), step == 0:
		m.join(m.owner, alive)
	case step == 1:
		m.join(owner(m.owner.Name, pick[uint64](m, 1, 3)), alive)
	case step == 2:
		m.join(m.owner, dead)
	case step == 3:
		m.remove(now)
	default:
		m.write(takeOver(now, "", 0))
	}
}

// require adds up to two preconditions, of which one may fail.
func (m *model) require(c *lifecycle.Commit) {
	mayFail := m.below(2)
	for i := range m.below(1 + min(2, m.has.Changes-len(c.Changes))) {
		now := m.read(pick(m, modelIDs...))
		p := lifecycle.Precondition{Key: now.Key, States: m.states()}
		if i != mayFail || m.below(3) > 0 {
			p.States = append(p.States, now.State)
		}
		c.Require = append(c.Require, p)
	}
}

// accept applies a commit that was written.
func (m *model) accept(c *lifecycle.Commit) {
	for i := range c.Changes {
		ch := &c.Changes[i]
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
		require.False(m, ch.To.ChangedAt.IsZero() || ch.To.ChangedAt.Equal(wrong), "ChangedAt is %v", ch.To.ChangedAt)
		require.True(m, deadline.Equal(ch.To.Deadline), "the deadline is %v, not %v", ch.To.Deadline, deadline)
		m.fractions[ch.To.ChangedAt.Nanosecond() != 0] = true
		m.past[id] = append(m.past[id], ch.Expect)
		require.NotContains(m, m.past[id], ch.To.Revision, "a revision is repeated")
		m.requests = slices.DeleteFunc(m.requests, func(request string) bool { return request == ch.Request })
		if !ch.MetadataOnly {
			m.history[id] = append(m.history[id], ch.Row(c.Token))
		}
		m.now[id] = ch.To
		if ch.Remove {
			m.now[id] = lifecycle.StoredRecord{
				Sequence: ch.To.Sequence, Operation: ch.To.Operation, Fence: ch.To.Fence, Event: ch.To.Event, Actor: ch.To.Actor,
			}
		}
	}
	m.emitted = append(m.emitted, c.Messages...)
	m.commits = append(m.commits, c)
}
