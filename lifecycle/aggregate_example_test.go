package lifecycle_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/lattice"
	"github.com/interlock-go/interlock/lifecycle/tumblebug"
)

// The status of an MCI is the one that most of its VMs have.
func ExampleAggregate() {
	status := lifecycle.MustAggregate(lifecycle.AggregateSpec[tumblebug.State, tumblebug.State]{
		Name: "mci-status", Rule: lifecycle.Dominant, Children: tumblebug.VM,
		Classes: lifecycle.Each(tumblebug.Failed, tumblebug.Suspended, tumblebug.Running, tumblebug.Terminated,
			tumblebug.Creating, tumblebug.Suspending, tumblebug.Resuming, tumblebug.Rebooting,
			tumblebug.Terminating, tumblebug.Undefined),
		Empty: tumblebug.Undefined,
	})
	var vms lifecycle.Counts
	_ = vms.Expect(5)
	for range 3 {
		_ = status.Enter(&vms, tumblebug.Creating)
		_ = status.Move(&vms, tumblebug.Creating, tumblebug.Running)
	}
	mci, _ := status.Of(&vms)
	fmt.Println(mci.State, mci.Count, "of", mci.Total, "partial:", mci.Partial)

	fmt.Println(status.Leave(&vms, tumblebug.Suspended))
	for class, n := range status.ByClass(&vms) {
		if n > 0 {
			fmt.Println(class, n)
		}
	}
	// Output:
	// Running 3 of 5 partial: true
	// lifecycle: children are miscounted: aggregate mci-status: a child left Suspended, and none is counted there
	// Running 3
}

// The state of a system is the worst of its services' states; several of them
// count as one.
func ExampleAggregate_Compute() {
	type states = []lattice.ServiceState
	system, err := lifecycle.NewAggregate(lifecycle.AggregateSpec[lattice.ServiceState, lattice.State]{
		Name: "system-state", Rule: lifecycle.Priority,
		Classes: []lifecycle.Class[lattice.ServiceState, lattice.State]{
			{State: lattice.Degraded, States: states{lattice.ServiceDegraded, lattice.ServiceFailed}},
			{State: lattice.Updating, States: states{lattice.ServiceUpdating, lattice.ServicePending, lattice.ServiceDeleting}},
			{State: lattice.Scaling, States: states{lattice.ServiceScaling}},
			{State: lattice.Stable, States: states{lattice.ServiceStable}},
		},
		Empty: lattice.Stable,
	})
	fmt.Println(err)
	for _, services := range []states{
		{},
		{lattice.ServiceStable, lattice.ServiceScaling},
		{lattice.ServiceStable, lattice.ServiceScaling, lattice.ServicePending},
		{lattice.ServiceStable, lattice.ServiceFailed, lattice.ServicePending},
	} {
		now, _ := system.Compute(slices.Values(services))
		fmt.Println(now.State)
	}
	// Output:
	// <nil>
	// stable
	// scaling
	// updating
	// degraded
}

// A rule that forgets a state of the children's machine is refused.
func ExampleNewAggregate() {
	_, err := lifecycle.NewAggregate(lifecycle.AggregateSpec[tumblebug.State, string]{
		Name: "health", Rule: lifecycle.Priority, Children: tumblebug.VM,
		Classes: []lifecycle.Class[tumblebug.State, string]{
			{State: "bad", States: []tumblebug.State{tumblebug.Failed, tumblebug.Undefined}},
			{State: "busy", States: []tumblebug.State{
				tumblebug.Creating, tumblebug.Suspending, tumblebug.Resuming, tumblebug.Rebooting,
			}},
			{State: "good", States: []tumblebug.State{tumblebug.Running, tumblebug.Suspended, "Asleep"}},
		},
		Uncounted: []tumblebug.State{tumblebug.Terminated},
		Empty:     "good",
	})
	fmt.Println(err)
	// Output:
	// lifecycle: invalid rule health:
	// 	class good: machine vm has no state Asleep
	// 	state Terminating of machine vm is in no class
}

