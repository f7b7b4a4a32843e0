package fsm_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/ratio"
)

// The VM table of CB-Tumblebug with integers, as a service would have them from
// an enumeration, and with strings.
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

// The story that every benchmark tells: suspend, done, resume, done, and so on.
var (
	vmStory  = [4]int{vmSuspend, vmSuccess, vmResume, vmSuccess}
	vmActors = [4]fsm.Actor{vmUser, vmCSP, vmUser, vmCSP}
	vmNoRow  = [4]int{vmSuccess, vmError, vmResume, vmSeen} // of a running VM
	vmOthers = [4]int{vmSuspend, vmReboot, vmTerminate, vmLost}
	vmWrong  = [4]fsm.Actor{vmCSP, vmCSP, vmCSP, vmUser} // for these
)

func vmTable[S, E comparable](state func(int) S, event func(int) E, guard fsm.AnyGuard) fsm.Spec[S, E] {
	spec := fsm.Spec[S, E]{Name: "vm", Initial: state(vmCreating), Actors: []fsm.Actor{vmUser, vmCSP, vmObserver}}
	for s := range vmStates {
		st := fsm.State[S]{Name: state(s)}
		switch s {
		case vmCreating, vmSuspending, vmResuming, vmRebooting, vmTerminating:
			st.Kind, st.Manual = fsm.Transitional, "the benchmark looks after it"
		case vmTerminated:
			st.Kind = fsm.Final
		case vmFailed:
			st.Kind = fsm.Failed
		}
		spec.States = append(spec.States, st)
	}
	for _, r := range vmRows {
		spec.Rows = append(spec.Rows, fsm.Move(state(r.from), event(r.event), state(r.to)).By(r.actor).If(guard))
	}
	return spec
}

type (
	vmState  int
	vmEvent  int
	vmStateS string
	vmEventS string
)

func vmInts(guard fsm.AnyGuard) *fsm.Machine[vmState, vmEvent, time.Time] {
	return fsm.Must[time.Time](vmTable(func(s int) vmState { return vmState(s) }, func(e int) vmEvent { return vmEvent(e) }, guard))
}

var (
	vmStateNames = [...]vmStateS{
		"Creating", "Running", "Suspending", "Suspended", "Resuming", "Rebooting", "Terminating", "Terminated", "Failed", "Undefined",
	}
	vmEventNames = [...]vmEventS{"Success", "Error", "Suspend", "Resume", "Reboot", "Terminate", "Lost", "Seen"}
)

func vmStrings() *fsm.Machine[vmStateS, vmEventS, time.Time] {
	return fsm.Must[time.Time](vmTable(func(s int) vmStateS { return vmStateNames[s] }, func(e int) vmEventS { return vmEventNames[e] }, nil))
}

// handVM is what one would write by hand: a two-dimensional array, an atomic
// state and one compare-and-set. It knows no actors.
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
	handNames = func() map[vmEventS]vmEvent {
		m := make(map[vmEventS]vmEvent)
		for e, name := range vmEventNames {
			m[name] = vmEvent(e)
		}
		return m
	}()
	errHandNoRow    = errors.New("no row")
	errHandConflict = errors.New("conflict")
)

func (vm *handVM) fire(e vmEvent) error {
	from := vm.state.Load()
	to := handTable[from][e]
	if to < 0 {
		return errHandNoRow
	}
	if !vm.state.CompareAndSwap(from, uint32(to)) {
		return errHandConflict
	}
	return nil
}

// fireNamed is the same for string events, which a map turns into numbers.
func (vm *handVM) fireNamed(e vmEventS) error {
	n, ok := handNames[e]
	if !ok {
		return errHandNoRow
	}
	return vm.fire(n)
}

