package fsm_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/ratio"
)

// The VM table of CB-Tumblebug with integers, as of an enumeration, and with strings.
const (
	vmCreating = iota
	vmRunning
	vmSuspending
	vmSuspended
	vmResuming
	vmRebooting
	vmTerminating
	vmTerminated
	vmFailed
	vmUndefined
	vmStates
)

const (
	vmSuccess = iota
	vmError
	vmSuspend
	vmResume
	vmReboot
	vmTerminate
	vmLost
	vmSeen
	vmEvents
)

const (
	vmUser     fsm.Actor = "user"
	vmCSP      fsm.Actor = "csp"
	vmObserver fsm.Actor = "observer"
)

var vmRows = []struct {
	from, event, to int
	actor           fsm.Actor
}{
	{vmCreating, vmSuccess, vmRunning, vmCSP},
	{vmCreating, vmError, vmFailed, vmCSP},
	{vmRunning, vmSuspend, vmSuspending, vmUser},
	{vmRunning, vmReboot, vmRebooting, vmUser},
	{vmRunning, vmTerminate, vmTerminating, vmUser},
	{vmSuspending, vmSuccess, vmSuspended, vmCSP},
	{vmSuspending, vmError, vmFailed, vmCSP},
	{vmSuspended, vmResume, vmResuming, vmUser},
	{vmSuspended, vmTerminate, vmTerminating, vmUser},
	{vmResuming, vmSuccess, vmRunning, vmCSP},
	{vmResuming, vmError, vmFailed, vmCSP},
	{vmRebooting, vmSuccess, vmRunning, vmCSP},
	{vmRebooting, vmError, vmFailed, vmCSP},
	{vmTerminating, vmSuccess, vmTerminated, vmCSP},
	{vmTerminating, vmError, vmFailed, vmCSP},
	{vmFailed, vmTerminate, vmTerminating, vmUser},
	{vmRunning, vmLost, vmUndefined, vmObserver},
	{vmUndefined, vmSeen, vmRunning, vmObserver},
}

// The events that every benchmark repeats, and their actors.
var (
	vmCycle  = [4]int{vmSuspend, vmSuccess, vmResume, vmSuccess}
	vmActors = [4]fsm.Actor{vmUser, vmCSP, vmUser, vmCSP}
)

func vmTable[S, E comparable](state func(int) S, event func(int) E) fsm.Spec[S, E] {
	spec := fsm.Spec[S, E]{Name: "vm", Initial: state(vmCreating), Actors: []fsm.Actor{vmUser, vmCSP, vmObserver}}
	for s := range vmStates {
		st := fsm.State[S]{Name: state(s)}
		switch s {
		case vmCreating, vmSuspending, vmResuming, vmRebooting, vmTerminating:
			st.Kind, st.Manual = fsm.Transitional, "operator"
		case vmTerminated:
			st.Kind = fsm.Final
		case vmFailed:
			st.Kind = fsm.Failed
		}
		spec.States = append(spec.States, st)
	}
	for _, r := range vmRows {
		spec.Rows = append(spec.Rows, fsm.Move(state(r.from), event(r.event), state(r.to)).By(r.actor))
	}
	return spec
}

type (
	vmState  int
	vmEvent  int
	vmStateS string
	vmEventS string
)

func vmInts() *fsm.Machine[vmState, vmEvent, time.Time] {
	return fsm.Must[time.Time](vmTable(func(s int) vmState { return vmState(s) }, func(e int) vmEvent { return vmEvent(e) }))
}

var (
	vmStateNames = [...]vmStateS{
		"Creating", "Running", "Suspending", "Suspended", "Resuming", "Rebooting", "Terminating", "Terminated", "Failed", "Undefined",
	}
	vmEventNames = [...]vmEventS{"Success", "Error", "Suspend", "Resume", "Reboot", "Terminate", "Lost", "Seen"}
)

