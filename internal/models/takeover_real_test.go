package models

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// TestTakeoverAsItRuns takes random steps of the model with real managers, and compares the
// records. The store loses no commits.
func TestTakeoverAsItRuns(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		script := rapid.SliceOfN(rapid.IntRange(0, 999), 1, 20).Draw(rt, "script")
		wrong := ""
		synctest.Test(t, func(t *testing.T) { wrong = takeoverBoth(t, script) })
		if wrong != "" {
			rt.Fatal(wrong)
		}
	})
}

type jobManager = lifecycle.Manager[string, string, struct{}]

// realTakeover are the processes of the model as managers.
type realTakeover struct {
	store    lifecycle.Store
	outside  *jobManager         // receives the reports of the agent
	expires  lifecycle.Sweeper   // finds dead owners, and leaves the object alone
	owners   [2]*lifecycle.Owner // nil: dead
	managers [2]*jobManager
	results  map[string]chan error // by job
}

const ownerTTL = time.Second

func newRealTakeover(t *testing.T) *realTakeover {
	r := &realTakeover{store: lifecycle.NewMemoryStore(), results: map[string]chan error{}}
	r.outside = lifecycle.Must(jobMachine, r.store, nil)
	r.expires = lifecycle.Must(edgecloud.ClusterInst, r.store, nil)
	_, err := r.outside.Add(t.Context(), "x", "ready", "user", struct{}{}, nil)
	require.NoError(t, err)
	for p := range processes {
		r.join(t, p)
	}
	return r
}

// join makes a process with a new epoch.
func (r *realTakeover) join(t *testing.T, p int) {
	owner, err := lifecycle.Join(t.Context(), r.store, processes[p], ownerTTL)
	require.NoError(t, err)
	r.owners[p] = owner
	r.managers[p] = lifecycle.Must(jobMachine, r.store, &lifecycle.Config[string]{
		Owner: owner, WorkerActor: "worker", Done: []string{"done"}, Failed: []string{"failed"},
		Handlers: map[string]lifecycle.Handler{"work": func(ctx context.Context, _ []byte) error {
			task := lifecycle.TaskOf(ctx)
			result := make(chan error)
			r.results[job{task.Owner, task.Epoch, uint64(task.Operation), 0}.String()] = result
			return <-result // it ignores its context, as slow work does
		}},
	})
}

// dies sends no heartbeats of a process until a sweep has declared it dead.
func (r *realTakeover) dies(t *testing.T, p int) {
	r.owners[p] = nil
	for range 5 {
		time.Sleep(ownerTTL / 3)
		for _, o := range r.owners {
			if o != nil {
				require.NoError(t, o.Heartbeat(t.Context()))
			}
		}
		_, err := r.expires.Sweep(t.Context())
		require.NoError(t, err)
	}
}

// takes takes the step of a label.
func (r *realTakeover) takes(t *testing.T, s *takeover, label string) error {
	for p, name := range processes {
		switch label {
		case name + " joins":
			r.join(t, p)
			return nil
		case name + " dies", name + " is slow, and declared dead":
			r.dies(t, p)
			return nil
		case name + " starts work":
			_, err := r.managers[p].Do(t.Context(), "x", "start", "user", lifecycle.Named("work", nil), nil)
			return err
		case name + " sweeps":
			_, err := r.managers[p].Sweep(t.Context())
			return err
		}
	}
	for _, j := range s.Jobs {
		switch label {
		case j.String() + ": done", j.String() + ": refused by the store":
			r.results[j.String()] <- nil
			return nil
		case j.String() + ": failed":
			r.results[j.String()] <- errors.New("failed")
			return nil
		}
	}
	if s.Report != (job{}) {
		_, err := r.outside.Report(t.Context(), "x", lifecycle.OpID(s.Report.Operation), "failed", "agent", nil)
		return err
	}
	return nil // the agent sends its report
}

// takeoverBoth returns what differs.
func takeoverBoth(t *testing.T, script []int) string {
	m := Takeover{Operations: 3, Deaths: 2, Reports: 2, Checked: true}.Model(nil)
	s, r := m.Initial[0], newRealTakeover(t)
	defer func() {
		for _, result := range r.results {
			close(result)
		}
	}()
	var taken []string
	for _, choice := range script {
		var labels []string
		var states []takeover
		m.Next(s, func(label string, _ bool, next takeover) {
			labels, states = append(labels, label), append(states, next)
		})
		if len(labels) == 0 {
			break
		}
		choice %= len(labels)
		taken = append(taken, labels[choice])
		if err := r.takes(t, &s, labels[choice]); err != nil {
			return fmt.Sprintf("after %q: %v", taken, err)
		}
		synctest.Wait()
		s = states[choice]
		rec, err := r.outside.Get(t.Context(), "x")
		require.NoError(t, err)
		type record struct {
			State            string
			Operation, Epoch uint64
			Owner            string
		}
		runs := record{rec.State, uint64(rec.Operation), rec.Epoch, rec.Owner}
		models := record{jobs.States[s.Now.State].Name, s.Now.Operation, s.Now.Epoch, s.Now.Owner}
		if runs != models {
			return fmt.Sprintf("after %q: %+v runs, the model has %+v", taken, runs, models)
		}
	}
	return ""
}
