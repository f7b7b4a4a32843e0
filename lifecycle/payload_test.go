package lifecycle_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

func fullBox() box {
	return box{
		N: 1, Tags: append(make([]string, 0, 8), "one"), Labels: map[string]string{"k": "v"},
		Parent: &box{N: 2, Tags: []string{"parent"}},
	}
}

// spoil changes everything that can be reached from a box.
func spoil(b *box) {
	b.N = -1
	b.Tags[0] = "spoiled"
	_ = append(b.Tags, "spoiled")
	b.Labels["k"], b.Labels["more"] = "spoiled", "spoiled"
	b.Parent.N, b.Parent.Tags[0] = -1, "spoiled"
}

// TestPayloadIsACopy: neither later changes of what a caller passed nor changes of
// what it received reach the store.
func TestPayloadIsACopy(t *testing.T) {
	store := lifecycle.NewMemoryStore()
	m := lifecycle.Must(boxedVM, store, &lifecycle.Config[event]{Undo: []event{"undo"}})
	want := fullBox()
	check := func(what string) {
		t.Helper()
		require.Empty(t, cmp.Diff(want, get(t, m, "a").Payload), what)
	}
	given := fullBox()
	rec := create(t, m, "a", "create", user, given)
	require.Empty(t, cmp.Diff(want, rec.Payload))
	spoil(&given)
	check("what was given to create")
	spoil(&rec.Payload)
	check("what create returned")
	rec = fire(t, m, "a", "done", agent, nil)
	require.Empty(t, cmp.Diff(want, rec.Payload))
	spoil(&rec.Payload)
	check("what fire returned")
	rec = fire(t, m, "a", "ping", agent, nil)
	spoil(&rec.Payload)
	check("what an ignored event returned")
	rec = get(t, m, "a")
	spoil(&rec.Payload)
	check("what get returned")
	page, err := m.List(t.Context(), lifecycle.Select[state]{})
	require.NoError(t, err)
	spoil(&page[0].Payload)
	check("what list returned")

	_, err = m.Create(t.Context(), "a", "create", user, fullBox(), nil)
	winner := winnerOf(t, m, err)
	spoil(&winner.Payload)
	check("the winner")

	// An edit that keeps what it worked on, and puts in what it owns.
	var kept *box
	owned := fullBox()
	rec = fire(t, m, "a", "update", user, &lifecycle.Change[box]{Edit: func(p *box) error {
		kept = p
		*p = owned
		p.N = 5
		return nil
	}})
	want.N = 5
	require.Empty(t, cmp.Diff(want, rec.Payload))
	spoil(&owned)
	require.Empty(t, cmp.Diff(want, rec.Payload), "the returned record")
	check("what the edit put in")
	spoil(kept)
	check("what the edit kept")
	spoil(&rec.Payload)
	check("what the edit's fire returned")

	// An edit that fails after it has changed everything.
	_, err = m.Fire(t.Context(), "a", "progress", agent, &lifecycle.Change[box]{Edit: func(p *box) error {
		spoil(p)
		return errEdit
	}})
	require.ErrorIs(t, err, errEdit)
	check("an edit that failed")

	// The saved payload is as safe as the present one.
	rec = fire(t, m, "a", "fail", agent, nil)
	rec = fire(t, m, "a", "undo", user, nil)
	want.N = 1
	require.Empty(t, cmp.Diff(want, rec.Payload), "the undo's record")
	check("the undone edit")
}

