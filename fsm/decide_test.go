package fsm_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm"
)

// What a machine does by values, its table says by index. The naive reading of
// the spec answers for both.
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
		d := driver[int, int]{
			t: t, m: m, n: naive[int, int]{spec: spec}, rows: rowsOf(m), odd: -1,
			state: rapid.IntRange(0, len(spec.States)-1), event: rapid.IntRange(0, len(m.Table().Events)-1),
			actors: append([]fsm.Actor{"nobody", fsm.Sweeper}, spec.Actors...),
		}
		for range 25 {
			d.byIndex()
		}
	})
}

func rowsOf[S, E comparable, T any](m *fsm.Machine[S, E, T]) (rows []fsm.Row[S, E]) {
	for r := range m.Rows() {
		rows = append(rows, r)
	}
	return rows
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
	for i := range d.n.spec.Rows {
		r := &d.n.spec.Rows[i]
		if r.Event == e && d.n.leaves(r, at.State) && d.n.mayFire(r, a) && d.n.fits(r, at) && (force || !r.Forced) {
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
			reasons = append(reasons, d.n.ask(&d.n.spec.Rows[i]))
		}
		require.EqualError(d.t, table.Refused(s, o, a, want, reasons), refusal.Error())
	}

	soonest, late := time.Duration(0), -1
	for i := range d.n.spec.Rows {
		r := &d.n.spec.Rows[i]
		if !d.n.leaves(r, at.State) || !d.n.fits(r, at) {
			continue
		}
		after := d.n.after(r, at)
		ns, no := table.After(s, o, i)
		require.Equal(d.t, after, fsm.Status[S]{State: d.m.StateAt(ns), Origin: d.m.StateAt(no)})
		if r.Timeout > 0 && (late < 0 || r.Timeout < soonest) {
			soonest, late = r.Timeout, i
		}
	}
	within, row := table.Deadline(s, o)
	require.Equal(d.t, [2]any{soonest, late}, [2]any{within, row})
}

func TestCandidatesAreForTheCallerToAskInOrder(t *testing.T) {
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
	require.EqualError(t, err, "fsm: refused by a guard: trials: go in start by user: first: declined\nsecond: no space")
	require.Equal(t, fsm.ErrGuard, sentinel(t, err))
	require.ErrorIs(t, err, errTrial)
	require.ErrorIs(t, err, errFull)
}

func TestDeadlineIsTheSoonestThatFits(t *testing.T) {
	s := sound()
	s = with(s,
		fsm.Move("closing", "late", "closed").Of("open").After(time.Second),
		fsm.Move("closed", "open", "closing").By(user),
		fsm.Move("closing", "later", "open").After(time.Minute))
	table := mustNew(t, s).Table()
	for _, c := range []struct {
		state, origin int
		within        time.Duration
		row           int
	}{
		{1, 0, time.Second, 4},
		{1, 2, time.Minute, 1}, // the first declared of two
		{0, 0, 0, -1},
		{3, 3, 0, -1},
	} {
		within, row := table.Deadline(c.state, c.origin)
		require.Equal(t, c.within, within)
		require.Equal(t, c.row, row)
	}
}

func TestDecidingOnATableOfNoMachinePanics(t *testing.T) {
	table := doorTable()
	const text = "fsm: table door was not made by a machine"
	require.PanicsWithValue(t, text, func() { _, _ = table.Candidates(nil, 0, 0, 0, user, false) })
	require.PanicsWithValue(t, text, func() { table.After(0, 0, 0) })
	require.PanicsWithValue(t, text, func() { table.Deadline(0, 0) })
	require.Panics(t, func() { newDisks(t).Table().After(0, 0, 5) }, "a row of another state")
}
