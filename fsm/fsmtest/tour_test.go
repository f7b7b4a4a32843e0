package fsmtest_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/fsmtest"
	"github.com/interlock-go/interlock/fsm/tour"
)

// payload makes what the guards of disks look at.
func payload(r fsmtest.Request) (*disk, bool) {
	return &disk{used: slices.Contains(r.Refuse, "unused"), old: slices.Contains(r.Agree, "old")}, true
}

func TestTour(t *testing.T) {
	fsmtest.Tour(t, disks.Table(), fsmtest.Drive(disks, nil), nil)
	fsmtest.Tour(t, disks.Table(), fsmtest.Drive(disks, payload), &fsmtest.TourConfig{EveryActor: true, Stranger: "stranger"})
	fsmtest.Tour(t, disks.Table(), fsmtest.Model(disks.Table()), nil)
	passes(t, func(t testing.TB) { fsmtest.Tour(t, disks.Table(), fsmtest.Drive(disks, nil), nil) },
		"disk: 20 of 20 transitions in 35 steps and 2 sequences, 325 refusals; the driver could not make 0 requests")
}

// bent is a system in which one thing is wrong.
type bent struct {
	fsmtest.Driver
	reset func(state string) string
	apply func(d fsmtest.Driver, r fsmtest.Request, before string) (string, error)
	state string
}

func (b *bent) Reset(t testing.TB) string {
	b.state = b.Driver.Reset(t)
	if b.reset != nil {
		b.state = b.reset(b.state)
	}
	return b.state
}

func (b *bent) Apply(t testing.TB, r fsmtest.Request) (state string, err error) {
	if b.apply == nil {
		state, err = b.Driver.Apply(t, r)
	} else {
		state, err = b.apply(b.Driver, r, b.state)
	}
	b.state = state
	return state, err
}

// Every fault that a system may have is noticed by the tour, and by the walk.
func TestFaultsOfSystems(t *testing.T) {
	errOwn := errors.New("no")
	for name, c := range map[string]struct {
		bent bent
		says string
	}{
		"begins elsewhere": {bent{reset: func(string) string { return "created" }}, "a new object begins in created instead of absent"},
		"refuses a row": {bent{apply: func(d fsmtest.Driver, r fsmtest.Request, before string) (string, error) {
			if r.Event == "repair" {
				return before, errOwn
			}
			return d.Apply(t, r)
		}}, "repair"},
		"leads elsewhere": {bent{apply: func(d fsmtest.Driver, r fsmtest.Request, before string) (string, error) {
			state, err := d.Apply(t, r)
			if before == "broken" && err == nil {
				state = "trash"
			}
			return state, err
		}}, "in trash"},
		"lets everybody": {bent{apply: func(d fsmtest.Driver, r fsmtest.Request, _ string) (string, error) {
			state, err := d.Apply(t, r)
			if errors.Is(err, fsm.ErrWrongActor) {
				r.Actor = user
				if state, err = d.Apply(t, r); errors.Is(err, fsm.ErrWrongActor) {
					r.Actor = worker
					state, err = d.Apply(t, r)
				}
			}
			return state, err
		}}, "create by worker"},
		"asks no guard": {bent{apply: func(d fsmtest.Driver, r fsmtest.Request, _ string) (string, error) {
			r.Agree, r.Refuse = append(r.Agree, r.Refuse...), nil
			return d.Apply(t, r)
		}}, "not unused"},
		"forces everything": {bent{apply: func(d fsmtest.Driver, r fsmtest.Request, _ string) (string, error) {
			r.Force = true
			return d.Apply(t, r)
		}}, "restore by user"},
		"accepts without moving": {bent{apply: func(d fsmtest.Driver, r fsmtest.Request, _ string) (string, error) {
			state, _ := d.Apply(t, r)
			return state, nil
		}}, ""},
		"moves and refuses": {bent{apply: func(d fsmtest.Driver, r fsmtest.Request, before string) (string, error) {
			state, err := d.Apply(t, r)
			if err != nil && before == "trash" {
				state = "broken"
			}
			return state, err
		}}, "broken"},
		"another reason": {bent{apply: func(d fsmtest.Driver, r fsmtest.Request, _ string) (string, error) {
			state, err := d.Apply(t, r)
			if errors.Is(err, fsm.ErrForcedOnly) {
				err = fsm.ErrNotAllowed
			}
			return state, err
		}}, "not allowed"},
		"forgets where it came from": {bent{apply: func(d fsmtest.Driver, r fsmtest.Request, before string) (string, error) {
			state, err := d.Apply(t, r)
			if err == nil && before == "deleting" && r.Event == "failed" && state == "trash" {
				state = "created"
			}
			return state, err
		}}, "created"},
	} {
		t.Run(name, func(t *testing.T) {
			system := c.bent
			system.Driver = fsmtest.Drive(disks, nil)
			fails(t, func(t testing.TB) { fsmtest.Tour(t, disks.Table(), &system, nil) }, c.says)
			walking := c.bent
			walking.Driver = fsmtest.Model(disks.Table())
			fails(t, func(t testing.TB) {
				fsmtest.Walk(t, disks.Table(), &walking, &fsmtest.WalkConfig{Requests: 10_000, Seed: 1})
			}, "fails")
		})
	}
}