// TestGuardChangesNothing: the guard of these boxes writes into the payload,
// against the rules; no record ever has that.
func TestGuardChangesNothing(t *testing.T) {
	store := lifecycle.NewMemoryStore()
	m := lifecycle.Must(boxedVM, store, nil)
	given, want := fullBox(), fullBox()
	rec := create(t, m, "a", "create", user, given)
	require.Empty(t, cmp.Diff(want, rec.Payload), "after the guard of create")
	require.Empty(t, cmp.Diff(want, given), "the caller's own")
	fire(t, m, "a", "done", agent, nil)
	rec = fire(t, m, "a", "update", user, &lifecycle.Change[box]{Edit: func(p *box) error {
		require.Empty(t, cmp.Diff(want, *p), "what the edit sees after the guard of fire")
		p.N = 2
		return nil
	}})
	want.N = 2
	require.Empty(t, cmp.Diff(want, rec.Payload))
	require.Empty(t, cmp.Diff(want, get(t, m, "a").Payload))
	t.Run("plain payload", func(t *testing.T) {
		spec := noteTable()
		spec.Rows[0] = spec.Rows[0].If(fsm.When("writes", func(_ context.Context, _, p *size) error {
			p.N = -1
			return nil
		}))
		m := lifecycle.Must(fsm.Must[size](spec), lifecycle.NewMemoryStore(), nil)
		add(t, m, "a", user, size{N: 1})
		require.Equal(t, size{N: 1}, fire(t, m, "a", "edit", user, nil).Payload)
		require.Equal(t, size{N: 1}, get(t, m, "a").Payload)
	})
}

// TestGuardSeesBothPayloads: the one of the record, and what the edit makes of it.
func TestGuardSeesBothPayloads(t *testing.T) {
	var seen []size
	m := lifecycle.Must(checked(func(_ context.Context, before, after *size) error {
		seen = append(seen, *before, *after)
		return nil
	}), lifecycle.NewMemoryStore(), nil)
	add(t, m, "a", user, size{N: 1})
	fire(t, m, "a", "start", user, nil)
	edits := 0
	fire(t, m, "a", "done", "worker", &lifecycle.Change[size]{Edit: func(s *size) error { edits++; s.N = 2; return nil }})
	require.Equal(t, []size{{N: 1}, {N: 2}}, seen)
	require.Equal(t, 1, edits)
}

// TestGuardOfForeignPayload: a guard does not run if one of its payloads cannot be decoded.
func TestGuardOfForeignPayload(t *testing.T) {
	for name, rec := range map[string]lifecycle.StoredRecord{
		"before": {Payload: []byte("?"), Saved: []byte(`{"N":1}`)},
		"after":  {Payload: []byte(`{"N":1}`), Saved: []byte("?")},
	} {
		t.Run(name, func(t *testing.T) {
			store := lifecycle.NewMemoryStore()
			m := lifecycle.Must(checked(func(context.Context, *size, *size) error {
				t.Error("the guard runs")
				return nil
			}), store, &lifecycle.Config[event]{Undo: []event{"done"}})
			rec.Key, rec.State, rec.Origin = lifecycle.Key{Machine: "checked", ID: "a"}, "starting", "off"
			plant(t, store, rec)
			before := storedAt(t, store, rec.Key)
			_, err := m.Fire(t.Context(), "a", "done", "worker", nil)
			require.ErrorIs(t, err, lifecycle.ErrForeign)
			require.Equal(t, before, storedAt(t, store, rec.Key))
		})
	}
}

