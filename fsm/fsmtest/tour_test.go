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

// payload returns a payload for which the guards of disks agree and refuse.
func payload(r fsmtest.Request) (*disk, bool) {
	return &disk{used: slices.Contains(r.Refuse, "unused"), old: slices.Contains(r.Agree, "old")}, true
}

func TestTour(t *testing.T) {
	fsmtest.Tour(t, disks.Table(), fsmtest.Drive(disks, nil), nil)
	fsmtest.Tour(t, disks.Table(), fsmtest.Drive(disks, payload), nil)
	passes(t, func(t testing.TB) { fsmtest.Tour(t, disks.Table(), fsmtest.Drive(disks, nil), nil) },
		"disk: 20 of 20 transitions in 35 steps and 2 sequences, 325 refusals; the driver does not support 0 requests")
}

// TestTourOfSeveralInitialStates requires that a driver receives the initial state of
// each sequence.
func TestTourOfSeveralInitialStates(t *testing.T) {
	m := fsm.Must[struct{}](fsm.Spec[string, string]{
		Name: "parcel", Initial: "bought", Actors: []fsm.Actor{user},
		States: []fsm.State[string]{{Name: "bought"}, {Name: "returned"}, {Name: "gone", Kind: fsm.Final}},
		Rows:   fsm.Rows(fsm.Move("bought", "scrap", "gone"), fsm.Move("bought", "return", "returned"), fsm.Move("returned", "scrap", "gone")),
	})
	table := *m.Table()
	table.Initials = []int{1, 0}
	passes(t, func(t testing.TB) { fsmtest.Tour(t, &table, fsmtest.Drive(m, nil), nil) },
		"parcel: 3 of 3 transitions in 3 steps and 3 sequences, 3 refusals; the driver does not support 0 requests")
	fails(t, func(t testing.TB) { fsmtest.Drive(m, nil).Reset(t, "lost") }, `reset: the machine parcel has no state "lost"`)
}

// An entry state without rows is in no sequence. The tour makes its requests all the same.
func TestTourOfAnEntryStateWithoutRows(t *testing.T) {
	m := bound(t, `{"name":"disk","initial":"new","initials":["new","lost"],"actors":["user"],
		"states":[{"name":"new","kind":"stable"},{"name":"lost","kind":"final"},{"name":"gone","kind":"final"}],
		"transitions":[{"from":"new","event":"scrap","to":"gone"}]}`)
	accepts := func(d fsmtest.Driver, r fsmtest.Request, before string) (string, error) {
		if before == "lost" {
			return "gone", nil
		}
		return d.Apply(t, r)
	}
	fails(t, func(t testing.TB) {
		fsmtest.Tour(t, m.Table(), &bent{Driver: fsmtest.Drive(m, nil), apply: accepts}, nil)
	}, "lost: scrap by user is refused: not allowed; the system accepts it and leads to gone")
}

// bent is a system with one fault.
type bent struct {
	fsmtest.Driver
	reset func(state string) string
	apply func(d fsmtest.Driver, r fsmtest.Request, before string) (string, error)
	state string
}