// One fault is one fault: what was moved against the rules is made again.
func TestTourGoesOn(t *testing.T) {
	lax := &bent{Driver: fsmtest.Drive(disks, nil), apply: func(d fsmtest.Driver, r fsmtest.Request, before string) (string, error) {
		if before == "deleting" && r.Event == "done" && r.Actor == user && !r.Force {
			r.Actor = worker
		}
		return d.Apply(t, r)
	}}
	r := record(t, func(t testing.TB) { fsmtest.Tour(t, disks.Table(), lax, nil) })
	require.True(t, r.Failed())
	require.Equal(t, []string{
		"disk: deleting (from created): done by user is refused: wrong actor: is accepted and leads to trash",
		"disk: deleting (from trash): done by user is refused: wrong actor: is accepted and leads to gone",
		"disk: 20 of 20 transitions in 35 steps and 2 sequences, 325 refusals; the driver could not make 0 requests",
	}, strings.Split(r.Text(), "\n"))
}

// A system may refuse in its own words, and may be unable to do something.
func TestWhatSystemsMayDo(t *testing.T) {
	own := &bent{Driver: fsmtest.Drive(disks, nil), apply: func(d fsmtest.Driver, r fsmtest.Request, _ string) (string, error) {
		state, err := d.Apply(t, r)
		if err != nil {
			err = errors.New("409")
		}
		return state, err
	}}
	passes(t, func(t testing.TB) { fsmtest.Tour(t, disks.Table(), own, nil) })
	cannot := &bent{Driver: fsmtest.Drive(disks, nil), apply: func(d fsmtest.Driver, r fsmtest.Request, before string) (string, error) {
		if len(r.Refuse) > 0 && len(r.Agree) == 0 && r.Event != "delete" {
			return before, fsmtest.ErrCannot
		}
		return d.Apply(t, r)
	}}
	passes(t, func(t testing.TB) { fsmtest.Tour(t, disks.Table(), cannot, nil) }, "could not make 2 requests")
	cannot.apply = func(d fsmtest.Driver, r fsmtest.Request, before string) (string, error) {
		if r.Force && before == "gone" && r.Event == "restore" {
			return before, fsmtest.ErrCannot
		}
		return d.Apply(t, r)
	}
	fails(t, func(t testing.TB) { fsmtest.Tour(t, disks.Table(), cannot, nil) }, "the driver cannot make this request; ")
}

// What no object can take is no silent gap.
func TestMissedRows(t *testing.T) {
	table, err := fsm.ParseTable([]byte(`{"name":"lamp","initial":"off","actors":["user"],
		"states":[{"name":"off","kind":"stable"},{"name":"on","kind":"stable"},{"name":"broken","kind":"error"}],
		"transitions":[{"from":"off","event":"switch","to":"on"},{"from":"on","event":"switch","to":"off"},
		 {"from":"broken","event":"switch","to":"off"}]}`))
	require.NoError(t, err)
	m := fsm.Must[disk](fsm.Spec[string, string]{
		Name: "lamp", Initial: "off", Actors: []fsm.Actor{user}, States: []fsm.State[string]{{Name: "off"}, {Name: "on"}},
		Rows: fsm.Rows(fsm.Move("off", "switch", "on"), fsm.Move("on", "switch", "off")),
	})
	lead := func(missed map[int]string) func(testing.TB) {
		return func(t testing.TB) {
			fsmtest.Tour(t, table, fsmtest.Drive(m, nil), &fsmtest.TourConfig{Missed: missed})
		}
	}
	fails(t, lead(nil), "the tour misses row 2 from broken: no object gets into the state")
	passes(t, lead(map[int]string{2: "kept for the old clients"}), "no object gets into the state: kept for the old clients")
	fails(t, lead(map[int]string{2: ""}), "no reason")
	fails(t, lead(map[int]string{0: "why", 2: "why"}), "row 0 may be missed, and is not")
}

// On random machines: the tour is legal, what must be refused is, the walk finds no
// difference between an instance and the table, every race has one winner.
func TestRandomMachines(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := drawMachine(rt)
		missed := map[int]string{} // which rows these are, package check tests
		plan, err := tour.New(m.Table(), nil)
		require.NoError(rt, err)
		for _, m := range plan.Missed {
			missed[m.Row] = m.Reason
		}
		set := func(r fsmtest.Request) (*switches, bool) {
			var s switches
			for i, name := range switchNames {
				s.on[i] = slices.Contains(r.Agree, name)
			}
			return &s, true
		}
		r := record(t, func(t testing.TB) {
			fsmtest.Tour(t, m.Table(), fsmtest.Drive(m, nil), &fsmtest.TourConfig{Missed: missed, EveryActor: true, Stranger: "z"})
		})
		require.False(rt, r.Failed(), r.Text())
		for _, d := range []fsmtest.Driver{fsmtest.Drive(m, set), fsmtest.Model(m.Table())} {
			r := record(t, func(t testing.TB) { fsmtest.Tour(t, m.Table(), d, &fsmtest.TourConfig{Missed: missed}) })
			require.False(rt, r.Failed(), r.Text())
			r = record(t, func(t testing.TB) {
				fsmtest.Walk(t, m.Table(), d, &fsmtest.WalkConfig{Requests: 100, Length: 30})
			})
			require.False(rt, r.Failed(), r.Text())
		}
	})
}