// TestUndo: the content of the origin comes back, after one edit and after a
// retry with another, by a call and by a report.
func TestUndo(t *testing.T) {
	undo := map[string]func(t *testing.T, m *sizedManager){
		"fire": func(t *testing.T, m *sizedManager) {
			require.Equal(t, size{N: 1}, fire(t, m, "a", "undo", user, nil).Payload)
		},
		"report": func(t *testing.T, m *sizedManager) {
			require.Equal(t, lifecycle.Applied, report(t, m, "a", get(t, m, "a").Operation, "undo", agent, ""))
		},
	}
	for name, back := range undo {
		t.Run(name, func(t *testing.T) {
			store := lifecycle.NewMemoryStore()
			m := lifecycle.Must(sizedVM, store, &lifecycle.Config[event]{Undo: []event{"undo"}})
			updating(t, m, "a")
			fire(t, m, "a", "fail", agent, nil)
			require.Equal(t, size{N: 2}, get(t, m, "a").Payload)
			back(t, m)
			require.Equal(t, size{N: 1}, get(t, m, "a").Payload)

			fire(t, m, "a", "update", user, resize(3))
			fire(t, m, "a", "fail", agent, nil)
			fire(t, m, "a", "retry", user, resize(4))
			fire(t, m, "a", "fail", agent, nil)
			back(t, m)
			require.Equal(t, size{N: 1}, get(t, m, "a").Payload)
		})
	}
	t.Run("is only what Config names", func(t *testing.T) {
		m := lifecycle.Must(sizedVM, lifecycle.NewMemoryStore(), nil)
		updating(t, m, "a")
		fire(t, m, "a", "fail", agent, nil)
		require.Equal(t, size{N: 2}, fire(t, m, "a", "undo", user, nil).Payload)
	})
	t.Run("with an edit on top", func(t *testing.T) {
		m := lifecycle.Must(sizedVM, lifecycle.NewMemoryStore(), &lifecycle.Config[event]{Undo: []event{"undo"}})
		updating(t, m, "a")
		fire(t, m, "a", "fail", agent, nil)
		rec := fire(t, m, "a", "undo", user, &lifecycle.Change[size]{Edit: func(p *size) error {
			p.N += 10
			return nil
		}})
		require.Equal(t, size{N: 11}, rec.Payload)
	})
}

// TestUndoOfAnOutcome: work changes the payload with its outcome, and the operation goes on. An
// undo restores the payload from before the outcome.
func TestUndoOfAnOutcome(t *testing.T) {
	m := lifecycle.Must(fsm.Must[size](fsm.Spec[state, event]{
		Name: "draft", Initial: "kept", Actors: []fsm.Actor{user, "worker"},
		States: []fsm.State[state]{{Name: "kept"}, {Name: "editing", Kind: fsm.Transitional}, {Name: "checking", Kind: fsm.Transitional}},
		Rows: fsm.Rows(
			fsm.Move[state, event]("kept", "edit", "editing").By(user),
			fsm.Move[state, event]("editing", "done", "checking").By("worker"),
			fsm.Return[state, event]("editing", "late").AlsoFrom("checking").After(time.Minute),
			fsm.Return[state, event]("checking", "undo").By(user),
		),
	}), lifecycle.NewMemoryStore(), &lifecycle.Config[event]{WorkerActor: "worker", Done: []event{"done"}, Undo: []event{"undo"}})
	add(t, m, "a", user, size{N: 1})
	rec := wait(t, do(t, m, "a", "edit", user, lifecycle.Func(func(ctx context.Context) error {
		lifecycle.EditOutcome(ctx, func(s *size) error { s.N = 2; return nil })
		return nil
	}), nil))
	require.Equal(t, size{N: 2}, rec.Payload)
	require.Equal(t, size{N: 1}, fire(t, m, "a", "undo", user, nil).Payload)
}

// TestUndoTwice: an undo that is work itself, and edits, and fails, leaves what
// the next undo brings back.
func TestUndoTwice(t *testing.T) {
	m := lifecycle.Must(fsm.Must[size](fsm.Spec[state, event]{
		Name: "router", Initial: "Good", Actors: []fsm.Actor{user},
		States: []fsm.State[state]{
			{Name: "Good"},
			{Name: "Working", Kind: fsm.Transitional, Manual: "an operator repairs it"},
			{Name: "Bad", Kind: fsm.Failed},
		},
		Rows: fsm.Rows(
			fsm.Move[state, event]("Good", "change", "Working"),
			fsm.Move[state, event]("Working", "fail", "Bad"),
			fsm.Move[state, event]("Working", "done", "Good"),
			fsm.Move[state, event]("Bad", "undo", "Working"),
		),
	}), lifecycle.NewMemoryStore(), &lifecycle.Config[event]{Undo: []event{"undo"}})
	add(t, m, "r", user, size{N: 1})
	fire(t, m, "r", "change", user, resize(2))
	fire(t, m, "r", "fail", user, nil)
	require.Equal(t, size{N: 3}, fire(t, m, "r", "undo", user, resize(3)).Payload)
	fire(t, m, "r", "fail", user, nil)
	require.Equal(t, size{N: 1}, fire(t, m, "r", "undo", user, nil).Payload)
}

