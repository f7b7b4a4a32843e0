package fsm_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm"
)

// tally counts the answers of a test, so that the test can require all of them.
type tally map[string]int

func (c tally) note(what string, err error) {
	if err == nil {
		c[what+" ok"]++
	} else {
		c[what+" "+err.Error()]++
	}
}

// machineMeansItsSpec sends the same requests to machines of random specs and to the
// reference of the spec.
func machineMeansItsSpec[S, E comparable](t *testing.T, seen tally, state func(int) S, event func(int) E) {
	rapid.Check(t, func(t *rapid.T) {
		spec := typed(specs().Draw(t, "spec"), state, event)
		m, err := fsm.New[gates](spec)
		require.NoError(t, err, "sound over numbers, but not over this type")
		d := newDriver(t, m, spec, state, event, seen)
		for range 25 {
			d.pure()
		}
		in := m.Instance()
		d.instance(&in)
		at := d.status()
		if d.ref.declared(at.State, at.Origin) {
			in = instanceAt(t, m.Observe(fsm.Observer{}), at)
			d.instance(&in)
		}
	})
}

// driver draws requests to a machine and compares the answers with the reference.
type driver[S, E comparable] struct {
	t      *rapid.T
	m      *fsm.Machine[S, E, gates]
	ref    reference[S, E]
	seen   tally
	state  *rapid.Generator[S]
	odd    S // not declared
	event  *rapid.Generator[E]
	actors []fsm.Actor
}

func newDriver[S, E comparable](
	t *rapid.T, m *fsm.Machine[S, E, gates], spec fsm.Spec[S, E], state func(int) S, event func(int) E, seen tally,
) *driver[S, E] {
	return &driver[S, E]{
		t: t, m: m, ref: reference[S, E]{spec: spec}, seen: seen,
		state: rapid.Map(rapid.IntRange(0, len(spec.States)-1), state), odd: state(len(spec.States)),
		event:  rapid.Map(rapid.IntRange(0, len(m.Table().Events)), event),
		actors: []fsm.Actor{spec.Actors[0], spec.Actors[len(spec.Actors)-1], undeclared, fsm.Sweeper},
	}
}

// status draws a status with any origin, because a caller can make one.
func (d *driver[S, E]) status() fsm.Status[S] {
	at := d.m.At(d.state.Draw(d.t, "state"))
	if rapid.Bool().Draw(d.t, "came from elsewhere") {
		at.Origin = d.state.Draw(d.t, "origin")
	}
	switch rapid.IntRange(0, 19).Draw(d.t, "odd") {
	case 18:
		at.State = d.odd
	case 19:
		at.Origin = d.odd
	}
	return at
}

// request draws a status, an event and an actor: any, or those of a row.
func (d *driver[S, E]) request() (fsm.Status[S], E, fsm.Actor) {
	at, e, a := d.status(), d.event.Draw(d.t, "event"), rapid.SampledFrom(d.actors).Draw(d.t, "actor")
	if rapid.IntRange(0, 3).Draw(d.t, "aimed") < 3 {
		r := rapid.SampledFrom(d.m.Table().Rows).Draw(d.t, "row")
		at, e = d.m.At(d.m.StateAt(rapid.SampledFrom(r.From).Draw(d.t, "source"))), d.m.EventAt(r.Event)
		if rapid.Bool().Draw(d.t, "came from elsewhere") {
			at.Origin = d.state.Draw(d.t, "origin")
		}
		if len(r.Origin) > 0 && rapid.Bool().Draw(d.t, "fits") {
			at.Origin = d.m.StateAt(rapid.SampledFrom(r.Origin).Draw(d.t, "origin"))
		}
		if len(r.Actors) > 0 {
			a = d.m.Table().Actors[rapid.SampledFrom(r.Actors).Draw(d.t, "actor")]
		}
	}
	return at, e, a
}

// payload draws the open gates for a request of both.
func (d *driver[S, E]) payload() *gates {
	p := &gates{open: uint8(rapid.IntRange(0, 1<<gateCount-1).Draw(d.t, "open"))}
	if p.open == 0 {
		p = nil
	}
	d.ref.guard = p.check
	return p
}

