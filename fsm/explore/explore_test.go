package explore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/fsm/explore"
	"github.com/interlock-go/interlock/fsm/internal/tabletest"
)

// shop is a protocol of three actors and two unordered channels: buyers' orders,
// numbered and sent again, a clerk that answers them, and a store that may crash.
// limit is the largest count that the invariant of the clerk allows.
func shop(orders, limit int) *explore.System {
	type buyer struct{ Asked, Served int }
	type clerk struct{ Last, Stock, Fetching int }
	type store struct {
		Last int
		Down bool
	}
	type order struct{ Number int }
	type parcel struct {
		Number int
		From   bool
	}
	sys := explore.New("shop")
	lose, twice, crashes := sys.Budget("loss", 1), sys.Budget("twice", 1), sys.Budget("crash", 1)
	is := explore.ChannelSpec{Capacity: 3, Lose: lose, Duplicate: twice}
	b := explore.NewActor(sys, "buyer", buyer{})
	c := explore.NewActor(sys, "clerk", clerk{})
	s := explore.NewActor(sys, "store", store{})
	asks := explore.NewChannel[order](sys, "orders", is)
	parcels := explore.NewChannel[parcel](sys, "parcels", is)
	b.Acts(func(l buyer, step func(string, buyer)) {
		if l.Asked < orders && l.Asked == l.Served {
			step("wants", buyer{l.Asked + 1, l.Served})
		}
	})
	explore.Sends(b, asks, func(l buyer, send func(string, order, buyer)) {
		if l.Asked > l.Served {
			send("order", order{l.Asked}, l)
		}
	})
	explore.Receives(c, asks, func(l clerk, o order, next func(string, clerk)) {
		if o.Number > l.Last {
			next("new", clerk{Last: o.Number, Stock: l.Stock, Fetching: o.Number})
		}
	})
	c.Acts(func(l clerk, step func(string, clerk)) {
		if l.Fetching > 0 {
			step("fetched", clerk{l.Last, l.Stock + 1, 0})
		}
	})
	explore.Sends(c, parcels, func(l clerk, send func(string, parcel, clerk)) {
		if l.Last > 0 && l.Fetching == 0 {
			send("parcel", parcel{l.Last, false}, l)
		}
	})
	explore.Sends(s, parcels, func(l store, send func(string, parcel, store)) {
		if !l.Down && l.Last > 0 {
			send("note", parcel{l.Last, true}, l)
		}
	})
	explore.Receives(b, parcels, func(l buyer, p parcel, next func(string, buyer)) {
		if !p.From && p.Number == l.Asked {
			next("thanks", buyer{l.Asked, p.Number})
		}
	})
	explore.Receives(s, parcels, func(l store, p parcel, next func(string, store)) {
		if !l.Down && p.Number > l.Last {
			next("notes", store{Last: p.Number})
		}
	})
	s.Acts(func(l store, step func(string, store)) {
		if l.Down {
			step("restart", store{Last: l.Last})
		}
	})
	explore.Strikes(sys.Fault("crash", crashes), s, func(l store) (store, bool) { return store{Last: l.Last, Down: true}, !l.Down })
	sys.Always("stock", func(v *explore.View) error {
		if c.In(v).Stock > limit {
			return fmt.Errorf("%d fetched", c.In(v).Stock)
		}
		return nil
	})
	sys.Rests(func(v *explore.View) bool {
		return b.In(v).Served == orders && !s.In(v).Down && len(asks.In(v)) == 0 && len(parcels.In(v)) == 0
	})
	return sys
}

// same ignores the fields of verdicts that may differ.
var same = cmp.Comparer(func(a, b error) bool { return fmt.Sprint(a) == fmt.Sprint(b) })

