package crashtest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// note is what is kept about a VM that runs: it is written in the same commit.
var note = fsm.Must[struct{}](fsm.Spec[state, event]{
	Name: "note", Initial: "none", Actors: []fsm.Actor{"vm"},
	States: []fsm.State[state]{{Name: "none", Kind: fsm.Absent}, {Name: "written"}},
	Rows: fsm.Rows(
		fsm.Move[state, event]("none", "write", "written").By("vm"),
		fsm.Move[state, event]("written", "write", "written").By("vm"),
		fsm.Move[state, event]("written", "tear", "none").By("vm"),
	),
})

// pair is two VMs that are made and started together.
type pair struct{ vms, notes vms }

// seen reports whether the world outside has seen an operation.
func (p *Process) seen(k lifecycle.Key, operation lifecycle.OpID) bool {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	return p.w.outside.count[effectKey{k, operation}] > 0
}

func startPair(ctx context.Context, p *Process) (pair, error) {
	if err := p.Join(ctx, 30*time.Second); err != nil {
		return pair{}, err
	}
	notes := Manage(p, note, nil)
	return pair{notes: notes, vms: Manage(p, vm, &lifecycle.Config[event]{
		Worker: "worker", Done: []event{"done"}, Failed: []event{"fail"},
		Handlers: map[string]lifecycle.Handler{"work": func(ctx context.Context, _ []byte) error {
			task := lifecycle.TaskOf(ctx)
			if err := task.Beat(ctx); err != nil {
				return err
			}
			for _, with := range task.With {
				if err := p.Apply(with.Key, with.Operation); err != nil {
					return err
				}
			}
			return p.Effect(ctx)
		}},
		Along: func(ctx context.Context, ch *lifecycle.StoredChange) (along lifecycle.Along, err error) {
			if ch.To.State != "running" {
				return along, nil
			}
			_, err = notes.Get(ctx, ch.To.ID)
			switch {
			case errors.Is(err, lifecycle.ErrNotFound):
				along.Parts = append(along.Parts, notes.Creating(ch.To.ID, "write", "vm", struct{}{}, nil))
			case err != nil:
				return along, err
			default:
				along.Parts = append(along.Parts, notes.Firing(ch.To.ID, "write", "vm", nil))
			}
			return along, nil
		},
		// What was done outside by who is dead was done.
		Observe: func(_ context.Context, r lifecycle.StoredRecord) (event, fsm.Actor, error) {
			if p.seen(r.Key, r.Operation) {
				return "done", "worker", nil
			}
			return "late", fsm.Sweeper, nil
		},
	})}, nil
}

// bothRun starts what does not run, together where both do not.
func bothRun(ctx context.Context, m pair) error {
	var rest []string
	for _, id := range []string{"p", "q"} {
		rec, err := m.vms.Get(ctx, id)
		switch {
		case err != nil:
			return err
		case rec.State == "stopped":
			rest = append(rest, id)
		case rec.State != "running":
			return fmt.Errorf("%s is %s", id, rec.State)
		}
	}
	if len(rest) == 0 {
		return nil
	}
	var parts []lifecycle.AnyPart
	for _, id := range rest[1:] {
		parts = append(parts, m.vms.Firing(id, "start", "user", nil))
	}
	h, err := m.vms.DoTogether(ctx, rest[0], "start", "user", lifecycle.Named("work", nil), nil, parts...)
	if err == nil {
		_, err = h.Wait(ctx)
	}
	return err
}

func verbs(_ context.Context, w *World[pair]) error {
	if err := w.Insist("alpha", "make both", func(ctx context.Context, m pair) error {
		_, err := m.vms.Get(ctx, "p")
		if errors.Is(err, lifecycle.ErrNotFound) {
			err = lifecycle.Together(ctx,
				m.vms.Creating("p", "create", "user", struct{}{}, nil), m.vms.Creating("q", "create", "user", struct{}{}, nil))
		}
		return err
	}); err != nil {
		return err
	}
	if err := w.Insist("alpha", "the account of the peer", func(ctx context.Context, m pair) error {
		var said []lifecycle.Said[event]
		for _, id := range []string{"p", "q"} {
			rec, err := m.vms.Get(ctx, id)
			if errors.Is(err, lifecycle.ErrNotFound) { // it was late: make it anew
				rec, err = m.vms.Create(ctx, id, "create", "user", struct{}{})
			}
			if err != nil {
				return err
			}
			if rec.State != "creating" {
				continue
			}
			if !w.w.seen(key(id), rec.Operation) {
				if err := w.Apply(key(id), rec.Operation); err != nil {
					return err
				}
			}
			said = append(said, lifecycle.Said[event]{ID: id, Operation: rec.Operation, Ended: true, Event: "done", Present: true})
		}
		_, err := m.vms.Reconcile(ctx, "worker", said, nil)
		return err
	}); err != nil {
		return err
	}
	if err := w.Insist("alpha", "start both", bothRun); err != nil {
		return err
	}
	if err := w.Insist("alpha", "await p", func(ctx context.Context, m pair) error {
		_, err := m.vms.Await(ctx, "p", func(r lifecycle.Record[state, struct{}]) bool { return r.State == "running" })
		return err
	}); err != nil {
		return err
	}
	return w.Stop("alpha")
}

func (w *world) seen(k lifecycle.Key, operation lifecycle.OpID) bool {
	return (&Process{w: w}).seen(k, operation)
}

// The writes of several objects at once, those that go along, an account of a
// peer, beats of work and an owner that leaves are hit like all others.
func TestVerbs(t *testing.T) {
	running, written := []string{"running"}, []string{"written"}
	noteKey := func(id string) lifecycle.Key { return lifecycle.Key{Machine: "note", ID: id} }
	h := memoryHarness()
	s := Scenario[pair]{
		Start: startPair, Script: verbs,
		Ends: map[lifecycle.Key][]string{key("p"): running, key("q"): running, noteKey("p"): written, noteKey("q"): written},
	}
	Run(t, h, s)
	h.Twice, h.Kinds = true, []Kind{DeathAfter, NoAnswer}
	c := Run(t, h, s)
	require.Greater(t, c.Covered, 10*c.Missed)
}