func (b *bent) Reset(t testing.TB, initial string) string {
	b.state = b.Driver.Reset(t, initial)
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

// A tour detects every fault of a system.
func TestFaultsOfSystems(t *testing.T) {
	errOwn := errors.New("no")
	for name, c := range map[string]struct {
		bent bent
		want string
	}{
		"starts in another state": {bent{reset: func(string) string { return "created" }}, "a new object is in created instead of absent"},
		"refuses a row": {bent{apply: func(d fsmtest.Driver, r fsmtest.Request, before string) (string, error) {
			if r.Event == "repair" {
				return before, errOwn
			}
			return d.Apply(t, r)
		}}, "repair"},
		"leads to another state": {bent{apply: func(d fsmtest.Driver, r fsmtest.Request, before string) (string, error) {
			state, err := d.Apply(t, r)
			if before == "broken" && err == nil {
				state = "trash"
			}
			return state, err
		}}, "in trash"},
		"accepts every actor": {bent{apply: func(d fsmtest.Driver, r fsmtest.Request, _ string) (string, error) {
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
		"calls no guard": {bent{apply: func(d fsmtest.Driver, r fsmtest.Request, _ string) (string, error) {
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
		"loses the origin": {bent{apply: func(d fsmtest.Driver, r fsmtest.Request, before string) (string, error) {
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
			fails(t, func(t testing.TB) { fsmtest.Tour(t, disks.Table(), &system, nil) }, c.want)
		})
	}
}

// A tour reports a fault once: it makes a new object after a wrong move.
func TestTourContinuesAfterAFault(t *testing.T) {
	lax := &bent{Driver: fsmtest.Drive(disks, nil), apply: func(d fsmtest.Driver, r fsmtest.Request, before string) (string, error) {
		if before == "deleting" && r.Event == "done" && r.Actor == user && !r.Force {
			r.Actor = worker
		}
		return d.Apply(t, r)
	}}
	r := record(t, func(t testing.TB) { fsmtest.Tour(t, disks.Table(), lax, nil) })
	require.True(t, r.Failed())
	require.Equal(t, []string{
		"disk: deleting (from created): done by user is refused: wrong actor; the system accepts it and leads to trash",
		"disk: deleting (from trash): done by user is refused: wrong actor; the system accepts it and leads to gone",
		"disk: 20 of 20 transitions in 35 steps and 2 sequences, 325 refusals; the driver does not support 0 requests",
	}, strings.Split(r.Text(), "\n"))
}

// A system may refuse with its own errors, and may not support a request.
func TestOwnErrorsAndUnsupportedRequests(t *testing.T) {
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
			return before, fsmtest.ErrUnsupported
		}
		return d.Apply(t, r)
	}}
	passes(t, func(t testing.TB) { fsmtest.Tour(t, disks.Table(), cannot, nil) }, "does not support 2 requests")
	cannot.apply = func(d fsmtest.Driver, r fsmtest.Request, before string) (string, error) {
		if r.Force && before == "gone" && r.Event == "restore" {
			return before, fsmtest.ErrUnsupported
		}
		return d.Apply(t, r)
	}
	fails(t, func(t testing.TB) { fsmtest.Tour(t, disks.Table(), cannot, nil) }, "the driver cannot make this request; ")
}

// A row that no object can take is a fault without an exception.
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
	fails(t, lead(nil), "the tour misses row 2 from broken")
	passes(t, lead(map[int]string{2: "kept for the old clients"}), "row 2 from broken: kept for the old clients")
	fails(t, lead(map[int]string{2: ""}), "the tour misses row 2")
	fails(t, lead(map[int]string{0: "why", 2: "why"}), "exception for row 0: the tour takes it")
	fails(t, lead(map[int]string{2: "why", 99: "why"}), "exception for row 99: the table has no such row")
}

// A tour finds no fault in an instance of a random machine.
func TestRandomMachines(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := drawMachine(rt)
		missed := map[int]string{} // which rows these are, package check tests
		plan, err := tour.New(m.Table(), nil)
		require.NoError(rt, err)
		for _, m := range plan.Missed {
			missed[m.Row] = "not taken"
		}
		set := func(r fsmtest.Request) (*switches, bool) {
			var s switches
			for i, name := range switchNames {
				s.on[i] = slices.Contains(r.Agree, name)
			}
			return &s, true
		}
		r := record(t, func(t testing.TB) {
			fsmtest.Tour(t, m.Table(), fsmtest.Drive(m, nil), &fsmtest.TourConfig{Missed: missed})
		})
		require.False(rt, r.Failed(), r.Text())
		r = record(t, func(t testing.TB) {
			fsmtest.Tour(t, m.Table(), fsmtest.Drive(m, set), &fsmtest.TourConfig{Missed: missed})
		})
		require.False(rt, r.Failed(), r.Text())
	})
}

// forgetful is a system that accepts a request which it has to refuse, and then breaks down.
type forgetful struct {
	fsmtest.Driver
	accepted bool
}

func (f *forgetful) Apply(t testing.TB, r fsmtest.Request) (string, error) {
	state, err := f.Driver.Apply(t, r)
	if err != nil && state == "created" && !f.accepted {
		f.accepted = true
		return state, nil
	}
	if f.accepted {
		return "lost", nil
	}
	return state, err
}

// A tour ends a sequence if it cannot lead the object back to where a refused request was made.
func TestTourOfASystemThatBreaksDown(t *testing.T) {
	fails(t, func(t testing.TB) {
		fsmtest.Tour(t, disks.Table(), &forgetful{Driver: fsmtest.Drive(disks, nil)}, nil)
	}, "the system accepts it and leads to", "again: is in lost, refusal <nil>")
}
