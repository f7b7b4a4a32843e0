package lifecycle_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// A blade is in a rack.
type (
	bladeSpec struct{ Rack string }
	rackSpec  struct{ Blades lifecycle.Counts }
)

var bladeMachine = fsm.Must[bladeSpec](fsm.Spec[state, event]{
	Name: "blade", Initial: "None", Actors: []fsm.Actor{user, agent},
	States: []fsm.State[state]{
		{Name: "None", Kind: fsm.Absent},
		{Name: "Up"},
		{Name: "Failed", Kind: fsm.Failed},
		{Name: "Booting", Kind: fsm.Transitional},
		{Name: "Busy", Kind: fsm.Transitional},
	},
	Rows: fsm.Rows(
		fsm.Move(state("None"), event("insert"), state("Booting")).By(user),
		fsm.Move(state("Booting"), event("done"), state("Up")).AlsoFrom("Busy").By(agent),
		fsm.Move(state("Booting"), event("fail"), state("Failed")).By(agent),
		fsm.Move(state("Booting"), event("late"), state("Failed")).After(time.Minute),
		fsm.Move(state("Up"), event("work"), state("Busy")).AlsoFrom("Failed").By(user),
		fsm.Return(state("Busy"), event("fail")).By(agent),
		fsm.Return(state("Busy"), event("late")).After(time.Minute),
		fsm.Move(state("Up"), event("carry"), state("Up")).By(user),
		fsm.Move(state("Up"), event("remove"), state("None")).AlsoFrom("Failed").By(user),
	),
})

var rackMachine = fsm.Must[rackSpec](fsm.Spec[state, event]{
	Name: "rack", Initial: "There", Actors: []fsm.Actor{user},
	States: []fsm.State[state]{{Name: "There"}, {Name: "None", Kind: fsm.Absent}},
	Rows: fsm.Rows(
		fsm.Move(state("There"), event("count"), state("There")).By(user),
		fsm.Move(state("There"), event("scrap"), state("None")).By(user).
			If(fsm.When("empty", func(_ context.Context, r *rackSpec) error {
				if n := r.Blades.Len(); n > 0 {
					return fmt.Errorf("%d blades are in it", n)
				}
				return nil
			})),
	),
})

var rackHealth = lifecycle.MustAggregate(lifecycle.AggregateSpec[state, string]{
	Name: "rack-health", Rule: lifecycle.Priority, Children: bladeMachine,
	Classes: []lifecycle.Class[state, string]{
		{State: "degraded", States: []state{"Failed"}},
		{State: "working", States: []state{"Booting", "Busy"}},
		{State: "idle", States: []state{"Up"}},
	},
	Empty: "empty",
})

// newRacks returns managers of blades and of racks. The counts of a rack change in
// the commit of the blade, by whatever verb that moves.
func newRacks(store lifecycle.Store) (*lifecycle.Manager[state, event, bladeSpec], *lifecycle.Manager[state, event, rackSpec]) {
	racks := lifecycle.New(rackMachine, store, nil)
	count := func(rack string, edit func(*lifecycle.Counts) error) lifecycle.AnyPart {
		return racks.Firing(rack, "count", user, &lifecycle.Change[rackSpec]{
			Edit: func(r *rackSpec) error { return edit(&r.Blades) },
		})
	}
	var blades *lifecycle.Manager[state, event, bladeSpec]
	blades = lifecycle.New(bladeMachine, store, &lifecycle.Config[event]{
		Worker: agent, Done: []event{"done"}, Failed: []event{"fail"},
		Along: func(ctx context.Context, ch *lifecycle.StoredChange) (along lifecycle.Along, err error) {
			var spec bladeSpec
			if data, err := ch.To.Payload.Bytes(); err != nil {
				return along, err
			} else if err = json.Unmarshal(data, &spec); err != nil {
				return along, err
			}
			from, to := state(ch.From), state(ch.To.State)
			if ch.From == "" {
				return lifecycle.Along{Parts: []lifecycle.AnyPart{
					count(spec.Rack, func(c *lifecycle.Counts) error { return rackHealth.Enter(c, to) }),
				}}, nil
			}
			before, err := blades.Get(ctx, ch.To.ID)
			if err != nil {
				return along, err
			}
			if before.Payload.Rack == spec.Rack {
				return lifecycle.Along{Parts: []lifecycle.AnyPart{
					count(spec.Rack, func(c *lifecycle.Counts) error { return rackHealth.Move(c, from, to) }),
				}}, nil
			}
			return lifecycle.Along{Parts: []lifecycle.AnyPart{
				count(before.Payload.Rack, func(c *lifecycle.Counts) error { return rackHealth.Leave(c, from) }),
				count(spec.Rack, func(c *lifecycle.Counts) error { return rackHealth.Enter(c, to) }),
			}}, nil
		},
	})
	return blades, racks
}

// The counts of a rack are right at every moment: a blade that moves, or is carried
// to another rack, changes them in its own commit.
func ExampleCounts_along() {
	ctx := context.Background()
	blades, racks := newRacks(lifecycle.NewMemoryStore())
	show := func(what string) {
		fmt.Print(what, ":")
		for rack, err := range racks.All(ctx, lifecycle.Select[state]{}) {
			health, _ := rackHealth.Of(&rack.Payload.Blades)
			fmt.Printf(" %s is %s, %d of %d %v", rack.ID, health.State, health.Count, health.Total, err)
		}
		fmt.Println()
	}
	_, _ = racks.Add(ctx, "r1", user, rackSpec{})
	_, _ = racks.Add(ctx, "r2", user, rackSpec{})
	for _, id := range []string{"b1", "b2"} {
		_, _ = blades.Create(ctx, id, "insert", user, bladeSpec{Rack: "r1"})
	}
	show("inserted")
	_, _ = blades.Fire(ctx, "b1", "done", agent, nil)
	_, _ = blades.Fire(ctx, "b2", "fail", agent, nil)
	show("booted")
	_, _ = blades.Fire(ctx, "b1", "carry", user, &lifecycle.Change[bladeSpec]{
		Edit: func(b *bladeSpec) error { b.Rack = "r2"; return nil },
	})
	show("carried")
	_, err := racks.Fire(ctx, "r2", "scrap", user, nil)
	fmt.Println(err)
	_, err = blades.Create(ctx, "b3", "insert", user, bladeSpec{Rack: "r3"})
	fmt.Println(err)
	// Output:
	// inserted: r1 is working, 2 of 2 <nil> r2 is empty, 0 of 0 <nil>
	// booted: r1 is degraded, 1 of 2 <nil> r2 is empty, 0 of 0 <nil>
	// carried: r1 is degraded, 1 of 1 <nil> r2 is idle, 1 of 1 <nil>
	// lifecycle: fire rack "r2": scrap by user in There: fsm: refused by a guard: empty: 1 blades are in it
	// lifecycle: create blade "b3": insert by user: lifecycle: fire rack "r3": count by user: lifecycle: not found
}
