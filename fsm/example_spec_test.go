package fsm_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/fsm"
)

// show prints a row as the constructors and methods made it.
func show(r fsm.Row[string, string]) {
	fmt.Printf("from %v, any %v, except %v, origin %v, on %s to %q, %v\n", r.From, r.Any, r.Except, r.Origin, r.Event, r.To, r.Then)
}

func ExampleMove() {
	show(fsm.Move("off", "push", "on"))
	// Output: from [off], any false, except [], origin [], on push to "on", move
}

func ExampleReturn() {
	show(fsm.Return("deleting", "failed"))
	// Output: from [deleting], any false, except [], origin [], on failed to "", return
}

func ExampleIgnore() {
	show(fsm.Ignore("deleting", "delete"))
	// Output: from [deleting], any false, except [], origin [], on delete to "", ignore
}

func ExampleFromAny() {
	show(fsm.FromAny("lost", "broken"))
	// Output: from [], any true, except [], origin [], on lost to "broken", move
}

func ExampleRedo() {
	r := fsm.Redo("rebooting", "late", time.Minute)
	show(r)
	fmt.Println(r.Actors, r.Supersede, r.Timeout)
	// Output:
	// from [rebooting], any false, except [], origin [], on late to "rebooting", move
	// [sweeper] true 1m0s
}

func ExampleRows() {
	rows := fsm.Rows(
		fsm.Move("off", "push", "on"),
		fsm.Move("on", "push", "off"),
	)
	fmt.Printf("%T of %d\n", rows, len(rows))
	// Output: []fsm.Row[string,string] of 2
}

func ExampleRow_By() {
	r := fsm.Move("off", "push", "on")
	fmt.Println(r.By("user", "worker").Actors, r.Actors)
	// Output: [user worker] []
}

func ExampleRow_AlsoFrom() {
	fmt.Println(fsm.Move("off", "push", "on").AlsoFrom("dimmed", "blinking").From)
	// Output: [off dimmed blinking]
}

func ExampleRow_Excluding() {
	show(fsm.FromAny("lost", "broken").Excluding("idle"))
	// Output: from [], any true, except [idle], origin [], on lost to "broken", move
}

// The target of a deletion depends on the origin.
func ExampleRow_Of() {
	show(fsm.Move("deleting", "done", "in the bin").Of("created"))
	show(fsm.Move("deleting", "done", "deleted").Of("in the bin"))
	// Output:
	// from [deleting], any false, except [], origin [created], on done to "in the bin", move
	// from [deleting], any false, except [], origin [in the bin], on done to "deleted", move
}

func ExampleRow_If() {
	r := fsm.Move(Idle, Lift, Moving).If(liftable)
	fmt.Println(r.Guard.Name())
	// Output: light enough
}

// The sweeper fires a row with a timeout. By need not name it.
func ExampleRow_After() {
	r := fsm.Move(Moving, Lost, Broken).After(time.Minute)
	fmt.Println(r.Timeout, r.Actors)
	// Output: 1m0s []
}

func ExampleRow_OnlyForced() {
	fmt.Println(fsm.Move(Broken, Repair, Idle).OnlyForced().Forced)
	// Output: true
}

// A delete during a start begins a new operation. Later reports of the start are
// stale.
func ExampleRow_Superseding() {
	fmt.Println(fsm.Move("starting", "delete", "deleting").Superseding().Supersede)
	// Output: true
}

func ExampleRow_Note() {
	fmt.Println(fsm.Move("off", "push", "on").Note("section 4.2").Doc)
	// Output: section 4.2
}

func ExampleWhen() {
	errCold := errors.New("the oven is cold")
	hot := fsm.When("hot", func(_ context.Context, _, celsius *int) error {
		if *celsius < 180 {
			return errCold
		}
		return nil
	})
	ovens := fsm.Must[int](fsm.Spec[string, string]{
		Name: "oven", Initial: "empty", Actors: []fsm.Actor{"cook"},
		States: []fsm.State[string]{{Name: "empty"}, {Name: "baking"}},
		Rows: fsm.Rows(
			fsm.Move("empty", "bake", "baking").If(hot),
			fsm.Move("baking", "take out", "empty"),
		),
	})
	celsius := 20
	err := ovens.Can(context.Background(), ovens.Start(), "bake", "cook", &celsius)
	fmt.Println(err)
	fmt.Println(errors.Is(err, fsm.ErrGuard), errors.Is(err, errCold))
	// Output:
	// fsm: refused by a guard: oven: bake in empty by cook: hot: the oven is cold
	// true true
}

