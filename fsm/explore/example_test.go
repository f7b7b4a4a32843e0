package explore_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/fsm/explore"
)

// A user opens and closes a door. In an unordered channel an earlier order may arrive
// last.
func ExampleSystem() {
	sys := explore.New("door")
	user := explore.NewActor(sys, "user", "closed") // what was asked for last
	door := explore.NewActor(sys, "door", "closed")
	orders := explore.NewChannel[string](sys, "orders", explore.ChannelSpec{Capacity: 2})

	explore.Sends(user, orders, func(asked string, send func(string, string, string)) {
		switch asked {
		case "closed":
			send("asks", "open", "open")
		case "open":
			send("asks", "close", "shut")
		}
	})
	explore.Receives(door, orders, func(_, order string, next func(string, string)) {
		next("obeys", map[string]string{"open": "open", "close": "closed"}[order])
	})
	sys.Always("the last order wins", func(v *explore.View) error {
		if user.In(v) == "shut" && door.In(v) == "open" && len(orders.In(v)) == 0 {
			return errors.New("it stays open")
		}
		return nil
	})
	verdict, err := sys.Explore(context.Background(), nil)
	fmt.Println(verdict, err)
	// Output:
	// door: violated: the last order wins: it stays open (8 states, 8 steps, depth 4)
	//   user: closed
	//   door: closed
	//       user   orders  door
	//    1    o------>|      |     asks: open; user: open
	//    2    o------>|      |     asks: close; user: shut
	//    3    |       |----->o     obeys: close
	//    4    |       |----->o     obeys: open; door: open
	//  <nil>
}

// The user repeats the order until an answer arrives. The user enters at last if the
// channels deliver, and may wait forever if the orders stay in their channel.
func ExampleSystem_LeadsTo() {
	door := func(fair bool) *explore.System {
		sys := explore.New("door")
		user := explore.NewActor(sys, "user", "waits")
		door := explore.NewActor(sys, "door", "closed")
		orders := explore.NewChannel[string](sys, "orders", explore.ChannelSpec{Capacity: 1, Lose: sys.Budget("loss", 2)})
		answers := explore.NewChannel[string](sys, "answers", explore.ChannelSpec{Capacity: 1, Lose: sys.Budget("lost answers", 2)})
		explore.Sends(user, orders, func(l string, send func(string, string, string)) {
			if l == "waits" {
				send("", "open", l)
			}
		}).Fair()
		obeys := explore.Receives(door, orders, func(_, _ string, next func(string, string)) { next("obeys", "open") })
		explore.Sends(door, answers, func(l string, send func(string, string, string)) {
			if l == "open" {
				send("", "opened", l)
			}
		}).Fair()
		explore.Receives(user, answers, func(_, _ string, next func(string, string)) { next("", "enters") }).Fair()
		if fair {
			obeys.Fair()
		}
		sys.Rests(func(v *explore.View) bool { return user.In(v) == "enters" })
		sys.LeadsTo("the user enters", nil, func(v *explore.View) bool { return user.In(v) == "enters" })
		return sys
	}
	for _, fair := range []bool{true, false} {
		verdict, err := door(fair).Explore(context.Background(), nil)
		fmt.Println(verdict, err)
	}
	// Output:
	// door: holds (78 states, 182 steps, depth 14)
	//   leads to: the user enters <nil>
	// door: unreached: the user enters (78 states, 182 steps, depth 14)
	//   user: waits
	//   door: closed
	//       user   orders  door   answers
	//    1    o------>|      |       |      open
	//      stops: no fair action is possible
	//  <nil>
}

// Two jugs of three and five gallons shall measure four. The invariant denies that four
// is possible, so the counterexample is the solution.
func ExampleModel() {
	type jugs struct{ Small, Big int }
	m := &explore.Model[jugs]{
		Name: "jugs", Initial: []jugs{{}},
		Next: func(s jugs, step func(string, bool, jugs)) {
			down, up := min(s.Small, 5-s.Big), min(s.Big, 3-s.Small)
			step("fill small", false, jugs{3, s.Big})
			step("fill big", false, jugs{s.Small, 5})
			step("empty small", false, jugs{0, s.Big})
			step("empty big", false, jugs{s.Small, 0})
			step("small to big", false, jugs{s.Small - down, s.Big + down})
			step("big to small", false, jugs{s.Small + up, s.Big - up})
		},
		Always: map[string]func(jugs) error{"never four": func(s jugs) error {
			if s.Big == 4 {
				return errors.New("four")
			}
			return nil
		}},
	}
	verdict, err := m.Explore(context.Background(), nil)
	for _, s := range verdict.Trace.Steps {
		fmt.Println(s.Label, s.Locals[0].After)
	}
	fmt.Println(err)
	// Output:
	// fill big {Small:0 Big:5}
	// big to small {Small:3 Big:2}
	// empty small {Small:0 Big:2}
	// big to small {Small:2 Big:0}
	// fill big {Small:2 Big:5}
	// big to small {Small:3 Big:4}
	// <nil>
}