// TestZeroPayload: a store may keep the zero payload as nothing at all; an undo
// brings that back as well.
func TestZeroPayload(t *testing.T) {
	m, store := vms(t)
	plant(t, store, lifecycle.StoredRecord{Key: lifecycle.Key{Machine: "vm", ID: "a"}, State: "Ready"})
	require.Zero(t, get(t, m, "a").Payload)
	fire(t, m, "a", "update", user, resize(2))
	fire(t, m, "a", "fail", agent, nil)
	require.Zero(t, fire(t, m, "a", "undo", user, nil).Payload)
	require.Zero(t, get(t, m, "a").Payload)

	empty := lifecycle.Must(emptyVM, store, nil)
	create(t, empty, "b", "create", user, struct{}{})
	fire(t, empty, "b", "done", agent, &lifecycle.Change[struct{}]{Edit: func(*struct{}) error { return nil }})
	require.Empty(t, storedAt(t, store, lifecycle.Key{Machine: "vm", ID: "b"}).Payload, "a type without any bits")
}

// TestPointers: every kind of reference is found, however deep.
func TestPointers(t *testing.T) {
	aliased(t, new(int), func(p *int) { *p = 1 })
	aliased(t, []int{0}, func(p []int) { p[0] = 1 })
	aliased(t, map[string]int{"k": 0}, func(p map[string]int) { p["k"] = 1 })
	aliased(t, [1]struct{ P *int }{{new(int)}}, func(p [1]struct{ P *int }) { *p[0].P = 1 })
	aliased(t, struct{ In struct{ M map[string]int } }{struct{ M map[string]int }{map[string]int{"k": 0}}},
		func(p struct{ In struct{ M map[string]int } }) { p.In.M["k"] = 1 })
	aliased(t, any([]any{0.0}), func(p any) { p.([]any)[0] = 1.0 })
}

func aliased[T any](t *testing.T, v T, change func(T)) {
	t.Helper()
	m := lifecycle.Must(fsm.Must[T](noteTable()), lifecycle.NewMemoryStore(), nil)
	add(t, m, "a", user, v)
	rec := get(t, m, "a")
	want := rec.Payload
	change(v)
	change(get(t, m, "a").Payload)
	got := get(t, m, "a").Payload
	require.Equal(t, want, got)
	require.NotEqual(t, v, got, "the change changes nothing")
}

// foreignErrors are errors that an edit or a guard may get from another manager.
var foreignErrors = map[string]error{
	"exists":      lifecycle.ErrExists,
	"conflict":    lifecycle.ErrConflict,
	"not found":   lifecycle.ErrNotFound,
	"busy":        lifecycle.ErrBusy,
	"unknown":     lifecycle.ErrUnknownOutcome,
	"lost create": &lifecycle.ConflictError{},
	"lost race":   &lifecycle.ConflictError{From: "Ready", Current: lifecycle.StoredRecord{State: "Busy"}},
	"late create": &lifecycle.ConflictError{Current: lifecycle.StoredRecord{State: "Ready"}},
	"other vm": &lifecycle.ConflictError{From: "Failed", Current: lifecycle.StoredRecord{
		Key: lifecycle.Key{Machine: "vm", ID: "other"}, State: "Ready",
	}},
}