func vmStrings() *fsm.Machine[vmStateS, vmEventS, time.Time] {
	return fsm.Must[time.Time](vmTable(func(s int) vmStateS { return vmStateNames[s] }, func(e int) vmEventS { return vmEventNames[e] }))
}

// handVM is the code by hand: a two-dimensional array, an atomic state and one
// compare-and-set, without actors.
type handVM struct{ state atomic.Uint32 }

var (
	handTable = func() (t [vmStates][vmEvents]int8) {
		for s := range t {
			for e := range t[s] {
				t[s][e] = -1
			}
		}
		for _, r := range vmRows {
			t[r.from][r.event] = int8(r.to)
		}
		return t
	}()
	handEvents = func() map[vmEventS]vmEvent {
		m := make(map[vmEventS]vmEvent)
		for e, name := range vmEventNames {
			m[name] = vmEvent(e)
		}
		return m
	}()
	handStates = func() map[vmStateS]uint32 {
		m := make(map[vmStateS]uint32)
		for s, name := range vmStateNames {
			m[name] = uint32(s)
		}
		return m
	}()
	errHandNoRow    = errors.New("no row")
	errHandConflict = errors.New("conflict")
)

func (vm *handVM) fire(e vmEvent) (vmState, error) {
	from := vm.state.Load()
	to := handTable[from][e]
	if to < 0 {
		return 0, errHandNoRow
	}
	if !vm.state.CompareAndSwap(from, uint32(to)) {
		return 0, errHandConflict
	}
	return vmState(to), nil
}

// fireNamed is the same for strings. A map has the number of the event, and an array
// the name of the state.
func (vm *handVM) fireNamed(e vmEventS) (vmStateS, error) {
	n, ok := handEvents[e]
	if !ok {
		return "", errHandNoRow
	}
	to, err := vm.fire(n)
	return vmStateNames[to], err
}

// fireFrom is the same for a state and an origin by name.
func (vm *handVM) fireFrom(state, origin vmStateS, e vmEventS) (vmStateS, error) {
	from, ok := handStates[state]
	if _, known := handStates[origin]; !ok || !known {
		return "", errHandNoRow
	}
	vm.state.Store(from)
	return vm.fireNamed(e)
}

var keepError error

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// ratios returns the pairs with a goal. Strings are cloned, as a service gets them
// from JSON, HTTP or SQL.
func ratios() []ratio.Pair {
	ctx := context.Background()
	hand, named := new(handVM), new(handVM)
	_, err := hand.fire(vmSuccess)
	must(err)
	_, err = named.fire(vmSuccess)
	must(err)
	vm := vmInts().Instance()
	_, err = vm.Fire(ctx, vmSuccess, vmCSP, nil)
	must(err)
	byName := vmStrings()
	vmS := byName.Instance()
	_, err = vmS.Fire(ctx, "Success", vmCSP, nil)
	must(err)

	var cycle [4]vmEventS
	var actors [4]fsm.Actor
	for i := range cycle {
		cycle[i] = clone(vmEventNames[vmCycle[i]])
		actors[i] = clone(vmActors[i])
	}
	at := [4]fsm.Status[vmStateS]{
		{State: "Running", Origin: "Running"},
		{State: "Suspending", Origin: "Running"},
		{State: "Suspended", Origin: "Suspended"},
		{State: "Resuming", Origin: "Suspended"},
	}
	for i := range at {
		at[i] = fsm.Status[vmStateS]{State: clone(at[i].State), Origin: clone(at[i].Origin)}
	}
	return []ratio.Pair{
		{Name: "fsm/Fire-int", Goal: 3, Base: func(n int) {
			for i := range (n + 3) &^ 3 {
				_, err := hand.fire(vmEvent(vmCycle[i&3]))
				must(err)
			}
		}, Subject: func(n int) {
			for i := range (n + 3) &^ 3 {
				_, err := vm.Fire(ctx, vmEvent(vmCycle[i&3]), vmActors[i&3], nil)
				must(err)
			}
		}},
		{Name: "fsm/Fire-string", Goal: 2, Base: func(n int) {
			for i := range (n + 3) &^ 3 {
				_, err := named.fireNamed(cycle[i&3])
				must(err)
			}
		}, Subject: func(n int) {
			for i := range (n + 3) &^ 3 {
				_, err := vmS.Fire(ctx, cycle[i&3], actors[i&3], nil)
				must(err)
			}
		}},
		{Name: "fsm/Next-string", Goal: 2, Base: func(n int) {
			for i := range (n + 3) &^ 3 {
				_, err := named.fireFrom(at[i&3].State, at[i&3].Origin, cycle[i&3])
				must(err)
			}
		}, Subject: func(n int) {
			for i := range n {
				_, keepError = byName.Next(ctx, at[i&3], cycle[i&3], actors[i&3], nil)
			}
			must(keepError)
		}},
	}
}

