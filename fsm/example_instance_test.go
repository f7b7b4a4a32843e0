package fsm_test

import (
	"context"
	"fmt"
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