// Verdicts, their bytes and traces are the same for any number of workers.
func TestWorkersDoNotMatter(t *testing.T) {
	lost := func() *explore.System { // as shop, but without a second request
		sys := explore.New("lost")
		a, b := explore.NewActor(sys, "a", 0), explore.NewActor(sys, "b", 0)
		c := explore.NewChannel[int](sys, "c", explore.ChannelSpec{Capacity: 3, Lose: sys.Budget("loss", 1)})
		explore.Sends(a, c, func(l int, send func(string, int, int)) {
			if l < 20 {
				send("", l, l+1)
			}
		})
		explore.Receives(b, c, func(l, _ int, next func(string, int)) {
			if l >= 0 {
				next("", l+1)
			}
		})
		b.Acts(func(l int, step func(string, int)) {
			if l == 19 {
				step("turns", -l)
			}
			if l == -19 {
				step("turns", -l)
			}
		})
		sys.Rests(func(v *explore.View) bool { return b.In(v) == 20 })
		return sys
	}
	tests := map[string]struct {
		make func() *explore.System
		o    explore.Config
		want explore.Outcome
	}{
		"holds":    {func() *explore.System { return shop(2, 2) }, explore.Config{}, explore.Holds},
		"violated": {func() *explore.System { return shop(3, 2) }, explore.Config{}, explore.Violated},
		"livelock": {lost, explore.Config{}, explore.Livelock},
		"outgrown": {func() *explore.System { return counters(2, 130, 8) }, explore.Config{}, explore.Holds},
		"bytes":    {func() *explore.System { return shop(2, 2) }, explore.Config{MaxBytes: 1 << 20}, explore.Inconclusive},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var first *explore.Verdict
			for _, workers := range []int{1, 2, 3, 8} {
				o := test.o
				o.Workers = workers
				v := explored(t, test.make(), &o)
				require.Equal(t, test.want, v.Outcome, v)
				if first == nil {
					first = v
				}
				require.Empty(t, cmp.Diff(first, v, same), "%d workers", workers)
			}
			t.Log(first.States, first.Steps, first.Depth, first.Bytes)
		})
	}
	t.Run("model", func(t *testing.T) {
		m := philosophers(8, false)
		var first *explore.Verdict
		for _, workers := range []int{1, 2, 3, 8} {
			v, err := m.Explore(context.Background(), &explore.Config{Workers: workers})
			require.NoError(t, err)
			if first == nil {
				first = v
			}
			require.Empty(t, cmp.Diff(first, v, same), "%d workers", workers)
		}
	})
}

// States may be long, and their numbers may grow large.
func TestLongStates(t *testing.T) {
	const n = 70
	for _, idle := range []int{0, 8, 18, 28, 38, 50, 70, 100, 150} {
		t.Run(fmt.Sprintf("%d idle actors", idle), func(t *testing.T) {
			v := explored(t, counters(2, n, idle), &explore.Config{Workers: 2})
			require.NoError(t, v.Err())
			require.Equal(t, []int{(n + 1) * (n + 1), 2 * n * (n + 1), 2 * n}, []int{v.States, v.Steps, v.Depth})
		})
	}
}

// Explore stops at a bound. A sufficient bound changes nothing.
func TestBounds(t *testing.T) {
	all := explored(t, counters(2, 20, 0), nil)
	require.NoError(t, all.Err())
	require.Equal(t, []int{21 * 21, 2 * 20 * 21, 40}, []int{all.States, all.Steps, all.Depth})

	v := explored(t, counters(2, 20, 0), &explore.Config{MaxBytes: all.Bytes})
	require.NoError(t, v.Err())
	v = explored(t, counters(2, 20, 0), &explore.Config{MaxBytes: all.Bytes - 1})
	require.Equal(t, explore.Inconclusive, v.Outcome)
	require.ErrorIs(t, v.Reason, explore.ErrMaxBytes)
	require.ErrorIs(t, v.Err(), explore.ErrMaxBytes)
	require.Nil(t, v.Trace)
	require.Less(t, v.Bytes, 2*all.Bytes)

	// A violation before the bound is a violation.
	v = explored(t, shop(4, 0), &explore.Config{MaxBytes: 1 << 20})
	require.Equal(t, explore.Violated, v.Outcome)
	require.NoError(t, v.Reason)
}

// A stuck state comes before a violation one step farther away, which the verdict does
// not mention.
func TestStuckBesideABrokenState(t *testing.T) {
	m := &explore.Model[int]{
		Name: "beside", Initial: []int{0},
		Next: func(s int, step func(string, bool, int)) {
			switch s {
			case 0:
				step("left", false, 1)
				step("right", false, 2)
			case 2:
				step("on", false, 3)
			}
		},
		Always: map[string]func(int) error{"never three": func(s int) error {
			if s == 3 {
				return errors.New("three")
			}
			return nil
		}},
		Rests: func(s int) bool { return s == 3 },
	}
	for range 2 {
		v, err := m.Explore(context.Background(), nil)
		require.NoError(t, err)
		require.Equal(t, explore.Stuck, v.Outcome)
		require.Len(t, v.Trace.Steps, 1)
		require.Empty(t, v.Property, "%s", v)
		require.Empty(t, v.Trace.Property)
		require.Empty(t, v.Trace.Problem)
		require.NoError(t, v.Problem)
		require.NoError(t, v.Reason)
		m.Always = nil
	}
}

