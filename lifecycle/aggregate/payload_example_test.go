package aggregate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/aggregate"
)

type (
	state string
	event string
)

const (
	user  fsm.Actor = "user"
	agent fsm.Actor = "agent"
)

// A blade is in a rack.
type (
	bladeSpec struct{ Rack string }
	rackSpec  struct{ Blades map[state]int } // numbers of blades
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
			If(fsm.When("empty", func(_ context.Context, _, r *rackSpec) error {
				health, err := rackHealth.Of(r.Blades)
				if err == nil && health.Total > 0 {
					err = fmt.Errorf("it has %d blades", health.Total)
				}
				return err
			})),
	),
})

var rackHealth = aggregate.Must(aggregate.Spec[state, string]{
	Name: "rack-health", Rule: aggregate.Priority, Children: bladeMachine,
	Classes: []aggregate.Class[state, string]{
		{State: "degraded", States: []state{"Failed"}},
		{State: "working", States: []state{"Booting", "Busy"}},
		{State: "idle", States: []state{"Up"}},
	},
	Empty: "empty",
})

var errMiscount = errors.New("a blade left a state in which none was counted")

// newRacks returns managers of blades and of racks. The commit of a blade changes
// the counts of its rack, whichever verb moves the blade.
func newRacks(store lifecycle.Store) (*lifecycle.Manager[state, event, bladeSpec], *lifecycle.Manager[state, event, rackSpec]) {
	racks := lifecycle.Must(rackMachine, store, nil)
	count := func(tx *lifecycle.Tx, rack string, from, to state) {
		racks.In(tx).Fire(rack, "count", user, &lifecycle.Change[rackSpec]{
			Edit: func(r *rackSpec) error {
				if from != "None" && r.Blades[from] == 0 {
					return errMiscount
				}
				if r.Blades == nil {
					r.Blades = make(map[state]int)
				}
				r.Blades[from]--
				r.Blades[to]++
				return nil
			},
		})
	}
	var blades *lifecycle.Manager[state, event, bladeSpec]
	blades = lifecycle.Must(bladeMachine, store, &lifecycle.Config[event]{
		WorkerActor: agent, Done: []event{"done"}, Failed: []event{"fail"},
		BeforeCommit: func(ctx context.Context, ch *lifecycle.StoredChange) (*lifecycle.Tx, error) {
			var spec bladeSpec
			if err := json.Unmarshal(ch.To.Payload, &spec); err != nil {
				return nil, err
			}
			var tx lifecycle.Tx
			from, to := state(ch.From), state(ch.To.State)
			if ch.From == "" {
				count(&tx, spec.Rack, "None", to)
				return &tx, nil
			}
			before, err := blades.Get(ctx, ch.To.ID)
			if err != nil {
				return nil, err
			}
			if before.Payload.Rack == spec.Rack {
				count(&tx, spec.Rack, from, to)
			} else {
				count(&tx, before.Payload.Rack, from, "None")
				count(&tx, spec.Rack, "None", to)
			}
			return &tx, nil
		},
	})
	return blades, racks
}

// The counts are in the payload of the rack, and are always correct: a blade that
// moves, or is carried to another rack, changes them in its own commit.
func ExampleAggregate_payload() {
	ctx := context.Background()
	blades, racks := newRacks(lifecycle.NewMemoryStore())
	show := func(what string) {
		fmt.Print(what, ":")
		for rack, err := range racks.All(ctx, lifecycle.Select[state]{}) {
			health, _ := rackHealth.Of(rack.Payload.Blades)
			fmt.Printf(" %s is %s, %d of %d %v", rack.ID, health.State, health.Count, health.Total, err)
		}
		fmt.Println()
	}
	_, _ = racks.Add(ctx, "r1", "There", user, rackSpec{}, nil)
	_, _ = racks.Add(ctx, "r2", "There", user, rackSpec{}, nil)
	for _, id := range []string{"b1", "b2"} {
		_, _ = blades.Create(ctx, id, "insert", user, bladeSpec{Rack: "r1"}, nil)
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
	_, err = blades.Create(ctx, "b3", "insert", user, bladeSpec{Rack: "r3"}, nil)
	fmt.Println(err)
	// Output:
	// inserted: r1 is working, 2 of 2 <nil> r2 is empty, 0 of 0 <nil>
	// booted: r1 is degraded, 1 of 2 <nil> r2 is empty, 0 of 0 <nil>
	// carried: r1 is degraded, 1 of 1 <nil> r2 is idle, 1 of 1 <nil>
	// lifecycle: fire rack "r2": scrap by user in There: refused by a guard: empty: it has 1 blades
	// lifecycle: create blade "b3": insert by user: fire rack "r3": count by user: not found
}