// TestEditsOwnError: the caller gets the error that Edit returns, even if it matches
// sentinels of this package.
func TestEditsOwnError(t *testing.T) {
	for name, foreign := range foreignErrors {
		t.Run(name, func(t *testing.T) {
			m, store := vms(t)
			ready(t, m, "a")
			store.reset()
			runs := 0
			_, err := m.Fire(t.Context(), "a", "update", user, &lifecycle.Change[size]{Edit: func(*size) error {
				runs++
				return errors.Join(errEdit, foreign)
			}})
			require.ErrorIs(t, err, errEdit)
			require.ErrorIs(t, err, foreign)
			require.Equal(t, 1, runs)
			require.Zero(t, store.commits)
			_, ok := lifecycle.Current(m, err)
			require.False(t, ok, "no other writer has won this object")
		})
	}
}

// TestGuardsOwnReason: the same for the reason of a guard.
func TestGuardsOwnReason(t *testing.T) {
	errGuard := errors.New("refused by the guard")
	for name, foreign := range foreignErrors {
		t.Run(name, func(t *testing.T) {
			runs := 0
			guard := fsm.When("asks", func(context.Context, *size, *size) error {
				runs++
				return errors.Join(errGuard, foreign)
			})
			spec := noteTable()
			for i := range spec.Rows {
				spec.Rows[i] = spec.Rows[i].If(guard)
			}
			m := lifecycle.Must(fsm.Must[size](spec), lifecycle.NewMemoryStore(), nil)
			_, err := m.Create(t.Context(), "a", "write", user, size{}, nil)
			require.ErrorIs(t, err, fsm.ErrGuard)
			require.ErrorIs(t, err, errGuard)
			require.Equal(t, 422, lifecycle.HTTPStatus(err))
			add(t, m, "a", user, size{})
			_, err = m.Fire(t.Context(), "a", "edit", user, nil)
			require.ErrorIs(t, err, fsm.ErrGuard)
			require.ErrorIs(t, err, errGuard)
			require.Equal(t, 422, lifecycle.HTTPStatus(err))
			require.Equal(t, 2, runs)
		})
	}
}

// TestPanics: a panic of a guard or an edit goes on in the caller's goroutine,
// and nothing is left behind.
func TestPanics(t *testing.T) {
	spec := noteTable()
	spec.Rows[0] = spec.Rows[0].If(fsm.When("explodes", func(_ context.Context, _, p *size) error {
		if p.N == 1 {
			panic("guard")
		}
		return nil
	}))
	store := lifecycle.NewMemoryStore()
	m := lifecycle.Must(fsm.Must[size](spec), store, nil)
	add(t, m, "1", user, size{N: 1})
	add(t, m, "2", user, size{N: 2})
	before := all(t, store, "note", "1", "2")
	require.PanicsWithValue(t, "guard", func() { _, _ = m.Fire(t.Context(), "1", "edit", user, nil) })
	require.PanicsWithValue(t, "edit", func() {
		_, _ = m.Fire(t.Context(), "2", "edit", user, &lifecycle.Change[size]{Edit: func(*size) error { panic("edit") }})
	})
	require.Equal(t, before, all(t, store, "note", "1", "2"))
}

// TestPayloadOfDeepJSON: a payload that could not be read again is refused.
func TestPayloadOfDeepJSON(t *testing.T) {
	raw := fsm.Must[struct{ Attributes json.RawMessage }](noteTable())
	m := lifecycle.Must(raw, lifecycle.NewMemoryStore(), nil)
	nested := func(depth int) (payload struct{ Attributes json.RawMessage }) {
		payload.Attributes = json.RawMessage(strings.Repeat("[", depth) + strings.Repeat("]", depth))
		return payload
	}
	_, err := m.Add(t.Context(), "a", initial(m), user, nested(10_000), nil)
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	add(t, m, "a", user, nested(9_999))
	before := get(t, m, "a")
	require.Equal(t, nested(9_999), before.Payload)
}