// The initial states may exceed the bound on memory.
func TestTooManyInitialStates(t *testing.T) {
	sys := explore.New("many")
	for i := range 40 {
		a := explore.NewActor(sys, fmt.Sprint(i), 0, 1, 2)
		a.Acts(func(l int, step func(string, int)) { step("", 0) })
	}
	sys.Rests(func(*explore.View) bool { return true })
	v := explored(t, sys, &explore.Config{MaxBytes: 1 << 20})
	require.Equal(t, explore.Inconclusive, v.Outcome)
	require.ErrorIs(t, v.Err(), explore.ErrMaxBytes)
}

// Bytes counts the memory that the exploration keeps. The exploration allocates more:
// slices grow, and the workers have slices of their own.
func TestBytesAreAllocated(t *testing.T) {
	sys := shop(2, 2)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	v := explored(t, sys, &explore.Config{Workers: 2})
	runtime.ReadMemStats(&after)
	allocated := int64(after.TotalAlloc - before.TotalAlloc)
	t.Logf("%d states, %d bytes at most, %d bytes allocated", v.States, v.Bytes, allocated)
	require.Less(t, v.Bytes, allocated)
	require.Greater(t, v.Bytes, allocated/10)
}

// Handlers run once for each state and message.
func TestHandlersRunOnce(t *testing.T) {
	const n = 3000
	var asked, struck atomic.Int64
	sys := explore.New("once")
	a := explore.NewActor(sys, "a", 0)
	b := explore.NewActor(sys, "b", 0)
	for i := range 8 {
		explore.NewActor(sys, fmt.Sprint(i), 0)
	}
	explore.NewActor(sys, "several at once", 0, 1, 2, 3)
	c := explore.NewChannel[int](sys, "c", explore.ChannelSpec{Capacity: 1})
	explore.Sends(a, c, func(l int, send func(string, int, int)) {
		asked.Add(1)
		if l < n {
			send("", l, l+1)
		}
	})
	explore.Receives(b, c, func(l, m int, next func(string, int)) {
		asked.Add(1)
		next("", m+1)
	})
	explore.Strikes(sys.Fault("f", sys.Budget("b", 1)), b, func(l int) (int, bool) { struck.Add(1); return l, l == 5 })
	sys.Rests(func(v *explore.View) bool { return b.In(v) == n })
	v := explored(t, sys, &explore.Config{Workers: 4})
	require.NoError(t, v.Err())
	require.Equal(t, int64(n+1+n), asked.Load())
	require.Equal(t, int64(n+1), struck.Load())
}

func TestCancellation(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	v, err := shop(3, 3).Explore(ctx, nil)
	require.NoError(t, err)
	require.Equal(t, explore.Inconclusive, v.Outcome)
	require.ErrorIs(t, v.Reason, context.Canceled)

	// One of the functions cancels the context during the exploration.
	for _, workers := range []int{1, 4} {
		ctx, cancel := context.WithCancel(context.Background())
		var seen atomic.Int64
		sys := shop(4, 4)
		sys.Always("patience", func(*explore.View) error {
			if seen.Add(1) >= 10_000 { // the other workers do not go on until the first has cancelled
				cancel()
			}
			return nil
		})
		v, err := sys.Explore(ctx, &explore.Config{Workers: workers})
		require.NoError(t, err)
		require.Equal(t, explore.Inconclusive, v.Outcome)
		require.ErrorIs(t, v.Err(), context.Canceled)
		require.GreaterOrEqual(t, v.States, 10_000)
		require.Less(t, v.States, 100_000)
	}
}

// A violation has no reason, also if the context ends in the same batch.
func TestCancellationAtAViolation(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	sys := shop(1, 1)
	sys.Always("fails", func(*explore.View) error {
		cancel()
		return errors.New("failed")
	})
	v, err := sys.Explore(ctx, nil)
	require.NoError(t, err)
	require.Equal(t, explore.Violated, v.Outcome)
	require.NoError(t, v.Reason)
}

