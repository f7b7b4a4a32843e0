package fsm_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
)

type (
	phase  string
	signal string
)

// doorTable is a table as a file contains it: not compiled, and with names of guards.
func doorTable() *fsm.Table {
	return &fsm.Table{
		Name: "door", Title: "A door", Initial: 0, Actors: []fsm.Actor{user, worker, fsm.Sweeper},
		Events: []string{"close", "stuck", "shut", "lock"},
		States: []fsm.TableState{
			{Name: "open", Target: -1},
			{Name: "closing", Kind: fsm.Transitional, Target: 2, Doc: "moving"},
			{Name: "closed", Target: -1},
			{Name: "locked", Kind: fsm.Final, Target: -1},
		},
		Rows: []fsm.TableRow{
			{From: []int{0}, Event: 0, Actors: []int{0}, To: 1, Guard: "free"},
			{From: []int{1}, Event: 1, Actors: []int{2}, To: -1, Then: fsm.ThenReturn, Timeout: time.Minute},
			{From: []int{1}, Event: 2, Actors: []int{1}, To: 2, Origin: []int{0}},
			{From: []int{2}, Event: 3, To: 3, Guard: "key"},
			{From: []int{0}, Event: 3, To: 3, Guard: "key", Forced: true, Doc: "broken open"},
			{From: []int{1}, Event: 0, To: -1, Then: fsm.ThenIgnore},
		},
	}
}

type person struct{ key bool }

func doorGuards(ran *[]string) []fsm.Guard[person] {
	return []fsm.Guard[person]{
		fsm.When("key", func(_ context.Context, _, p *person) error {
			*ran = append(*ran, "key")
			if !p.key {
				return errTrial
			}
			return nil
		}),
		fsm.When("free", func(context.Context, *person, *person) error { *ran = append(*ran, "free"); return nil }),
	}
}

func TestBindBindsGuardsByName(t *testing.T) {
	var ran []string
	m, err := fsm.Bind[person, phase, signal](doorTable(), doorGuards(&ran)...)
	require.NoError(t, err)
	require.Equal(t, "door", m.Name())
	in := m.Instance()
	_, err = in.Fire(t.Context(), "close", user, &person{})
	require.NoError(t, err)
	require.Equal(t, fsm.Status[phase]{State: "closing", Origin: "open"}, in.Status())
	step, err := in.Fire(t.Context(), "close", worker, &person{})
	require.NoError(t, err)
	require.True(t, step.Ignored)
	_, err = in.Fire(t.Context(), "shut", worker, &person{})
	require.NoError(t, err)
	_, err = in.Fire(t.Context(), "lock", worker, &person{})
	require.ErrorIs(t, err, errTrial)
	_, err = in.Fire(t.Context(), "lock", worker, &person{key: true})
	require.NoError(t, err)
	require.Equal(t, phase("locked"), in.State())
	require.Equal(t, []string{"free", "key", "key"}, ran)

	require.ErrorIs(t, m.Can(t.Context(), m.At("open"), "lock", worker, &person{key: true}), fsm.ErrForcedOnly)
}

func TestBoundMachineIsTheTable(t *testing.T) {
	var ran []string
	table := doorTable()
	m, err := fsm.Bind[person, phase, signal](table, doorGuards(&ran)...)
	require.NoError(t, err)
	want := doorTable()
	require.Equal(t, want.Rows, m.Table().Rows)
	require.Equal(t, want.States, m.Table().States)
	require.Equal(t, want.Events, m.Table().Events)
	require.Equal(t, want.Actors, m.Table().Actors)
	require.Equal(t, want.Title, m.Table().Title)
	require.Equal(t, want, table, "the argument is unchanged")

	require.Equal(t, []phase{"open", "closing", "closed", "locked"}, slices.Collect(m.States()))
	require.Equal(t, []signal{"close", "stuck", "shut", "lock"}, slices.Collect(m.Events()))
}

func TestBindTakesTheTableOfAMachineWithOtherGuards(t *testing.T) {
	table := newDisks(t).Table()
	full := fsm.When("room", func(context.Context, *int, *int) error { return errFull })
	m, err := fsm.Bind[int, phase, signal](table, full)
	require.NoError(t, err)
	require.Same(t, table, m.Table())
	require.ErrorIs(t, m.Can(t.Context(), m.At("CREATED"), "resize", user, nil), errFull)
	step, err := m.Next(t.Context(), m.At("CREATED"), "lost", guest, nil)
	require.NoError(t, err)
	require.Equal(t, m.At("BROKEN"), step.Status)
}

