package fsm_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm"
)

// tally counts the answers that the requests of a test came to, so that the
// test can say that it saw all of them.
type tally map[string]int

func (c tally) note(what string, err error) {
	if err != nil {
		c[what+" "+err.Error()]++
	} else {
		c[what+" ok"]++
	}
}

// machineMeansItsSpec drives a machine of random specs and the naive reading of
// the same spec with the same requests.
func machineMeansItsSpec[S, E comparable](t *testing.T, state func(int) S, event func(int) E) tally {
	seen := tally{}
	state, event = once(state), once(event)
	rapid.Check(t, func(t *rapid.T) {
		spec := typed(specs().Draw(t, "spec"), state, event)
		m, err := fsm.New[gates](spec)
		require.NoError(t, err, "sound over numbers, but not over this type")
		d := driver[S, E]{
			t: t, m: m, n: naive[S, E]{spec: spec}, seen: seen, rows: slices.Collect(m.Rows()),
			state: rapid.Map(rapid.IntRange(0, len(spec.States)-1), state), odd: state(len(spec.States)),
			event: rapid.Map(rapid.IntRange(0, len(m.Table().Events)), event),
		}
		d.actors = append(append(d.actors, spec.Actors[0], spec.Actors[len(spec.Actors)-1]), "nobody", fsm.Sweeper)
		for range 25 {
			d.pure()
		}
		in, watched := m.Instance(), m.Observe(fsm.Observer{}).Instance()
		d.instance(&in, &watched)
		at := d.status()
		if !d.n.declared(at.State) || !d.n.declared(at.Origin) {
			return
		}
		in, watched = sure(m.InstanceAt(at)), sure(m.Observe(fsm.Observer{}).InstanceAt(at))
		d.instance(&in, &watched)
	})
	return seen
}

type driver[S, E comparable] struct {
	t      *rapid.T
	m      *fsm.Machine[S, E, gates]
	n      naive[S, E]
	seen   tally
	state  *rapid.Generator[S]
	odd    S // not declared
	event  *rapid.Generator[E]
	actors []fsm.Actor
	rows   []fsm.Row[S, E] // expanded
}

// status draws one with any origin, sensible or not: a caller can write it.
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

// request draws a status, an event and an actor: any, or such that a row drawn
// before may agree.
func (d *driver[S, E]) request() (fsm.Status[S], E, fsm.Actor) {
	at, e, a := d.status(), d.event.Draw(d.t, "event"), d.actor()
	if rapid.IntRange(0, 3).Draw(d.t, "aimed") < 3 {
		r := rapid.SampledFrom(d.rows).Draw(d.t, "row")
		at, e = d.m.At(rapid.SampledFrom(r.From).Draw(d.t, "source")), r.Event
		if rapid.Bool().Draw(d.t, "came from elsewhere") {
			at.Origin = d.state.Draw(d.t, "origin")
		}
		if len(r.Origin) > 0 && rapid.Bool().Draw(d.t, "fits") {
			at.Origin = rapid.SampledFrom(r.Origin).Draw(d.t, "origin")
		}
		if len(r.Actors) > 0 {
			a = rapid.SampledFrom(r.Actors).Draw(d.t, "actor")
		}
	}
	// Short cuts know a string by its address. Spelled anew, it is the same.
	anew := rapid.IntRange(0, 31).Draw(d.t, "anew")
	if anew&1 != 0 {
		at.State = respelled(at.State)
	}
	if anew&2 != 0 {
		at.Origin = respelled(at.Origin)
	}
	if anew&4 != 0 {
		e = respelled(e)
	}
	if anew&8 != 0 {
		a = respelled(a)
	}
	return at, e, a
}

func (d *driver[S, E]) actor() fsm.Actor { return rapid.SampledFrom(d.actors).Draw(d.t, "actor") }

// payload draws the open gates for a request of both.
func (d *driver[S, E]) payload() *gates {
	p := &gates{open: uint8(rapid.IntRange(0, 1<<gateCount-1).Draw(d.t, "open"))}
	if p.open == 0 {
		p = nil
	}
	d.n.agrees = agreeing(p)
	return p
}

func (d *driver[S, E]) pure() {
	ctx, p := context.Background(), d.payload()
	at, e, a := d.request()

	want := d.n.next(at, e, a, false)
	step, err := d.m.Next(ctx, at, e, a, p)
	d.compare("Next", want, step, err)
	err = d.m.Can(ctx, at, e, a, p)
	require.Equal(d.t, want.Err, sentinel(d.t, err), "Can")

	step, err = d.m.NextForced(ctx, at, e, a, p)
	d.compare("NextForced", d.n.next(at, e, a, true), step, err)

	to := d.state.Draw(d.t, "to")
	if rapid.IntRange(0, 19).Draw(d.t, "odd") == 19 {
		to = d.odd
	}
	step, err = d.m.NextTo(ctx, at, to, a, p)
	d.compare("NextTo", d.n.nextTo(at, to, a), step, err)

	permitted := d.n.permitted(at, a)
	i := 0
	for r := range d.m.Permitted(at, a) {
		require.Less(d.t, i, len(permitted), "Permitted yields too much")
		require.Equal(d.t, d.n.spec.Rows[permitted[i]].Event, r.Event)
		require.Equal(d.t, d.n.spec.Rows[permitted[i]].To, r.To)
		require.Equal(d.t, d.n.spec.Rows[permitted[i]].Then, r.Then)
		require.Equal(d.t, d.n.spec.Rows[permitted[i]].Origin, r.Origin)
		i++
	}
	require.Equal(d.t, len(permitted), i, "Permitted yields too little")
}