func (d *driver[S, E]) pure() {
	ctx, p := context.Background(), d.payload()
	at, e, a := d.request()

	want := d.ref.next(at, e, a, false)
	step, err := d.m.Next(ctx, at, e, a, p)
	d.compare("Next", want, step, err)
	err = d.m.Can(ctx, at, e, a, p)
	require.Equal(d.t, want.Err, sentinel(d.t, err), "Can")

	step, err = d.m.NextForced(ctx, at, e, a, p)
	d.compare("NextForced", d.ref.next(at, e, a, true), step, err)

	to := d.state.Draw(d.t, "to")
	if rapid.IntRange(0, 19).Draw(d.t, "odd") == 19 {
		to = d.odd
	}
	step, err = d.m.NextTo(ctx, at, to, a, p)
	d.compare("NextTo", d.ref.nextTo(at, to, a), step, err)

	permitted := make(map[E]bool)
	for _, row := range d.ref.permitted(at, a) {
		permitted[d.ref.spec.Rows[row].Event] = true
	}
	var events []E
	for e := range d.m.Events() {
		if permitted[e] {
			events = append(events, e)
		}
	}
	require.Equal(d.t, events, slices.Collect(d.m.Permitted(at, a)))
}

// instance fires events that are drawn.
func (d *driver[S, E]) instance(in *fsm.Instance[S, E, gates]) {
	ctx := context.Background()
	for range rapid.IntRange(1, 20).Draw(d.t, "moves") {
		before, p := in.Status(), d.payload()
		_, e, a := d.request()
		fire, force := in.Fire, rapid.IntRange(0, 3).Draw(d.t, "force") == 0
		if force {
			fire = in.FireForced
		}
		want := d.ref.next(before, e, a, force)
		step, err := fire(ctx, e, a, p)
		d.compare("Fire", want, step, err)
		after := before
		if want.Err == nil {
			after = want.Status
		}
		require.Equal(d.t, after, in.Status())
		require.Equal(d.t, after.State, in.State())
	}
}

func (d *driver[S, E]) compare(what string, want answer[S], step fsm.Step[S], err error) {
	d.seen.note(what, want.Err)
	if len(want.reasons) > 1 {
		d.seen[what+" several guards"]++
	}
	require.Equal(d.t, want.Err, sentinel(d.t, err), "%s: want %v, got %v, %v", what, want, step, err)
	if err != nil {
		te := detail(d.t, err)
		require.Equal(d.t, "drawn", te.Machine)
		require.Equal(d.t, want.refuser, te.Row, "%s: %v", what, err)
		for _, reason := range want.reasons {
			require.ErrorIs(d.t, err, reason, what)
		}
		return
	}
	require.Equal(d.t, want.Step, step, what)
}

func TestMachineMeansItsSpec(t *testing.T) {
	all := tally{}
	number := func(i int) int { return i }
	t.Run("strings", func(t *testing.T) {
		name := func(i int) string { return fmt.Sprint("name", i) }
		machineMeansItsSpec(t, all, name, name)
	})
	t.Run("ints", func(t *testing.T) { machineMeansItsSpec(t, all, number, number) })
	t.Run("small ints", func(t *testing.T) {
		machineMeansItsSpec(t, all, func(i int) int8 { return int8(i*30 - 128) }, func(i int) uint64 { return ^uint64(0) >> (2 * i) })
	})
	t.Run("structs", func(t *testing.T) {
		machineMeansItsSpec(t, all, func(i int) point { return point{i, -i} }, func(i int) [2]int { return [2]int{i % 2, i / 2} })
	})
	t.Run("interfaces", func(t *testing.T) {
		machineMeansItsSpec(t, all, func(i int) any {
			if i%2 == 0 {
				return i
			}
			return fmt.Sprint("s", i)
		}, func(i int) float64 { return float64(i) / 4 })
	})
	if t.Failed() {
		return
	}

	// The requests had every possible answer.
	several := 0
	for _, what := range []string{"Next", "NextForced", "NextTo", "Fire"} {
		several += all[what+" several guards"]
		for _, s := range append(slices.Clone(sentinels), errors.New("ok")) {
			impossible := s == fsm.ErrConflict || s == fsm.ErrInvalid ||
				what == "NextForced" && s == fsm.ErrForcedOnly || what == "NextTo" && s == fsm.ErrUnknownEvent ||
				what == "Fire" && s == fsm.ErrUnknownState
			if !impossible {
				require.Positive(t, all[what+" "+s.Error()], "%s never returned %v", what, s)
			}
		}
	}
	require.Positive(t, several, "no cell ran several guards")
	t.Logf("New accepted %d of %d drawn rows; answers: %v", taken.Load(), offered.Load(), all)
	require.Greater(t, taken.Load()*5, offered.Load(), "New accepts too few of the drawn rows")
}
