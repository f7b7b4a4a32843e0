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
	{name: "Model/random_commits_agree", check: randomCommitsAgree},
}

// Random commits have the results that a naive model has. The package
// pgregory.net/rapid draws the sequences and shortens one that fails.
func randomCommitsAgree(t *tester) {
	runs := 0
	rapid.Check(t, func(r *rapid.T) {
		runs++
		m := &model{
			tester: &tester{TB: rapidTB{t.TB, r}, config: t.config, stores: t.stores, store: t.store, has: t.has},
			draw:   r, name: fmt.Sprintf("machine of run %d", runs),
			records: map[string]lifecycle.StoredRecord{}, rows: map[string][]lifecycle.HistoryRow{},
		}
		r.Repeat(map[string]func(*rapid.T){
			"commit": func(*rapid.T) { m.commitSomething() },
			"":       func(*rapid.T) { m.compare() },
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

// model is what a store must hold of one machine, by id.
type model struct {
	*tester
	draw    *rapid.T
	name    string
	records map[string]lifecycle.StoredRecord // those that exist
	rows    map[string][]lifecycle.HistoryRow // of this life
}

// number draws a number from 0 to most.
func (m *model) number(most int) int { return rapid.IntRange(0, most).Draw(m.draw, "number") }

// compare compares a page of the objects in some states, and the newest row of one.
func (m *model) compare() {
	q := lifecycle.Query{Machine: m.name, States: []string{idle, moving, broken}[:m.number(3)], Limit: 1 + m.number(3)}
	var want []lifecycle.StoredRecord
	for _, id := range []string{"a", "b", "c", "d"} {
		r := m.records[id]
		if r.Exists() && len(want) < q.Limit && (len(q.States) == 0 || slices.Contains(q.States, r.State)) {
			want = append(want, r)
		}
	}
	if rows := m.rows[[]string{"a", "b", "c", "d"}[m.number(3)]]; len(rows) > 0 && m.has.History {
		last := rows[len(rows)-1]
		equal(m.tester, []lifecycle.HistoryRow{last}, m.tester.rows(last.Key, last.Sequence-1, all), "the newest row")
	}
	equal(m.tester, want, m.list(q), fmt.Sprintf("the result of %+v", q))
}

// commitSomething commits up to three changes, and sends the commit again. The last
// change expects a wrong revision or state now and then.
func (m *model) commitSomething() {
	c := commitOf()
	count := 1 + m.number(min(2, m.has.Changes-1))
	for _, id := range rapid.Permutation([]string{"a", "b", "c", "d"}).Draw(m.draw, "ids")[:count] {
		before := m.get(lifecycle.Key{Machine: m.name, ID: id})
		want := m.records[id]
		require.Equal(m, want.State, before.State)
		ch := change(before, []string{idle, moving, broken}[m.number(2)])
		if before.Exists() && m.number(3) == 0 {
			ch = removal(before)
		} else if m.number(2) == 0 {
			ch.Timeout = hour
		}
		c.Changes = append(c.Changes, ch)
	}
	last := &c.Changes[count-1]
	rows := m.rows[last.To.ID]
	wrong := m.number(9)
	switch {
	case wrong == 0:
		last.From += "?"
	case wrong == 1 && len(rows) > 1:
		last.Expect = rows[len(rows)-2].Revision
	default:
		s := m.sent(c)
		m.repeat(s, "at once")
		m.accept(s.filled)
		return
	}
	conflict, ok := errors.AsType[*lifecycle.ConflictError](send(m.Context(), m.store, c))
	require.True(m, ok, "a commit with a wrong expectation is a conflict")
	require.Equal(m, count-1, conflict.Change)
}

// accept applies a commit that was written.
func (m *model) accept(c *lifecycle.Commit) {
	for i := range c.Changes {
		ch := &c.Changes[i]
		id := ch.To.ID
		require.Equal(m, ch.Timeout > 0, ch.To.Deadline.Equal(ch.To.ChangedAt.Add(hour)), "the deadline")
		if ch.From == "" {
			m.rows[id] = nil
		}
		m.rows[id] = append(m.rows[id], ch.Row(c.Token))
		m.records[id] = ch.To
		if ch.Remove {
			delete(m.records, id)
		}
	}
}