func clone[S ~string](s S) S { return S(strings.Clone(string(s))) }

// rings returns functions that move around n states, by hand and by a machine.
func rings(n int) (hand, machine func(int)) {
	spec := fsm.Spec[vmState, vmEvent]{Name: fmt.Sprint("ring of ", n), Actors: []fsm.Actor{vmUser, vmCSP, vmObserver}}
	table := make([][vmEvents]int16, n)
	for s := range n {
		for e := range table[s] {
			table[s][e] = -1
		}
		spec.States = append(spec.States, fsm.State[vmState]{Name: vmState(s)})
		add := func(e, to int, actor fsm.Actor) {
			table[s][e] = int16(to)
			spec.Rows = append(spec.Rows, fsm.Move(vmState(s), vmEvent(e), vmState(to)).By(actor))
		}
		add(s%vmEvents, (s+1)%n, vmUser)
		if s%3 == 0 {
			add((s+3)%vmEvents, (s+n-1)%n, vmCSP)
		}
	}
	in := fsm.Must[time.Time](spec).Instance()
	ctx := context.Background()
	var state atomic.Uint32
	at, handAt := 0, 0
	hand = func(steps int) {
		for range steps {
			from := state.Load()
			to := table[from][handAt%vmEvents]
			if to < 0 || !state.CompareAndSwap(from, uint32(to)) {
				panic("refused")
			}
			if handAt++; handAt == n {
				handAt = 0
			}
		}
	}
	return hand, func(steps int) {
		for range steps {
			_, err := in.Fire(ctx, vmEvent(at%vmEvents), vmUser, nil)
			must(err)
			if at++; at == n {
				at = 0
			}
		}
	}
}

// growth is the ratio of machine to array for 1,000 states, divided by that for 10.
func growth() ratio.Figure {
	var pairs []ratio.Pair
	for _, n := range []int{10, 1000} {
		hand, machine := rings(n)
		pairs = append(pairs, ratio.Pair{Name: fmt.Sprint(n), Base: hand, Subject: machine})
	}
	f := ratio.Measure(pairs, nil)
	return ratio.Figure{Name: "fsm/Fire-growth-10-to-1000-states", Value: f[1].Value / f[0].Value, Goal: 1.2}
}

// BenchmarkRatios prints the figures of this package as ratios to the code by hand,
// measured in the same run.
func BenchmarkRatios(b *testing.B) {
	figures := append(ratio.Measure(ratios(), nil), growth())
	var in fsm.Instance[vmState, vmEvent, time.Time]
	figures = append(figures, ratio.Figure{Name: "fsm/Instance-bytes", Value: float64(unsafe.Sizeof(in)), Goal: 16})
	ratio.Print(os.Stdout, figures)
	ratio.PrintMachine(os.Stdout)
}

// BenchmarkPlain reports nanoseconds and allocations.
func BenchmarkPlain(b *testing.B) {
	for _, p := range ratios() {
		b.Run(p.Name, func(b *testing.B) {
			b.ReportAllocs()
			p.Subject(b.N)
		})
		b.Run(p.Name+"/hand", func(b *testing.B) {
			b.ReportAllocs()
			p.Base(b.N)
		})
	}
}
