package fsm_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/fsm"
)

func ExampleInstance_Fire() {
	crane := Cranes.Instance()
	step, err := crane.Fire(context.Background(), Lift, User, &Crane{Tons: 3})
	fmt.Println(step.State, crane.State(), err)
	_, err = crane.Fire(context.Background(), Lift, User, &Crane{Tons: 3})
	fmt.Println(err)
	// Output:
	// Moving Moving <nil>
	// fsm: not allowed: crane: Lift in Moving by user
}

func ExampleInstance_FireForced() {
	crane, _ := Cranes.InstanceAt(Cranes.At(Broken))
	step, err := crane.FireForced(context.Background(), Repair, User, nil)
	fmt.Println(step.State, err)
	// Output: Idle <nil>
}

// An effect that may fail stands between the decision and the move. If somebody
// else was faster, the effect is done and the move is not.
func ExampleInstance_CompareAndSwap() {
	ctx := context.Background()
	crane, load := Cranes.Instance(), Crane{Tons: 3}
	move, err := crane.Next(ctx, Lift, User, &load)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("start the motor")
	step, err := crane.CompareAndSwap(move)
	fmt.Println(err, step.State)

	_, err = crane.CompareAndSwap(move) // decided for an object that has moved since
	fmt.Println(errors.Is(err, fsm.ErrConflict), crane.State())
	// Output:
	// start the motor
	// <nil> Moving
	// true Moving
}

func ExampleInstance_Next() {
	crane := Cranes.Instance()
	move, err := crane.Next(context.Background(), Lift, User, &Crane{Tons: 3})
	fmt.Println(move.State, err, crane.State())
	// Output: Moving <nil> Idle
}

func ExampleInstance_Status() {
	crane := Cranes.Instance()
	_, _ = crane.Fire(context.Background(), Lift, User, &Crane{Tons: 3})
	fmt.Printf("%+v\n", crane.Status())
	// Output: {State:Moving Origin:Idle}
}

func ExampleInstance_State() {
	crane := Cranes.Instance()
	fmt.Println(crane.State())
	// Output: Idle
}
