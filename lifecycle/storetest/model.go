package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/lifecycle"
)

var modelDemands = []demand{
	{name: "Model/random_calls_agree", check: randomCallsAgree},
}

// Random sequences of calls have the results that a naive model has. The package
// pgregory.net/rapid draws the sequences and shortens one that fails.
func randomCallsAgree(t *tester) {
	runs := 0
	rapid.Check(t, func(r *rapid.T) {
		runs++
		m := &model{
			tester:  &tester{TB: rapidTB{t.TB, r}, config: t.config, store: t.store, has: t.has},
			draw:    r,
			records: map[lifecycle.Key]*lifecycle.StoredRecord{},
			rows:    map[lifecycle.Key][]lifecycle.HistoryRow{},
		}
		for i, id := range []string{"a", "b", "a", "b"} {
			k := lifecycle.Key{Machine: fmt.Sprintf("machine %d of run %d", i/2, runs), ID: id}
			first := m.get(k)
			m.keys, m.records[k] = append(m.keys, k), &first
		}
		m.emptyOutbox()
		r.Repeat(map[string]func(*rapid.T){
			"commit":  func(*rapid.T) { m.commitSomething() },
			"repeat":  func(*rapid.T) { m.repeatTheLastCommit() },
			"list":    func(*rapid.T) { m.listSomething() },
			"discard": func(*rapid.T) { m.discardSomething() },
			"":        func(*rapid.T) { m.compare() },
		})
	})
}

// rapidTB is a test that reports failures to rapid.
type rapidTB struct {
	testing.TB
	r *rapid.T
}

func (t rapidTB) Helper()                           { t.r.Helper() }
func (t rapidTB) FailNow()                          { t.r.FailNow() }
func (t rapidTB) Errorf(format string, args ...any) { t.r.Errorf(format, args...) }
func (t rapidTB) Fatalf(format string, args ...any) { t.r.Fatalf(format, args...) }

// model is what a store must hold.
type model struct {
	*tester
	draw     *rapid.T
	keys     []lifecycle.Key // two objects of each of two machines
	records  map[lifecycle.Key]*lifecycle.StoredRecord
	rows     map[lifecycle.Key][]lifecycle.HistoryRow
	messages []lifecycle.Message
	last     *sentCommit // nil: there is none
}

// number draws a number from 0 to most.
func (m *model) number(most int) int { return rapid.IntRange(0, most).Draw(m.draw, "number") }

func (m *model) anyKey() lifecycle.Key { return m.keys[m.number(len(m.keys)-1)] }

func (m *model) anyState() string { return []string{idle, moving, broken}[m.number(2)] }

// compare reads an object and compares its record and history, and the outbox.
func (m *model) compare() {
	k := m.anyKey()
	if !m.records[k].Exists() {
		m.refresh(k)
	} else {
		equal(m.tester, *m.records[k], m.get(k), "the record")
		if m.has.History {
			m.newest(m.rows[k], m.tester.rows(k, m.rows[k][0].Sequence-1, all))
		}
	}
	m.outbox(m.messages, "random calls")
}

// refresh reads an absent object, whose numbers may have grown.
func (m *model) refresh(k lifecycle.Key) {
	r := m.get(k)
	require.False(m, r.Exists(), "the object exists")
	m.continues(*m.records[k], r)
	m.records[k] = &r
}

// commitSomething commits up to three changes, some of them with a wrong expectation
// or a precondition.
func (m *model) commitSomething() {
	c := commitOf()
	count := 1 + m.number(min(2, m.has.Changes-1))
	for _, k := range rapid.Permutation(m.keys).Draw(m.draw, "keys")[:count] {
		if !m.records[k].Exists() {
			m.refresh(k)
		}
		ch := change(*m.records[k], m.anyState())
		if m.records[k].Exists() && m.number(3) == 0 {
			ch = removal(*m.records[k])
		} else if m.number(2) == 0 {
			ch.Timeout = hour
		}
		ch.To.Reason = fmt.Sprint("commit ", len(m.rows[k]))
		c.Changes = append(c.Changes, ch)
	}
	wrong := m.expectWrongly(&c.Changes[count-1])
	unmet := m.requireSomething(c)
	for i := range m.number(2) {
		if m.has.Messages {
			c.Messages = append(c.Messages, message(fmt.Sprint(len(m.messages), "/", i)))
		}
	}
	s := sentCommit{c, clone(c)}
	err := send(m.Context(), m.store, s.filled)
	conflict, isConflict := errors.AsType[*lifecycle.ConflictError](err)
	switch {
	case isConflict && wrong:
		require.Equal(m, count-1, conflict.Change)
		equal(m.tester, *m.records[conflict.Current.Key], conflict.Current, "the record in the conflict")
	case errors.Is(err, lifecycle.ErrPrecondition) && unmet:
	default:
		require.NoError(m, err)
		require.False(m, wrong || unmet, "a commit was written (wrong expectation: %t, failed precondition: %t)", wrong, unmet)
		m.accept(s)
	}
}