// Counts are part of the parent's payload, and change with its state in one
// commit, or not at all.
func ExampleCounts() {
	type mciSpec struct {
		Name string
		VMs  lifecycle.Counts
	}
	var (
		ctx    = context.Background()
		status = lifecycle.MustAggregate(mciStatus())
		mcis   = lifecycle.New(fsm.Must[mciSpec](tumblebug.MCITable()), lifecycle.NewMemoryStore(), nil)
	)
	_, _ = mcis.Add(ctx, "m1", tumblebug.User, mciSpec{Name: "shop"})
	_, _ = mcis.Fire(ctx, "m1", tumblebug.Succeed, tumblebug.Tumblebug, nil)
	mci, err := mcis.Fire(ctx, "m1", tumblebug.Provision, tumblebug.Tumblebug, &lifecycle.Change[mciSpec]{
		Edit: func(m *mciSpec) error {
			return errors.Join(m.VMs.Expect(3), status.Enter(&m.VMs, tumblebug.Creating), status.Enter(&m.VMs, tumblebug.Running))
		},
	})
	fmt.Println(mci.State, err)
	data, _ := json.Marshal(mci.Payload)
	fmt.Println(string(data))

	_, err = mcis.Fire(ctx, "m1", tumblebug.Succeed, tumblebug.Aggregate, &lifecycle.Change[mciSpec]{
		Edit: func(m *mciSpec) error { return status.Move(&m.VMs, tumblebug.Suspended, tumblebug.Running) },
	})
	fmt.Println(errors.Is(err, lifecycle.ErrMiscount))
	mci, _ = mcis.Get(ctx, "m1")
	fmt.Println(mci.State, mci.Payload.VMs.Len(), "of", mci.Payload.VMs.Expected())
	// Output:
	// Creating <nil>
	// {"Name":"shop","VMs":{"states":{"Creating":1,"Running":1},"expected":3}}
	// true
	// Creating 2 of 3
}

// services is a machine of the services of a system, for this example.
var services = fsm.Must[struct{}](fsm.Spec[lattice.ServiceState, string]{
	Name: "service", Initial: lattice.ServicePending, Actors: []fsm.Actor{"agent"},
	States: []fsm.State[lattice.ServiceState]{
		{Name: lattice.ServicePending, Kind: fsm.Transitional},
		{Name: lattice.ServiceStable},
		{Name: lattice.ServiceFailed, Kind: fsm.Failed},
	},
	Rows: fsm.Rows(
		fsm.Move(lattice.ServicePending, "up", lattice.ServiceStable).By("agent"),
		fsm.Move(lattice.ServicePending, "late", lattice.ServiceFailed).After(time.Minute),
		fsm.Move(lattice.ServiceStable, "down", lattice.ServiceFailed).By("agent"),
		fsm.Move(lattice.ServiceFailed, "up", lattice.ServiceStable).By("agent"),
	),
})

// A system follows its services: what they tell is applied once, in whatever
// order it comes, and what is lost is found by counting anew.
func ExampleRoster() {
	ctx := context.Background()
	store := lifecycle.NewMemoryStore()
	systems := lifecycle.New(lattice.System, store, nil)
	_, _ = systems.Create(ctx, "shop", lattice.Create, lattice.User, struct{}{})
	_, _ = systems.Fire(ctx, "shop", lattice.Initialized, lattice.Backend, nil)

	roster := lifecycle.NewRoster(lifecycle.MustAggregate(systemState()))
	events := map[lattice.State]lattice.Event{
		lattice.Stable: lattice.ServicesStable, lattice.Updating: lattice.ServicesUpdating,
		lattice.Scaling: lattice.ServicesScaling, lattice.Degraded: lattice.ServicesDegraded,
	}
	follow := func(now lifecycle.Aggregated[lattice.State]) error {
		system, err := systems.Get(ctx, "shop")
		if err != nil || system.State == now.State {
			return err
		}
		system, err = systems.Fire(ctx, "shop", events[now.State], lattice.Aggregator, nil)
		fmt.Println("the system is", system.State, now.Count, "of", now.Total)
		return err
	}

	var rows []lifecycle.HistoryRow // of all services
	services := lifecycle.New(services, store, &lifecycle.Config[string]{
		Observer: lifecycle.Observer{Changed: func(row lifecycle.HistoryRow) { rows = append(rows, row) }},
	})
	for _, id := range []string{"web", "db"} {
		_, _ = services.Add(ctx, id, "agent", struct{}{})
		_, _ = services.Fire(ctx, id, "up", "agent", nil)
	}
	_, _ = services.Fire(ctx, "db", "down", "agent", nil)

	lost := rows[len(rows)-1]
	for _, row := range slices.Backward(rows[:len(rows)-1]) { // the newest first
		for range 2 { // and each of them twice
			news, err := roster.Apply(row)
			fmt.Println(row.ID, row.To, "news:", news, err)
			_ = roster.Settle(follow)
		}
	}

	_ = lifecycle.Recount(roster, services.All(ctx, lifecycle.Select[lattice.ServiceState]{}))
	_ = roster.Settle(follow)
	news, _ := roster.Apply(lost)
	fmt.Println(lost.ID, lost.To, "news:", news)
	// Output:
	// db stable news: true <nil>
	// db stable news: false <nil>
	// db pending news: false <nil>
	// db pending news: false <nil>
	// web stable news: true <nil>
	// web stable news: false <nil>
	// web pending news: false <nil>
	// web pending news: false <nil>
	// the system is degraded 1 of 2
	// db failed news: false
}