var (
	keepError error
	keepBool  bool
	keepStep  fsm.Step[vmState]
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func ratios() []ratio.Pair {
	ctx := context.Background()
	hand, named := new(handVM), new(handVM)
	must(hand.fire(vmSuccess))
	must(named.fire(vmSuccess))
	handFire := func(n int) {
		for i := range (n + 3) &^ 3 {
			must(hand.fire(vmEvent(vmStory[i&3])))
		}
	}
	handNamed := func(n int) {
		for i := range (n + 3) &^ 3 {
			must(named.fireNamed(vmEventNames[vmStory[i&3]]))
		}
	}
	handRefuse := func(n int) {
		for i := range n {
			keepError = hand.fire(vmEvent(vmNoRow[i&3]))
		}
	}
	ints := vmInts(nil)
	vm := ints.Instance()
	_, err := vm.Fire(ctx, vmSuccess, vmCSP, nil)
	must(err)
	strings := vmStrings()
	vmS := strings.Instance()
	_, err = vmS.Fire(ctx, "Success", vmCSP, nil)
	must(err)
	guarded := vmInts(fsm.When("in this century", func(_ context.Context, t *time.Time) error {
		if t == nil {
			return errHandNoRow
		}
		return nil
	}))
	vmG := guarded.Instance()
	payload := new(time.Time)
	_, err = vmG.Fire(ctx, vmSuccess, vmCSP, payload)
	must(err)
	running, suspended := ints.At(vmRunning), ints.At(vmSuspended)
	at := [4]fsm.Status[vmState]{running, {State: vmSuspending, Origin: vmRunning}, suspended, {State: vmResuming, Origin: vmSuspended}}
	atS := [4]fsm.Status[vmStateS]{
		{State: "Running", Origin: "Running"},
		{State: "Suspending", Origin: "Running"},
		{State: "Suspended", Origin: "Suspended"},
		{State: "Resuming", Origin: "Suspended"},
	}
	return []ratio.Pair{
		{Name: "fsm/Fire-int", Goal: 1.4, Base: handFire, Subject: func(n int) {
			for i := range (n + 3) &^ 3 {
				_, err := vm.Fire(ctx, vmEvent(vmStory[i&3]), vmActors[i&3], nil)
				must(err)
			}
		}},
		{Name: "fsm/Fire-string", Goal: 1.5, Base: handNamed, Subject: func(n int) {
			for i := range (n + 3) &^ 3 {
				_, err := vmS.Fire(ctx, vmEventNames[vmStory[i&3]], vmActors[i&3], nil)
				must(err)
			}
		}},
		{Name: "fsm/Next-int", Goal: 2, Base: handFire, Subject: func(n int) {
			for i := range n {
				keepStep, keepError = ints.Next(ctx, at[i&3], vmEvent(vmStory[i&3]), vmActors[i&3], nil)
			}
			must(keepError)
		}},
		{Name: "fsm/Next-string", Goal: 2, Base: handNamed, Subject: func(n int) {
			for i := range n {
				_, keepError = strings.Next(ctx, atS[i&3], vmEventNames[vmStory[i&3]], vmActors[i&3], nil)
			}
			must(keepError)
		}},
		{Name: "fsm/Can", Goal: 12, Base: func(n int) {
			for i := range n {
				keepBool = handTable[at[i&3].State][vmStory[i&3]] >= 0
			}
		}, Subject: func(n int) {
			for i := range n {
				keepError = ints.Can(ctx, at[i&3], vmEvent(vmStory[i&3]), vmActors[i&3], nil)
			}
			must(keepError)
		}},
		{Name: "fsm/refused-no-row", Goal: 5, Base: handRefuse, Subject: func(n int) {
			for i := range n {
				_, keepError = vm.Fire(ctx, vmEvent(vmNoRow[i&3]), vmActors[i&3], nil)
			}
		}},
		{Name: "fsm/refused-wrong-actor", Goal: 8, Base: handRefuse, Subject: func(n int) {
			for i := range n {
				_, keepError = vm.Fire(ctx, vmEvent(vmOthers[i&3]), vmWrong[i&3], nil)
			}
		}},
		{Name: "fsm/Fire-guard", Goal: 2.2, Base: handFire, Subject: func(n int) {
			for i := range (n + 3) &^ 3 {
				_, err := vmG.Fire(ctx, vmEvent(vmStory[i&3]), vmActors[i&3], payload)
				must(err)
			}
		}},
	}
}

// rings returns walks around n states, by hand and by a machine.
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

// growth is what a hundred times as many states do to the ratio between machine
// and array.
func growth() ratio.Figure {
	var pairs []ratio.Pair
	for _, n := range []int{10, 1000} {
		hand, machine := rings(n)
		pairs = append(pairs, ratio.Pair{Name: fmt.Sprint(n), Base: hand, Subject: machine})
	}
	f := ratio.Measure(pairs, nil)
	return ratio.Figure{Name: "fsm/Fire-growth-10-to-1000-states", Value: f[1].Value / f[0].Value, Goal: 1.1}
}

// BenchmarkRatios prints the figures of this package as ratios to the code that
// one would write by hand, measured in the same run.
func BenchmarkRatios(b *testing.B) {
	figures := append(ratio.Measure(ratios(), nil), growth())
	var in fsm.Instance[vmState, vmEvent, time.Time]
	figures = append(figures, ratio.Figure{Name: "fsm/Instance-bytes", Value: float64(unsafe.Sizeof(in)), Goal: 16})
	ratio.Print(os.Stdout, figures)
	ratio.PrintMachine(os.Stdout)
}

// The plain benchmarks give nanoseconds and allocations.
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
