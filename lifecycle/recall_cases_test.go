package lifecycle_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// lastWritten is a store that recalls what it likes, by default what was written
// last through it.
func lastWritten() *recaller { return &recaller{reader: newReader()} }

// A guard that panics over a record that is over is not heard, and is over the
// present one.
func TestRecallOfAPanic(t *testing.T) {
	s := lastWritten()
	m := lifecycle.New(trolley, s, nil)
	others := lifecycle.New(trolley, s.MemoryStore, nil)
	_, err := m.Create(t.Context(), "a", "create", user, size{N: 5})
	require.NoError(t, err)
	require.PanicsWithValue(t, "the guard looks at 5", func() { _, _ = m.Fire(t.Context(), "a", "start", user, nil) })
	_, err = others.Fire(t.Context(), "a", "note", user, &lifecycle.Change[size]{Edit: func(p *size) error { p.N++; return nil }})
	require.NoError(t, err)
	rec, err := m.Fire(t.Context(), "a", "start", user, nil)
	require.NoError(t, err)
	require.Equal(t, state("Busy"), rec.State)
	require.Equal(t, size{N: 6}, rec.Payload)
}

// mistaken recalls one object for another.
type mistaken struct{ *recaller }

func (s mistaken) Recall(key lifecycle.Key) (lifecycle.StoredRecord, bool) {
	key.ID = "b"
	return s.recaller.Recall(key)
}

// What is recalled of another object moves neither.
func TestRecallOfAnotherObject(t *testing.T) {
	m := lifecycle.New(trolley, mistaken{lastWritten()}, nil)
	for _, id := range []string{"a", "b"} {
		_, err := m.Create(t.Context(), id, "create", user, size{})
		require.NoError(t, err)
	}
	rec, err := m.Fire(t.Context(), "a", "start", user, nil)
	require.NoError(t, err)
	require.Equal(t, "a", rec.ID)
	b, err := m.Get(t.Context(), "b")
	require.NoError(t, err)
	require.Equal(t, state("Idle"), b.State)
}

// Where changes go along, they do with every change.
func TestRecallGoesAlong(t *testing.T) {
	s := lastWritten()
	b := lifecycle.New(trolley, s, nil)
	asked := 0
	a := lifecycle.New(trolley, s, &lifecycle.Config[event]{
		Along: func(context.Context, *lifecycle.StoredChange) (lifecycle.Along, error) {
			asked++
			return lifecycle.Along{Parts: []lifecycle.AnyPart{b.Firing("b", "note", user, nil)}}, nil
		},
	})
	_, err := b.Create(t.Context(), "b", "create", user, size{})
	require.NoError(t, err)
	_, err = a.Create(t.Context(), "a", "create", user, size{})
	require.NoError(t, err)
	_, err = a.Fire(t.Context(), "a", "start", user, nil)
	require.NoError(t, err)
	require.Equal(t, 2, asked)
	rec, err := b.Get(t.Context(), "b")
	require.NoError(t, err)
	require.EqualValues(t, 3, rec.Sequence)
}

// What a sweep has seen is what it decides on, and no record that was written
// since: the object may be in another operation by now, with a deadline to come.
func TestRecallIsNotForSweeps(t *testing.T) {
	s := lastWritten()
	table := fsm.Must[size](fsm.Spec[state, event]{
		Name: "trolley", Initial: "Idle", Actors: []fsm.Actor{user, agent},
		States: []fsm.State[state]{{Name: "Idle"}, {Name: "Busy", Kind: fsm.Transitional}},
		Rows: fsm.Rows(
			fsm.Move[state, event]("Idle", "start", "Busy").By(user),
			fsm.Move[state, event]("Busy", "done", "Idle").By(agent),
			fsm.Move[state, event]("Busy", "fail", "Idle").After(time.Hour),
		),
	})
	var m *lifecycle.Manager[state, event, size]
	m = lifecycle.New(table, s, &lifecycle.Config[event]{
		Observe: func(ctx context.Context, stuck lifecycle.StoredRecord) (event, fsm.Actor, error) {
			for _, e := range []event{"done", "start"} {
				if _, err := m.Fire(ctx, stuck.ID, e, map[event]fsm.Actor{"done": agent, "start": user}[e], nil); err != nil {
					return "", "", err
				}
			}
			return "", "", nil
		},
	})
	_, err := m.Add(t.Context(), "a", user, size{})
	require.NoError(t, err)
	_, err = m.Override(t.Context(), "a", "Busy", user, "it hangs", nil)
	require.NoError(t, err)
	now, err := s.MemoryStore.Get(t.Context(), lifecycle.Key{Machine: "trolley", ID: "a"})
	require.NoError(t, err)
	ch := lifecycle.StoredChange{Expect: now.Revision, From: now.State, FromOrigin: now.Origin, To: now, Within: time.Nanosecond, Quiet: true}
	require.NoError(t, s.MemoryStore.Commit(t.Context(), &lifecycle.Commit{Token: lifecycle.NewToken(), Changes: []lifecycle.StoredChange{ch}}))
	cases, err := m.Sweep(t.Context())
	require.NoError(t, err)
	require.Len(t, cases, 1)
	require.Equal(t, lifecycle.Overtaken, cases[0].Remedy, "%v", cases[0])
	rec, err := m.Get(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, state("Busy"), rec.State)
}
