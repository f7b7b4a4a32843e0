package crashtest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// note is the table of records about running VMs. The commit that starts a VM writes one.
var note = fsm.Must[struct{}](fsm.Spec[state, event]{
	Name: "note", Initial: "none", Actors: []fsm.Actor{"vm"},
	States: []fsm.State[state]{{Name: "none", Kind: fsm.Absent}, {Name: "written"}},
	Rows: fsm.Rows(
		fsm.Move[state, event]("none", "write", "written").By("vm"),
		fsm.Move[state, event]("written", "write", "written").By("vm"),
		fsm.Move[state, event]("written", "tear", "none").By("vm"),
	),
})

// pair is a process with two VMs that are created and started together.
type pair struct {
	*Process
	vms, notes vms
}

func startPair(ctx context.Context, p *Process) (pair, error) {
	if err := p.Join(ctx, 30*time.Second); err != nil {
		return pair{}, err
	}
	notes := Manage(p, note, nil)
	return pair{Process: p, notes: notes, vms: Manage(p, vm, &lifecycle.Config[event]{
		WorkerActor: "worker", Done: []event{"done"}, Failed: []event{"fail"},
		BeforeCommit: func(ctx context.Context, ch *lifecycle.StoredChange) (*lifecycle.Tx, error) {
			if ch.To.State != "running" {
				return nil, nil
			}
			var tx lifecycle.Tx
			_, err := notes.Get(ctx, ch.To.ID)
			switch {
			case errors.Is(err, lifecycle.ErrNotFound):
				notes.In(&tx).Create(ch.To.ID, "write", "vm", struct{}{}, nil)
			case err != nil:
				return nil, err
			default:
				notes.In(&tx).Fire(ch.To.ID, "write", "vm", nil)
			}
			return &tx, nil
		},
		// An effect of a process that is dead now remains an effect.
		Observe: func(_ context.Context, r lifecycle.StoredRecord) (event, fsm.Actor, error) {
			if p.sim.seen(r.Key, r.Operation) {
				return "done", "worker", nil
			}
			return "late", fsm.Sweeper, nil
		},
	})}, nil
}

// bothRun starts the VMs that do not run, two of them in one commit.
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
	var with lifecycle.Tx
	var others []*lifecycle.TxResult[state, struct{}]
	for _, id := range rest[1:] {
		others = append(others, m.vms.In(&with).Fire(id, "start", "user", nil))
	}
	work := lifecycle.Func(func(ctx context.Context) error {
		if err := lifecycle.TaskOf(ctx).Heartbeat(ctx); err != nil {
			return err
		}
		for _, other := range others {
			rec := other.Record()
			if err := m.Apply(key(rec.ID), rec.Operation); err != nil {
				return err
			}
		}
		return m.Effect(ctx)
	})
	work.With = &with
	ticket, err := m.vms.Do(ctx, rest[0], "start", "user", work, nil)
	if err == nil {
		_, err = ticket.Wait(ctx)
	}
	return err
}

func verbs(_ context.Context, w *Clients[pair]) error {
	if err := w.Insist("alpha", "make both", func(ctx context.Context, m pair) error {
		_, err := m.vms.Get(ctx, "p")
		if errors.Is(err, lifecycle.ErrNotFound) {
			var tx lifecycle.Tx
			m.vms.In(&tx).Create("p", "create", "user", struct{}{}, nil)
			m.vms.In(&tx).Create("q", "create", "user", struct{}{}, nil)
			err = tx.Commit(ctx)
		}
		return err
	}); err != nil {
		return err
	}
	if err := w.Insist("alpha", "the account of the peer", func(ctx context.Context, m pair) error {
		var reports []lifecycle.PeerReport[event]
		for _, id := range []string{"p", "q"} {
			rec, err := m.vms.Get(ctx, id)
			if errors.Is(err, lifecycle.ErrNotFound) { // the sweeper has ended its creation
				rec, err = m.vms.Create(ctx, id, "create", "user", struct{}{}, nil)
			}
			if err != nil {
				return err
			}
			if rec.State != "creating" {
				continue
			}
			if !w.sim.seen(key(id), rec.Operation) {
				if err := w.Apply(key(id), rec.Operation); err != nil {
					return err
				}
			}
			reports = append(reports, lifecycle.PeerReport[event]{ID: id, Operation: rec.Operation, Ended: true, Event: "done", Present: true})
		}
		_, err := lifecycle.Reconcile(ctx, m.vms, "worker", reports, nil)
		return err
	}); err != nil {
		return err
	}
	if err := w.Insist("alpha", "start both", bothRun); err != nil {
		return err
	}
	if err := w.Insist("alpha", "await p", func(ctx context.Context, m pair) error {
		_, err := lifecycle.Await(ctx, m.vms, "p", func(r lifecycle.Record[state, struct{}]) bool { return r.State == "running" })
		return err
	}); err != nil {
		return err
	}
	return w.Stop("alpha")
}

// seen reports whether the outside world has seen an operation.
func (s *simulation) seen(k lifecycle.Key, id lifecycle.OpID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.outside.applied[operation{k, id}] != ""
}

// TestVerbs injects faults into commits of several objects, into changes that BeforeCommit
// adds, into the account of a peer, into heartbeats of work, and into Leave of an owner.
func TestVerbs(t *testing.T) {
	running, written := []string{"running"}, []string{"written"}
	noteKey := func(id string) lifecycle.Key { return lifecycle.Key{Machine: "note", ID: id} }
	h := memoryHarness()
	s := Scenario[pair]{
		Start: startPair, Script: verbs,
		Ends: map[lifecycle.Key][]string{key("p"): running, key("q"): running, noteKey("p"): written, noteKey("q"): written},
	}
	Run(t, h, s)
}