func ExampleGuard_Name() {
	fmt.Println(liftable.Name())
	// Output: light enough
}

func ExampleKind_Resting() {
	for _, k := range []fsm.Kind{fsm.Stable, fsm.Transitional, fsm.Failed, fsm.Final, fsm.Absent} {
		fmt.Println(k, k.Resting())
	}
	// Output:
	// stable true
	// transitional false
	// failed true
	// final true
	// absent true
}

// New reports every fault of a specification at once.
func ExampleNew() {
	_, err := fsm.New[Crane](fsm.Spec[Phase, Cmd]{
		Name: "crane", Initial: Idle, Actors: []fsm.Actor{User},
		States: []fsm.State[Phase]{{Name: Idle}, {Name: Moving, Kind: fsm.Transitional}, {Name: Broken, Kind: fsm.Failed}},
		Rows: fsm.Rows(
			fsm.Move(Idle, Lift, Moving).By(User),
			fsm.Move(Idle, Lift, Broken).By(User),
			fsm.Return(Moving, Arrived),
		),
	})
	fmt.Println(err)
	if invalid, ok := errors.AsType[*fsm.InvalidError](err); ok {
		for _, p := range invalid.Problems {
			fmt.Printf("%s, row %d, state %q, demand %t\n", p.Code, p.Row, p.State, p.Demand)
		}
	}
	// Output:
	// fsm: invalid table crane:
	// 	row 1 (Idle -Lift-> Broken): is never tried in Idle: row 0 (Idle -Lift-> Moving) takes the same actors first
	// 	state Broken: no row leads out, and it is neither final nor absent
	// 	state Moving: transitional, with neither a timeout nor Manual
	// ambiguous-row, row 1, state "", demand false
	// dead-end, row -1, state "Broken", demand false
	// no-deadline, row -1, state "Moving", demand true
}

func ExampleMust() {
	lamps := fsm.Must[struct{}](fsm.Spec[string, string]{
		Name: "lamp", Initial: "off", Actors: []fsm.Actor{"user"},
		States: []fsm.State[string]{{Name: "off"}, {Name: "on"}},
		Rows:   fsm.Rows(fsm.Move("off", "push", "on"), fsm.Move("on", "push", "off")),
	})
	lamp := lamps.Instance()
	_, err := lamp.Fire(context.Background(), "push", "user", nil)
	fmt.Println(lamp.State(), err)
	// Output: on <nil>
}

// A table from a file has the names of its guards. Bind takes the guards, and gives
// states and events their types.
func ExampleBind() {
	table, err := fsm.ParseTable([]byte(`{
		"schema": "lifecycle-table/1", "name": "crane", "initial": "Idle",
		"states": [{"name": "Idle", "kind": "stable"}, {"name": "Moving", "kind": "transitional"}],
		"transitions": [
			{"from": "Idle", "event": "Lift", "actor": "user", "to": "Moving", "guard": "light enough"},
			{"from": "Moving", "event": "Arrived", "actor": "worker", "return": true},
			{"from": "Moving", "event": "Lost", "actor": "sweeper", "to": "Idle", "within": "1m"}
		]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = fsm.Bind[Crane, Phase, Cmd](table)
	fmt.Println(err)

	cranes, err := fsm.Bind[Crane, Phase, Cmd](table, liftable)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(cranes.Can(context.Background(), cranes.Start(), Lift, User, &Crane{Tons: 3}))
	// Output:
	// fsm: invalid table crane:
	// 	row 0 (Idle -Lift-> Moving): guard "light enough" is not bound
	// <nil>
}

func ExampleInvalidError() {
	_, err := fsm.New[Crane](fsm.Spec[Phase, Cmd]{
		Name: "crane", Initial: Idle, States: []fsm.State[Phase]{{Name: Idle, Kind: fsm.Final}},
	})
	fmt.Println(err)
	_, err = fsm.New[Crane](fsm.Spec[Phase, Cmd]{Name: "crane", Initial: "Nowhere"})
	fmt.Println(errors.Is(err, fsm.ErrInvalid))
	for _, p := range err.(*fsm.InvalidError).Problems {
		fmt.Println(p.Code, "-", p)
	}
	// Output:
	// <nil>
	// true
	// no-initial - the initial state is not declared: "Nowhere"
}
