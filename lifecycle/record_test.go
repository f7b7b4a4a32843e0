package lifecycle_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// TestNumbersNeverRepeat: neither operation ids nor revisions repeat for a key,
// with and without its removal in the store.
func TestNumbersNeverRepeat(t *testing.T) {
	for name, keep := range map[string]int{"remembered": 0, "forgotten": -1} {
		t.Run(name, func(t *testing.T) {
			m, store := vms(t)
			store.KeepRemoved(keep)
			seen := map[lifecycle.Revision]bool{}
			var last lifecycle.OpID
			var sequence uint64
			for range 20 {
				rec := create(t, m, "a", "create", user, size{})
				require.Greater(t, rec.Operation, last)
				for _, e := range []event{"", "done", "touch", "delete", "done"} {
					if e != "" {
						actor := agent
						if e == "delete" {
							actor = user
						}
						rec = fire(t, m, "a", e, actor, nil)
					}
					require.False(t, seen[rec.Revision], "revision %q again", rec.Revision)
					seen[rec.Revision] = true
					require.Greater(t, rec.Sequence, sequence)
					require.GreaterOrEqual(t, rec.Operation, last)
					last, sequence = rec.Operation, rec.Sequence
				}
				require.Equal(t, lifecycle.Stale, report(t, m, "a", last-1, "done", agent, ""))
			}
		})
	}
}

// TestOwner: the owner of an operation stays while the operation goes on, and
// leaves with it.
func TestOwner(t *testing.T) {
	m, store := vms(t)
	plant(t, store, lifecycle.StoredRecord{
		Key: lifecycle.Key{Machine: "vm", ID: "a"}, State: "Updating", Origin: "Ready", Owner: "host-1", Epoch: 7,
	})
	owner := func(rec lifecycle.Record[state, size]) string { return fmt.Sprint(rec.Owner, " ", rec.Epoch) }
	require.Equal(t, "host-1 7", owner(get(t, m, "a")))
	require.Equal(t, "host-1 7", owner(fire(t, m, "a", "progress", agent, nil)))
	require.Equal(t, " 0", owner(fire(t, m, "a", "fail", agent, nil)))
	require.Equal(t, " 0", owner(fire(t, m, "a", "retry", user, nil)))
	require.Equal(t, " 0", owner(get(t, m, "a")))
}

// Enumerations of another package: numbers with names.
type (
	phase   int
	command int
)

func (p phase) String() string   { return [...]string{"Idle", "Running"}[p%2] }
func (s command) String() string { return [...]string{"Start", "Stop"}[s] }

// TestEnums: states and events may be numbers whose names come from String;
// stores, errors and observers see names, callers see values.
func TestEnums(t *testing.T) {
	const (
		idle, running = phase(0), phase(1)
		start, stop   = command(0), command(1)
	)
	var reported []string
	m := lifecycle.Must(fsm.Must[size](fsm.Spec[phase, command]{
		Name: "job", Initial: idle, Actors: []fsm.Actor{user},
		States: []fsm.State[phase]{{Name: idle}, {Name: running, Kind: fsm.Transitional, Manual: "it ends by itself"}},
		Rows:   fsm.Rows(fsm.Move(idle, start, running), fsm.Return(running, stop)),
	}), lifecycle.NewMemoryStore(), &lifecycle.Config[command]{Observer: lifecycle.Observer{
		Reported: func(_ context.Context, r lifecycle.Reported) { reported = append(reported, r.Event, r.State) },
	}})
	rec := add(t, m, "j", user, size{})
	require.Equal(t, idle, rec.State)
	_, err := m.Add(t.Context(), "j", initial(m), user, size{}, nil)
	require.EqualError(t, err, `lifecycle: add job "j" by user in Idle: exists already, Idle at revision "1"`)
	_, err = m.Fire(t.Context(), "j", stop, user, nil)
	require.EqualError(t, err, `lifecycle: fire job "j": Stop by user in Idle: not allowed`)
	rec = fire(t, m, "j", start, user, nil)
	require.Equal(t, fsm.Status[phase]{State: running, Origin: idle}, rec.Status)
	require.Equal(t, "Start", rec.Event)
	require.Equal(t, lifecycle.Applied, report(t, m, "j", 1, stop, user, ""))
	require.Equal(t, []string{"Stop", "Running"}, reported)
	list, err := m.List(t.Context(), lifecycle.Select[phase]{States: []phase{idle}})
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, []string{"Idle", "Running", "lifecycle_test.phase(2)"}, m.Require("j", idle, running, 2).States)
}