// The table of With may lack a timeout. Rows without a guard need none.
func TestWithOtherRows(t *testing.T) {
	m := newDisks(t)
	rows := slices.Clone(m.Table().Rows)
	rows[2].Timeout, rows[11].Guard = 0, ""
	var guarded []int
	other, err := m.With(m.Table().WithRows(rows), func(row int) fsm.Guard[disk] {
		guarded = append(guarded, row)
		return fsm.When("room", func(context.Context, *disk, *disk) error { return errTrial })
	})
	require.NoError(t, err)
	require.Equal(t, []int{3}, guarded)
	require.ErrorIs(t, other.Can(t.Context(), m.At("CREATED"), "resize", user, &disk{free: 1}), errTrial)
	require.NoError(t, other.Can(t.Context(), m.At("BROKEN"), "repair", user, nil))

	rows[0].To = 77
	other, err = m.With(m.Table().WithRows(rows), nil)
	require.Nil(t, other)
	require.EqualError(t, err, "fsm: invalid table disk:\n\trow 0 (ABSENT -create-> ?): the target is not declared")
}

func TestBindRefuses(t *testing.T) {
	var ran []string
	good := doorGuards(&ran)
	for _, c := range []struct {
		name   string
		table  *fsm.Table
		guards []fsm.Guard[person]
		codes  []string
		texts  []string
	}{
		{
			"a guard of two rows that is missing", doorTable(), good[1:],
			[]string{fsm.BadGuard},
			[]string{`row 3 (closed -lock-> locked): guard "key" is not bound`},
		},
		{
			"a guard of no row", doorTable(), append(slices.Clone(good), fsm.When("other", func(context.Context, *person, *person) error { return nil })),
			[]string{fsm.BadGuard},
			[]string{`guard "other" is in no row`},
		},
		{
			"a guard given twice", doorTable(), append(slices.Clone(good), good[0]),
			[]string{fsm.BadGuard},
			[]string{`guard "key" is given twice`},
		},
		{
			"no guards", doorTable(), nil,
			[]string{fsm.BadGuard, fsm.BadGuard},
			[]string{
				`row 0 (open -close-> closing): guard "free" is not bound`,
				`row 3 (closed -lock-> locked): guard "key" is not bound`,
			},
		},
		{
			"faults of the table, and a demand of New", edited(func(t *fsm.Table) { t.Rows[1].Timeout = 0; t.Rows[3].To = 4 }), good,
			[]string{fsm.UnknownState, fsm.NoDeadline},
			[]string{
				"row 3 (closed -lock-> ?): the target is not declared",
				"state closing: transitional, with neither a timeout nor Manual",
			},
		},
		{
			"indexes of a table by hand", edited(func(t *fsm.Table) { t.Initials = []int{0, 4}; t.Rows[0].Event = 4; t.Rows[2].Actors = []int{3} }), good,
			[]string{fsm.NoInitial, fsm.BadRow, fsm.UnknownActor},
			[]string{
				"an entry state is not declared",
				"row 0 (open -?-> closing): the event is not declared",
				"row 2 (closing -shut-> closed): names an actor that is not declared",
			},
		},
		{
			"a timeout without the sweeper", edited(func(t *fsm.Table) { t.Rows[1].Actors = []int{1} }), good,
			[]string{fsm.BadRow},
			[]string{"row 1 (closing -stuck-> origin): the row has a timeout, and its actors do not include the sweeper"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := fsm.Bind[person, phase, signal](c.table, c.guards...)
			require.True(t, m == nil)
			var invalid *fsm.InvalidError
			require.ErrorAs(t, err, &invalid)
			require.ErrorIs(t, err, fsm.ErrInvalid)
			require.Equal(t, "door", invalid.Machine)
			var codes, texts []string
			for _, p := range invalid.Problems {
				codes, texts = append(codes, p.Code), append(texts, p.Text)
				requireRow(t, p)
			}
			require.Equal(t, c.texts, texts)
			require.Equal(t, c.codes, codes)
		})
	}
}

func TestBindRefusesGuardsThatCannotRun(t *testing.T) {
	var ran []string
	good := doorGuards(&ran)
	for name, guards := range map[string][]fsm.Guard[person]{
		"no function": {fsm.When[person]("key", nil), good[1]},
		"zero":        {good[0], good[1], {}},
		"no name":     {good[0], good[1], fsm.When("", func(context.Context, *person, *person) error { return nil })},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := fsm.Bind[person, phase, signal](doorTable(), guards...)
			var invalid *fsm.InvalidError
			require.ErrorAs(t, err, &invalid)
			for _, p := range invalid.Problems {
				requireRow(t, p)
			}
		})
	}
}

func edited(change func(*fsm.Table)) *fsm.Table {
	t := doorTable()
	change(t)
	return t
}