// expectWrongly makes some changes expect what is not there.
func (m *model) expectWrongly(ch *lifecycle.StoredChange) bool {
	switch m.number(9) {
	case 0:
		ch.From += "?"
	case 1:
		ch.Expect = "never"
		if rows := m.rows[ch.To.Key]; len(rows) > 1 {
			ch.Expect = rows[len(rows)-2].Revision
		}
	default:
		return false
	}
	return true
}

// requireSomething adds a precondition to some commits and reports whether it fails.
func (m *model) requireSomething(c *lifecycle.Commit) (unmet bool) {
	if m.number(3) > 0 || len(c.Changes) >= m.has.Changes {
		return false
	}
	p := lifecycle.Precondition{Key: m.anyKey(), States: []string{m.anyState(), ""}}
	c.Require = []lifecycle.Precondition{p}
	return !slices.Contains(p.States, m.records[p.Key].State)
}

// accept applies a commit that was written.
func (m *model) accept(s sentCommit) {
	for i := range s.filled.Changes {
		ch := &s.filled.Changes[i]
		k := ch.To.Key
		require.Equal(m, ch.Timeout > 0, ch.To.Deadline.Equal(ch.To.ChangedAt.Add(hour)), "the deadline")
		for _, row := range m.rows[k] {
			require.NotEqual(m, row.Revision, ch.To.Revision, "a revision is repeated")
		}
		if !m.records[k].Exists() {
			m.rows[k] = nil // the store may have forgotten them
		}
		m.rows[k] = append(m.rows[k], ch.Row(s.sent.Token))
		m.records[k] = &ch.To
		if ch.Remove {
			m.records[k] = &lifecycle.StoredRecord{Key: k, Sequence: ch.To.Sequence, Operation: ch.To.Operation}
		}
	}
	m.messages = append(m.messages, s.sent.Messages...)
	m.last = &s
}

func (m *model) repeatTheLastCommit() {
	if m.last != nil {
		m.repeat(*m.last, "at once")
	}
}

func (m *model) listSomething() {
	q := lifecycle.Query{Machine: m.anyKey().Machine, Limit: 1 + m.number(2)}
	if m.number(1) == 0 {
		q.States = []string{m.anyState(), m.anyState()}
	}
	if m.number(1) == 0 {
		q.After = m.anyKey().ID
	}
	var want []lifecycle.StoredRecord
	for _, k := range m.keys { // those of one machine are in order of id
		r := m.records[k]
		if k.Machine == q.Machine && r.Exists() && k.ID > q.After && len(want) < q.Limit &&
			(q.States == nil || slices.Contains(q.States, r.State)) {
			want = append(want, *r)
		}
	}
	equal(m.tester, want, m.list(q), fmt.Sprintf("the result of %+v", q))
}

// discardSomething discards one of the oldest messages.
func (m *model) discardSomething() {
	if len(m.messages) == 0 {
		return
	}
	i := m.number(min(4, len(m.messages)-1))
	m.discard(m.outbox(m.messages, "random calls")[i])
	m.messages = slices.Delete(m.messages, i, i+1)
}

// emptyOutbox discards what earlier sequences have left.
func (m *model) emptyOutbox() {
	if !m.has.Messages {
		return
	}
	list, err := m.store.(lifecycle.Outbox).Messages(m.Context(), all)
	require.NoError(m, err)
	for _, message := range list {
		m.discard(message.Number)
	}
}
