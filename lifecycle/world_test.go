package lifecycle_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// vms is a manager of sized VMs over a store that keeps everything, and over a
// layer that can fail.
func vms(t *testing.T) (*sizedManager, *hooked) {
	store := &hooked{MemoryStore: &lifecycle.MemoryStore{KeepHistory: -1}}
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return lifecycle.Must(sizedVM, store, &lifecycle.Config[event]{Undo: []event{"undo"}}), store
}

// ready makes a VM that is Ready, in operation 1.
func ready(t *testing.T, m *sizedManager, id string) lifecycle.Record[state, size] {
	t.Helper()
	create(t, m, id, "create", user, size{N: 1})
	return fire(t, m, id, "done", agent, nil)
}

// updating makes a VM that is Updating from size 1 to size 2, in operation 2.
func updating(t *testing.T, m *sizedManager, id string) lifecycle.Record[state, size] {
	t.Helper()
	ready(t, m, id)
	return fire(t, m, id, "update", user, resize(2))
}

func resize(n int) *lifecycle.Change[size] {
	return &lifecycle.Change[size]{Edit: func(p *size) error {
		p.N = n
		return nil
	}}
}

// hooked is a memory store with a function in front of Get and Commit.
type hooked struct {
	*lifecycle.MemoryStore

	// afterGet runs once the n-th Get has read, before the caller has it.
	afterGet func(n int)
	// onCommit runs instead of the n-th commit; write makes it.
	onCommit func(n int, c *lifecycle.Commit, write func() error) error

	mu            sync.Mutex
	gets, commits int
	tokens        []lifecycle.Token // of the commits
}

func (s *hooked) Get(ctx context.Context, key lifecycle.Key) (lifecycle.StoredRecord, error) {
	rec, err := s.MemoryStore.Get(ctx, key)
	s.mu.Lock()
	s.gets++
	n := s.gets
	s.mu.Unlock()
	if s.afterGet != nil {
		s.afterGet(n)
	}
	return rec, err
}

func (s *hooked) Commit(ctx context.Context, c *lifecycle.Commit) error {
	s.mu.Lock()
	s.commits++
	n := s.commits
	s.tokens = append(s.tokens, c.Token)
	s.mu.Unlock()
	write := func() error { return s.MemoryStore.Commit(ctx, c) }
	if s.onCommit != nil {
		return s.onCommit(n, c, write)
	}
	return write()
}

// reset clears the counts and the functions.
func (s *hooked) reset() { s.gets, s.commits, s.tokens, s.afterGet, s.onCommit = 0, 0, nil, nil, nil }

// lose writes a commit of which the manager is not to see the answer, not even
// what the store fills into it.
func (s *hooked) lose(t *testing.T, c *lifecycle.Commit) error {
	t.Helper()
	unseen := *c
	unseen.Changes = slices.Clone(c.Changes)
	require.NoError(t, s.MemoryStore.Commit(context.Background(), &unseen))
	return fmt.Errorf("the line is dead: %w", lifecycle.ErrUnknownOutcome)
}

// others is a manager of the same objects that goes past the hooks.
func (s *hooked) others() *sizedManager { return lifecycle.Must(sizedVM, s.MemoryStore, nil) }

// everything is all that a store has of some objects. Two equal values mean that no
// commit was made in between.
type everything struct {
	Records  []lifecycle.StoredRecord
	History  [][]lifecycle.HistoryRow
	Messages []lifecycle.OutboxMessage
}

func all(t *testing.T, store *lifecycle.MemoryStore, machine string, ids ...string) (e everything) {
	t.Helper()
	ctx := context.Background()
	for _, id := range ids {
		key := lifecycle.Key{Machine: machine, ID: id}
		rec, err := store.Get(ctx, key)
		require.NoError(t, err)
		e.Records = append(e.Records, rec)
		rows, err := store.History(ctx, key, 0, 1000)
		require.NoError(t, err)
		e.History = append(e.History, rows)
	}
	got, err := store.Messages(ctx, 1000)
	require.NoError(t, err)
	e.Messages = got
	return e
}

// plant writes a record that no manager of the table would write.
func plant(t *testing.T, store lifecycle.Store, rec lifecycle.StoredRecord) {
	t.Helper()
	before := storedAt(t, store, rec.Key)
	rec.Sequence, rec.Operation = before.Sequence+1, before.Operation+1
	require.NoError(t, store.Commit(t.Context(), &lifecycle.Commit{
		Token:   lifecycle.NewToken(),
		Changes: []lifecycle.StoredChange{{Expect: before.Revision, From: before.State, To: rec}},
	}))
}

// path checks that rows are a gapless history of one object, from its first
// commit, along rows of the table, with operations as the design has them.
func path[S, E comparable, T any](t *testing.T, m *fsm.Machine[S, E, T], absent string, rows []lifecycle.HistoryRow) {
	t.Helper()
	table := m.Table()
	state, origin, operation := "", "", lifecycle.OpID(0)
	tokens := map[lifecycle.Token]bool{}
	for i, row := range rows {
		require.EqualValues(t, i+1, row.Sequence, "gap before %v", row)
		require.Equal(t, state, row.From, "%v does not go on where %v ended", row, rows[max(i-1, 0)])
		require.Equal(t, origin, row.FromOrigin, "%v", row)
		require.False(t, tokens[row.Token], "%v was written twice", row)
		tokens[row.Token] = true
		from := row.From
		if from == "" {
			from, origin = absent, absent
		}
		s, o, err := table.ParseStatus(from, origin)
		require.NoError(t, err, "%v", row)
		e, ok := table.EventIndex(row.Event)
		require.True(t, ok, "%v", row)
		candidates, err := table.Candidates(nil, s, o, e, row.Actor, false)
		require.NoError(t, err, "%v", row)
		toState, toOrigin := table.After(s, o, candidates[0])
		require.Equal(t, row.To, table.States[toState].Name, "%v", row)
		require.Equal(t, row.Origin, table.States[toOrigin].Name, "%v", row)
		if table.States[toState].Kind == fsm.Transitional && (table.States[s].Kind.Resting() || table.Rows[candidates[0]].Supersede) {
			operation++
		} else if row.From == "" && operation > 0 {
			operation++ // a new life, with a number of its own
		}
		require.Equal(t, operation, row.Operation, "%v", row)
		state, origin = row.To, row.Origin
		if table.States[toState].Kind == fsm.Absent {
			state, origin = "", ""
		}
	}
}
