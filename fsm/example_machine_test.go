package fsm_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/fsm"
)

func ExampleMachine_Next() {
	ctx := context.Background()
	step, err := Cranes.Next(ctx, Cranes.At(Idle), Lift, User, &Crane{Tons: 3})
	fmt.Println(step.State, step.Origin, step.Row, err)
	_, err = Cranes.Next(ctx, Cranes.At(Idle), Arrived, Worker, nil)
	fmt.Println(err)
	// Output:
	// Moving Idle 0 <nil>
	// fsm: not allowed: crane: Arrived in Idle by worker
}

func ExampleMachine_NextForced() {
	ctx := context.Background()
	_, err := Cranes.Next(ctx, Cranes.At(Broken), Repair, User, nil)
	fmt.Println(err)
	step, err := Cranes.NextForced(ctx, Cranes.At(Broken), Repair, User, nil)
	fmt.Println(step.State, err)
	// Output:
	// fsm: only by force: crane: Repair in Broken by user
	// Idle <nil>
}

// NextTo is for a peer that reports states and not events.
func ExampleMachine_NextTo() {
	ctx := context.Background()
	at := fsm.Status[Phase]{State: Moving, Origin: Idle}
	step, err := Cranes.NextTo(ctx, at, Idle, Worker, nil)
	fmt.Println(step.State, step.Row, err)
	_, err = Cranes.NextTo(ctx, at, Broken, Worker, nil)
	fmt.Println(err)
	// Output:
	// Idle 1 <nil>
	// fsm: wrong actor: crane: to Broken in Moving (origin Idle) by worker
}

func ExampleMachine_Can() {
	ctx := context.Background()
	fmt.Println(Cranes.Can(ctx, Cranes.Start(), Lift, User, &Crane{Tons: 3}))
	fmt.Println(Cranes.Can(ctx, Cranes.Start(), Lift, Worker, &Crane{Tons: 3}))
	// Output:
	// <nil>
	// fsm: wrong actor: crane: Lift in Idle by worker
}

// Permitted runs no guards and needs no payload, as for a menu.
func ExampleMachine_Permitted() {
	for event := range Cranes.Permitted(Cranes.At(Idle), User) {
		fmt.Println(event)
	}
	for event := range Cranes.Permitted(fsm.Status[Phase]{State: Moving, Origin: Idle}, fsm.Sweeper) {
		fmt.Println(event)
	}
	// Output:
	// Lift
	// Lost
}

func ExampleMachine_Start() {
	fmt.Println(Cranes.Start())
	// Output: {Idle Idle}
}

func ExampleMachine_At() {
	fmt.Println(Cranes.At(Broken))
	// Output: {Broken Broken}
}

// A store keeps names. ParseStatus refuses undeclared ones.
func ExampleMachine_ParseStatus() {
	fmt.Println(Cranes.ParseStatus("Moving", "Idle"))
	_, err := Cranes.ParseStatus("Flying", "")
	fmt.Println(errors.Is(err, fsm.ErrUnknownState))
	// Output:
	// {Moving Idle} <nil>
	// true
}

func ExampleMachine_Observe() {
	watched := Cranes.Observe(fsm.Observer{
		Moved:   func(_ context.Context, m fsm.Moved) { fmt.Println(m.From, "->", m.To, "by", m.Actor) },
		Refused: func(_ context.Context, err error) { fmt.Println("refused:", errors.Is(err, fsm.ErrWrongActor)) },
	})
	crane := watched.Instance()
	_, _ = crane.Fire(context.Background(), Lift, User, &Crane{Tons: 3})
	_, _ = crane.Fire(context.Background(), Arrived, User, nil)
	// Output:
	// Idle -> Moving by user
	// refused: true
}

func ExampleMachine_Instance() {
	crane := Cranes.Instance()
	fmt.Println(crane.Status())
	// Output: {Idle Idle}
}

func ExampleMachine_InstanceAt() {
	crane, err := Cranes.InstanceAt(fsm.Status[Phase]{State: Moving, Origin: Idle})
	fmt.Println(crane.State(), err)
	_, err = Cranes.InstanceAt(Cranes.At("Flying"))
	fmt.Println(errors.Is(err, fsm.ErrUnknownState))
	// Output:
	// Moving <nil>
	// true
}

func ExampleMachine_Check() {
	before, after := Crane{Tons: 3}, Crane{Tons: 12}
	fmt.Println(Cranes.Check(context.Background(), 0, &before, &after))
	fmt.Println(Cranes.Check(context.Background(), 1, nil, nil)) // no guard
	// Output:
	// 12 t is too heavy
	// <nil>
}

func ExampleMachine_Kind() {
	fmt.Println(Cranes.Kind(Moving), Cranes.Kind("Flying"))
	// Output: transitional absent
}

func ExampleMachine_States() {
	for s := range Cranes.States() {
		fmt.Println(s)
	}
	// Output:
	// Idle
	// Moving
	// Broken
}

func ExampleMachine_Events() {
	for e := range Cranes.Events() {
		fmt.Println(e)
	}
	// Output:
	// Lift
	// Arrived
	// Lost
	// Repair
}

func ExampleMachine_StateIndex() {
	s, e := Cranes.StateIndex(Broken), Cranes.EventIndex(Lost)
	fmt.Println(s, Cranes.StateAt(s), e, Cranes.EventAt(e), Cranes.StateIndex("Flying"))
	// Output: 2 Broken 2 Lost -1
}

func ExampleMachine_EventIndex() {
	fmt.Println(Cranes.EventIndex(Repair), Cranes.EventIndex("Fly"))
	// Output: 3 -1
}

func ExampleMachine_StateAt() {
	fmt.Println(Cranes.StateAt(1))
	// Output: Moving
}

func ExampleMachine_EventAt() {
	fmt.Println(Cranes.EventAt(1))
	// Output: Arrived
}

func ExampleMachine_Name() {
	fmt.Println(Cranes.Name())
	// Output: crane
}

func ExampleMachine_Table() {
	table := Cranes.Table()
	for _, r := range table.Rows {
		fmt.Printf("%s %s %q\n", table.States[r.From[0]].Name, table.Events[r.Event], r.Guard)
	}
	// Output:
	// Idle Lift "light enough"
	// Moving Arrived ""
	// Moving Lost ""
	// Broken Repair ""
}

// A program compares the sentinel, and logs the detail.
func ExampleTransitionError() {
	_, err := Cranes.Next(context.Background(), Cranes.At(Idle), Lift, User, &Crane{Tons: 12})
	switch {
	case errors.Is(err, fsm.ErrConflict):
		fmt.Println("try again")
	case errors.Is(err, fsm.ErrGuard):
		te, _ := errors.AsType[*fsm.TransitionError](err)
		fmt.Println(te.Machine, te.From, te.Event, te.Actor, te.Row, te.Guard, "-", te.Reason)
	}
	// Output: crane Idle Lift user 0 light enough - 12 t is too heavy
}