// instance drives two instances, one of them observed, which takes another way
// through the code.
func (d *driver[S, E]) instance(in, watched *fsm.Instance[S, E, gates]) {
	ctx := context.Background()
	for range rapid.IntRange(1, 20).Draw(d.t, "moves") {
		before, p := in.Status(), d.payload()
		_, e, a := d.request()
		force := rapid.IntRange(0, 3).Draw(d.t, "force") == 0
		want := d.n.next(before, e, a, force)
		var step, seen fsm.Step[S]
		var err, errSeen error
		switch {
		case force:
			step, err = in.FireForced(ctx, e, a, p)
			seen, errSeen = watched.FireForced(ctx, e, a, p)
		case rapid.Bool().Draw(d.t, "with an effect"):
			var move fsm.Pending[S]
			if move, err = in.Next(ctx, e, a, p); err == nil {
				require.Equal(d.t, before, in.Status())
				step, err = in.CompareAndSwap(move)
				require.Equal(d.t, move.Step, step)
			}
			seen, errSeen = watched.Fire(ctx, e, a, p)
		default:
			step, err = in.Fire(ctx, e, a, p)
			seen, errSeen = watched.Fire(ctx, e, a, p)
		}
		d.compare("Fire", want, step, err)
		d.compare("observed Fire", want, seen, errSeen)
		after := before
		if want.Err == nil {
			after = want.Status
		}
		require.Equal(d.t, after, in.Status())
		require.Equal(d.t, after.State, in.State())
		require.Equal(d.t, after, watched.Status())
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
		if want.Err != fsm.ErrForcedOnly { // that one is made beforehand and cannot know the origin
			require.Equal(d.t, want.culprit, te.Row, "%s: %v", what, err)
		}
		for _, reason := range want.reasons {
			require.ErrorIs(d.t, err, reason, what)
		}
		return
	}
	require.Equal(d.t, want.Status, step.Status, what)
	require.Equal(d.t, want.Row, step.Row, what)
	require.Equal(d.t, want.Ignored, step.Ignored, what)
}

// once makes every value of a function only once.
func once[V any](f func(int) V) func(int) V {
	values := map[int]V{}
	return func(i int) V {
		if _, ok := values[i]; !ok {
			values[i] = f(i)
		}
		return values[i]
	}
}

// respelled returns v or, if it is a string, the same at another address.
func respelled[V any](v V) V {
	if x := reflect.ValueOf(&v).Elem(); x.Kind() == reflect.String {
		x.SetString(strings.Clone(x.String()))
	}
	return v
}

func itself(i int) int { return i }

func TestMachineMeansItsSpec(t *testing.T) {
	all := tally{}
	run := func(name string, f func(*testing.T) tally) {
		t.Run(name, func(t *testing.T) {
			for k, v := range f(t) {
				all[k] += v
			}
		})
	}
	run("strings", func(t *testing.T) tally {
		return machineMeansItsSpec(t, func(i int) string { return fmt.Sprintf("state%d", i) }, func(i int) string { return fmt.Sprint("e", i) })
	})
	run("strings that share their ends", func(t *testing.T) tally {
		shared := func(i int) phase { return phase(fmt.Sprintf("prefixed-%d-suffixed", i)) }
		return machineMeansItsSpec(t, shared, func(i int) signal { return signal(shared(i)) })
	})
	run("dense ints", func(t *testing.T) tally { return machineMeansItsSpec(t, itself, itself) })
	run("sparse ints", func(t *testing.T) tally {
		return machineMeansItsSpec(t, func(i int) int64 { return int64(i) * 1_000_003 }, func(i int) uint64 { return ^uint64(0) >> (2 * i) })
	})
	run("negative ints", func(t *testing.T) tally {
		return machineMeansItsSpec(t, func(i int) int16 { return int16(-i - 1) }, func(i int) int32 { return int32(3 - i) })
	})
	run("bytes", func(t *testing.T) tally {
		return machineMeansItsSpec(t, func(i int) int8 { return int8(i*30 - 128) }, func(i int) uint8 { return uint8(255 - i) })
	})
	run("structs", func(t *testing.T) tally {
		return machineMeansItsSpec(t, func(i int) point { return point{i, -i} }, func(i int) struct{ name string } { return struct{ name string }{fmt.Sprint(i)} })
	})
	run("arrays", func(t *testing.T) tally {
		return machineMeansItsSpec(t, func(i int) [2]int { return [2]int{i / 2, i % 2} }, func(i int) [2]int { return [2]int{i % 2, i / 2} })
	})
	run("interfaces", func(t *testing.T) tally {
		return machineMeansItsSpec(t, func(i int) any {
			if i%2 == 0 {
				return i
			}
			return fmt.Sprint("s", i)
		}, func(i int) float64 { return float64(i) / 4 })
	})
	if t.Failed() {
		return
	}

	// The requests came to everything that they can come to.
	several := 0
	for _, what := range []string{"Next", "NextForced", "NextTo", "Fire", "observed Fire"} {
		several += all[what+" several guards"]
		for _, s := range append(slices.Clone(sentinels), errors.New("ok")) {
			impossible := s == fsm.ErrConflict || s == fsm.ErrInvalid ||
				what == "NextForced" && s == fsm.ErrForcedOnly || what == "NextTo" && s == fsm.ErrUnknownEvent ||
				(what == "Fire" || what == "observed Fire") && s == fsm.ErrUnknownState
			if !impossible {
				require.Positive(t, all[what+" "+s.Error()], "%s never came to %v", what, s)
			}
		}
	}
	require.Positive(t, several, "no cell asked several guards")
	t.Logf("%d of %d drawn rows were let in; answers: %v", taken.Load(), offered.Load(), all)
	require.Greater(t, taken.Load()*5, offered.Load(), "too few of the drawn rows are of use")
}
