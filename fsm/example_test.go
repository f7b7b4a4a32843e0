package fsm_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/fsm"
)

type (
	Phase string
	Cmd   string
	Crane struct{ Tons int }
)

const (
	Idle, Moving, Broken        Phase = "Idle", "Moving", "Broken"
	Lift, Arrived, Lost, Repair Cmd   = "Lift", "Arrived", "Lost", "Repair"

	User, Worker fsm.Actor = "user", "worker"
)

var liftable = fsm.When("light enough", func(_ context.Context, _, c *Crane) error {
	if c.Tons > 10 {
		return fmt.Errorf("%d t is too heavy", c.Tons)
	}
	return nil
})

var Cranes = fsm.Must[Crane](fsm.Spec[Phase, Cmd]{
	Name: "crane", Initial: Idle, Actors: []fsm.Actor{User, Worker},
	States: []fsm.State[Phase]{{Name: Idle}, {Name: Moving, Kind: fsm.Transitional}, {Name: Broken, Kind: fsm.Failed}},
	Rows: fsm.Rows(
		fsm.Move(Idle, Lift, Moving).By(User).If(liftable),
		fsm.Return(Moving, Arrived).By(Worker),
		fsm.Move(Moving, Lost, Broken).After(time.Minute), // fired by the sweeper
		fsm.Move(Broken, Repair, Idle).By(User).OnlyForced(),
	),
})

// A crane is idle, moving or broken. A user lifts a load that is light enough. A
// worker reports its arrival. The sweeper fires Lost after one minute.
func Example() {
	ctx := context.Background()
	crane, load := Cranes.Instance(), Crane{Tons: 12}

	_, err := crane.Fire(ctx, Lift, User, &load)
	fmt.Println(err)

	load.Tons = 3
	step, err := crane.Fire(ctx, Lift, User, &load)
	fmt.Println(step.State, err)

	_, err = crane.Fire(ctx, Arrived, User, &load)
	fmt.Println(errors.Is(err, fsm.ErrWrongActor))

	step, err = crane.Fire(ctx, Arrived, Worker, &load)
	fmt.Println(step.State, err)

	// Output:
	// fsm: refused by a guard: crane: Lift in Idle by user: light enough: 12 t is too heavy
	// Moving <nil>
	// true
	// Idle <nil>
}
