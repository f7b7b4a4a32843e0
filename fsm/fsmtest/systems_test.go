package fsmtest_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/fsmtest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/blazar"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
	"github.com/interlock-go/interlock/lifecycle/lattice"
	"github.com/interlock-go/interlock/lifecycle/ovc"
	"github.com/interlock-go/interlock/lifecycle/tumblebug"
)

// managed is a driver for a manager with a store in memory and scripted guards.
type managed[S, E comparable, T any] struct {
	machine *fsm.Machine[S, E, T]
	m       *lifecycle.Manager[S, E, T]
	absent  string // name of the state in which there is no object; empty: none
	id      int
}

func manage[S, E comparable, T any](m *fsm.Machine[S, E, T]) *managed[S, E, T] {
	machine := fsmtest.ScriptedGuards(m)
	d := &managed[S, E, T]{machine: machine, m: lifecycle.Must(machine, lifecycle.NewMemoryStore(), nil)}
	states := m.Table().States
	if i := slices.IndexFunc(states, func(s fsm.TableState) bool { return s.Kind == fsm.Absent }); i >= 0 {
		d.absent = states[i].Name
	}
	return d
}

func (d *managed[S, E, T]) name() string { return fmt.Sprint("object ", d.id) }

func (d *managed[S, E, T]) Reset(t testing.TB, _ string) string {
	d.id++
	table := d.machine.Table()
	if table.States[table.Initial].Kind != fsm.Absent {
		var payload T
		_, err := d.m.Add(t.Context(), d.name(), d.machine.StateAt(table.Initial), table.Actors[0], payload, nil)
		require.NoError(t, err)
	}
	return d.state(t)
}

func (d *managed[S, E, T]) state(t testing.TB) string {
	rec, err := d.m.Get(t.Context(), d.name())
	if errors.Is(err, lifecycle.ErrNotFound) {
		return d.absent
	}
	require.NoError(t, err)
	return d.machine.Table().States[d.machine.StateIndex(rec.State)].Name
}

func (d *managed[S, E, T]) Apply(t testing.TB, r fsmtest.Request) (string, error) {
	i, ok := d.machine.Table().EventIndex(r.Event)
	require.True(t, ok)
	if r.Actor == fsm.Sweeper {
		return d.sweep(t, r)
	}
	e, ctx := d.machine.EventAt(i), r.Context(t.Context())
	_, err := d.m.Fire(ctx, d.name(), e, r.Actor, &lifecycle.Change[T]{Force: r.Force})
	if errors.Is(err, lifecycle.ErrNotFound) && d.absent != "" {
		var payload T // no row creates an object by force only
		_, err = d.m.Create(ctx, d.name(), e, r.Actor, payload, nil)
	}
	return d.state(t), err
}

// sweep makes the request by a sweep after the deadline. It cannot make a request for
// which the table has no deadline row: no caller acts as the sweeper.
func (d *managed[S, E, T]) sweep(t testing.TB, r fsmtest.Request) (string, error) {
	rec, err := d.m.Get(t.Context(), d.name())
	if err != nil {
		return d.state(t), fsmtest.ErrUnsupported
	}
	table := d.machine.Table()
	_, row := table.Timeout(d.machine.StateIndex(rec.State), d.machine.StateIndex(rec.Origin))
	if row < 0 || table.Events[table.Rows[row].Event] != r.Event || table.Rows[row].Forced != r.Force {
		return d.state(t), fsmtest.ErrUnsupported
	}
	time.Sleep(time.Until(rec.Deadline) + 1) // virtual time
	results, err := d.m.Sweep(r.Context(t.Context()))
	require.NoError(t, err)
	for _, result := range results {
		if result.ID == d.name() {
			return d.state(t), result.Err
		}
	}
	return d.state(t), lifecycle.ErrConflict // another sweep was faster
}

// toured is a machine of one of the systems.
type toured struct {
	table, watched    *fsm.Table
	instance, manager func() fsmtest.Driver
}

func tours[S, E comparable, T any](m *fsm.Machine[S, E, T]) toured {
	watched, _ := fsmtest.Watch(m, nil)
	return toured{
		m.Table(), watched.Table(), func() fsmtest.Driver { return fsmtest.Drive(m, nil) }, func() fsmtest.Driver { return manage(m) },
	}
}

// systems are the machines of the five systems.
func systems() []toured {
	list := []toured{
		tours(edgecloud.ClusterInst), tours(edgecloud.AppInst), tours(edgecloud.CloudletCreate), tours(edgecloud.CloudletUpgrade),
		tours(blazar.Lease), tours(blazar.Reservation), tours(blazar.Event),
		tours(lattice.System), tours(lattice.Deploy), tours(lattice.Teardown), tours(lattice.Service),
		tours(tumblebug.VM), tours(tumblebug.MCI),
	}
	for kind := range ovc.Kinds() {
		list = append(list, tours(kind.Machine()))
	}
	return list
}

// Every machine of the five systems takes every row and refuses everything else, as
// an instance and under a manager. Every race has one winner.
func TestToursOfTheSystems(t *testing.T) {
	for _, s := range systems() {
		t.Run(s.table.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fsmtest.Tour(t, s.table, s.instance(), nil)
				fsmtest.Tour(t, s.table, s.manager(), nil)
				fsmtest.Race(t, s.table, s.instance())
				fsmtest.Race(t, s.table, s.manager())
			})
		})
	}
}

// Watch returns a machine with the same table.
func TestWatchedSystems(t *testing.T) {
	for _, s := range systems() {
		require.Same(t, s.table, s.watched)
	}
}