// The goroutines of an exploration have ended when it returns.
func TestNoGoroutineStays(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	o := &explore.Config{Workers: 8}
	explored(t, shop(2, 2), o)
	explored(t, shop(2, 1), o)
	sys := shop(2, 2)
	var seen atomic.Int64
	sys.Always("breaks", func(*explore.View) error {
		if seen.Add(1) > 5000 {
			panic(errors.New("broken"))
		}
		return nil
	})
	_, err := sys.Explore(context.Background(), o)
	require.ErrorIs(t, err, explore.ErrModel)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
	defer cancel()
	_, err = shop(5, 5).Explore(ctx, o)
	require.NoError(t, err)
}

// Several explorations of one system may run at the same time.
func TestExplorationsAtTheSameTime(t *testing.T) {
	sys := shop(2, 2)
	var verdicts [3]*explore.Verdict
	var group errgroup.Group
	for i := range verdicts {
		group.Go(func() (err error) {
			verdicts[i], err = sys.Explore(t.Context(), &explore.Config{Workers: 2})
			return err
		})
	}
	require.NoError(t, group.Wait())
	require.NoError(t, verdicts[0].Err())
	for _, v := range verdicts[1:] {
		require.Empty(t, cmp.Diff(verdicts[0], v, same))
	}
}

// A state costs no allocation of its own: memory grows in pieces.
func TestExploreAllocs(t *testing.T) {
	if !tabletest.Full {
		t.Skip("judged without the race detector")
	}
	allocs := func(sys *explore.System) (int, float64) {
		states := 0
		n := testing.AllocsPerRun(3, func() {
			v, err := sys.Explore(context.Background(), &explore.Config{Workers: 1})
			if err != nil {
				panic(err)
			}
			states = v.States
		})
		return states, n
	}
	few, cost := allocs(counters(3, 15, 0))
	many, more := allocs(counters(3, 40, 0))
	each := (more - cost) / float64(many-few)
	t.Logf("%d states: %v, %d states: %v, each %.4f", few, cost, many, more, each)
	require.Less(t, each, 0.1)
}

// Unused names the parts that took part in no step.
func TestUnused(t *testing.T) {
	sys := explore.New("idle")
	none, some := sys.Budget("none", 0), sys.Budget("some", 1)
	a, b := explore.NewActor(sys, "a", 0), explore.NewActor(sys, "b", 0)
	c := explore.NewChannel[int](sys, "c", explore.ChannelSpec{Capacity: 1, Lose: some, Duplicate: some})
	d := explore.NewChannel[int](sys, "d", explore.ChannelSpec{Capacity: 1, Lose: none})
	a.Acts(func(l int, step func(string, int)) { step("turns", 1-l) })
	a.Acts(func(int, func(string, int)) {})
	explore.Sends(a, c, func(l int, send func(string, int, int)) { send("", 1, l) })
	explore.Receives(b, c, func(int, int, func(string, int)) {})
	explore.Sends(b, d, func(l int, send func(string, int, int)) {
		if l == 1 {
			send("", 1, l)
		}
	})
	explore.Receives(a, d, func(int, int, func(string, int)) {})
	explore.Strikes(sys.Fault("taken away", none), b, func(l int) (int, bool) { return l, true })
	explore.Strikes(sys.Fault("impossible", some), b, func(l int) (int, bool) { return l, false })
	sys.Rests(func(*explore.View) bool { return true })
	v := explored(t, sys, nil)
	require.NoError(t, v.Err())
	require.Equal(t, []string{
		`actor "a" in action 2`, `actor "b" sending into channel "d"`, `actor "a" receiving from channel "d"`,
		`duplication in channel "c"`, `fault "impossible"`,
	}, v.Unused)
	require.Contains(t, v.String(), `never happened: actor "a" in action 2, `)
	require.Empty(t, explored(t, shop(2, 2), nil).Unused)
}

// Explore reaches every state of a long run, and the run is the trace.
func TestLongRuns(t *testing.T) {
	const n = 20_000
	if os.Getenv("INTERLOCK_LONG") == "" && testing.Short() {
		t.Skip("long")
	}
	m := &explore.Model[int]{
		Name: "line", Initial: []int{0},
		Next: func(s int, step func(string, bool, int)) { step("", false, s+1) },
		Always: map[string]func(int) error{"short": func(s int) error {
			if s == n {
				return errors.New("long")
			}
			return nil
		}},
	}
	v, err := m.Explore(context.Background(), nil)
	require.NoError(t, err)
	require.Equal(t, []int{n + 1, n, n}, []int{v.States, v.Steps, v.Depth})
	require.Len(t, v.Trace.Steps, n)
}
