package fsm_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm"
)

// The table decides by index as the machine decides by value. The reference decides
// for both.
func TestTableDecidesAsTheMachine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := specs().Draw(t, "spec")
		for i := range spec.Rows {
			if spec.Rows[i].Timeout > 0 {
				spec.Rows[i].Timeout = time.Duration(rapid.IntRange(1, 3).Draw(t, "minutes")) * time.Minute
			}
		}
		m, err := fsm.New[gates](spec)
		require.NoError(t, err)
		d := newDriver(t, m, spec, func(i int) int { return i }, func(i int) int { return i }, tally{})
		for range 25 {
			d.byIndex()
		}
	})
}

func (d *driver[S, E]) byIndex() {
	p := d.payload()
	at, e, a := d.request()
	s, o, event := d.m.StateIndex(at.State), d.m.StateIndex(at.Origin), d.m.EventIndex(e)
	if s < 0 || o < 0 || event < 0 {
		return
	}
	force := rapid.Bool().Draw(d.t, "force")
	var want []int
	for i := range d.ref.spec.Rows {
		r := &d.ref.spec.Rows[i]
		if r.Event == e && d.ref.leaves(r, at.State) && d.ref.mayFire(r, a) && d.ref.fits(r, at) && (force || !r.Forced) {
			want = append(want, i)
		}
	}
	table, before := d.m.Table(), []int{77}
	got, err := table.Candidates(before, s, o, event, a, force)
	require.Equal(d.t, append(before, want...), got)

	next := d.m.Next
	if force {
		next = d.m.NextForced
	}
	_, refusal := next(context.Background(), at, e, a, p)
	if len(want) == 0 {
		require.EqualError(d.t, err, refusal.Error())
		require.Equal(d.t, sentinel(d.t, refusal), sentinel(d.t, err))
		return
	}
	require.NoError(d.t, err)
	if errors.Is(refusal, fsm.ErrGuard) {
		var reasons []error
		for _, i := range want {
			reasons = append(reasons, d.ref.check(&d.ref.spec.Rows[i]))
		}
		require.EqualError(d.t, table.Refused(s, o, a, want, reasons), refusal.Error())
	}

	shortest, row := time.Duration(0), -1
	for i := range d.ref.spec.Rows {
		r := &d.ref.spec.Rows[i]
		if !d.ref.leaves(r, at.State) || !d.ref.fits(r, at) {
			continue
		}
		after := d.ref.after(r, at)
		ns, no := table.After(s, o, i)
		require.Equal(d.t, after, fsm.Status[S]{State: d.m.StateAt(ns), Origin: d.m.StateAt(no)})
		if r.Timeout > 0 && (row < 0 || r.Timeout < shortest) {
			shortest, row = r.Timeout, i
		}
	}
	gotTimeout, gotRow := table.Timeout(s, o)
	require.Equal(d.t, [2]any{shortest, row}, [2]any{gotTimeout, gotRow})
}

func TestCandidatesAreInOrderOfTrial(t *testing.T) {
	table := trials(t).Table()
	start, _ := table.StateIndex("start")
	move, _ := table.EventIndex("go")
	rows, err := table.Candidates(nil, start, start, move, user, false)
	require.NoError(t, err)
	require.Equal(t, []int{0, 2, 4}, rows)
	rows, err = table.Candidates(rows[:0], start, start, move, user, true)
	require.NoError(t, err)
	require.Equal(t, []int{0, 2, 3, 4}, rows)
	rows, err = table.Candidates(nil, start, start, move, guest, true)
	require.ErrorIs(t, err, fsm.ErrWrongActor)
	require.Empty(t, rows)

	err = table.Refused(start, start, user, []int{0, 2}, []error{errTrial, errFull})
	require.EqualError(t, err, "fsm: refused by a guard: trials: go in start by user: first: declined; second: no space")
	require.Equal(t, fsm.ErrGuard, sentinel(t, err))
	require.ErrorIs(t, err, errTrial)
	require.ErrorIs(t, err, errFull)
}

func TestDeadlineIsTheShortestTimeoutThatFits(t *testing.T) {
	s := with(sound(),
		fsm.Move("closing", "late", "closed").Of("open").After(time.Second),
		fsm.Move("closed", "open", "closing").By(user),
		fsm.Move("closing", "later", "open").After(time.Minute))
	table := mustNew(t, s).Table()
	for _, c := range []struct {
		name          string
		state, origin int
		timeout       time.Duration
		row           int
	}{
		{"one origin", 1, 0, time.Second, 4},
		{"first declared of two", 1, 2, time.Minute, 1},
		{"stable state", 0, 0, 0, -1},
		{"final state", 3, 3, 0, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			timeout, row := table.Timeout(c.state, c.origin)
			require.Equal(t, c.timeout, timeout)
			require.Equal(t, c.row, row)
		})
	}
}

func TestFirstRowHasTheShortestTimeout(t *testing.T) {
	s := sound()
	s.Rows = slices.Insert(s.Rows, 0, fsm.Move("closing", "late", "closed").After(time.Second))
	timeout, row := mustNew(t, s).Table().Timeout(1, 0)
	require.Equal(t, time.Second, timeout)
	require.Zero(t, row)
}

func TestTableWithoutMachineDoesNotDecide(t *testing.T) {
	table := doorTable()
	const text = "fsm: table door was neither made by a machine nor read from a file"
	require.PanicsWithValue(t, text, func() { _, _ = table.Candidates(nil, 0, 0, 0, user, false) })
	require.PanicsWithValue(t, text, func() { table.After(0, 0, 0) })
	require.PanicsWithValue(t, text, func() { table.Timeout(0, 0) })
	require.Panics(t, func() { newDisks(t).Table().After(0, 0, 5) }, "a row of another state")
}

// The index behind the last event is the cell of another state, and no row compares the origin.
func TestCandidatesOutOfRange(t *testing.T) {
	table := fsm.Must[struct{}](fsm.Spec[string, string]{
		Name: "x", Initial: "A", Actors: []fsm.Actor{"u"},
		States: []fsm.State[string]{{Name: "A"}, {Name: "B"}},
		Rows:   fsm.Rows(fsm.Move("A", "go", "B"), fsm.Move("B", "go", "A")),
	}).Table()
	for _, at := range [][3]int{{0, 0, -1}, {0, 0, 1}, {-1, 0, 0}, {2, 0, 0}, {0, -1, 0}, {0, 2, 0}} {
		require.Panics(t, func() { _, _ = table.Candidates(nil, at[0], at[1], at[2], "u", false) }, "%v", at)
	}
}
