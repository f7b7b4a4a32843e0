// Lattice runs three systems of Lattice: deploys of separate and of conflicting paths, a
// process that stalls while the next one continues, a teardown, and the deletion of a
// system during a deploy.
//
// It prints every outcome. It fails if a record ends in a wrong state, or if a lock is
// left.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/lattice"
	"github.com/interlock-go/interlock/lock"
)

func main() {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "lattice:", err)
		os.Exit(1)
	}
}

// run performs all steps on one store.
func run(ctx context.Context, out io.Writer) error {
	store := lifecycle.NewMemoryStore()
	first, err := start(ctx, out, store, "build shop/d1", "deploy shop/d2")
	if err != nil {
		return err
	}
	defer func() { _ = first.Close(ctx) }() // takeOver closes it if all steps succeed
	if err := errors.Join(first.systems(ctx), first.deploys(ctx)); err != nil {
		return err
	}
	fmt.Fprintln(out, "the process stalls; the next process acquires its locks and continues its deploys")
	second, err := start(ctx, out, store, "deploy shop/d1", "deploy shop/d2", "deploy bank/d2", "teardown shop/t2")
	if err != nil {
		return err
	}
	if err := errors.Join(second.takeOver(ctx, first), second.teardown(ctx), second.deletion(ctx)); err != nil {
		return err
	}
	if err := verify(ctx, store, second); err != nil {
		return err
	}
	fmt.Fprintln(out, "all records are in the expected states, and no lock is left")
	return second.Close(ctx)
}

// systems creates three systems, one of them with an invalid definition.
func (p *process) systems(ctx context.Context) error {
	p.printf("create three systems")
	for _, id := range []lattice.SystemID{"shop", "bank", "park"} {
		t, err := p.CreateSystem(ctx, id, nil)
		if err != nil {
			return err
		}
		rec, _ := t.Wait(ctx) // the record has the reason of a failure
		p.printf("  %s: %s%s", id, rec.State, suffix(rec.Reason))
	}
	return p.remove(ctx, "park")
}

func (p *process) remove(ctx context.Context, id lattice.SystemID) error {
	t, err := p.DeleteSystem(ctx, id)
	if err == nil {
		_, err = t.Wait(ctx)
	}
	p.printf("  %s: deleted", id)
	return err
}

// deploys runs two deploys of separate paths. All conflicting actions are refused.
func (p *process) deploys(ctx context.Context) error {
	p.printf("two deploys run at once; conflicting actions fail")
	return errors.Join(
		p.begin(ctx, "shop", "d1", "/web/cart"),
		p.begin(ctx, "shop", "d2", "/web/search"),
		p.await(ctx, "build shop/d1", "deploy shop/d2"),
		p.holders(ctx, "shop"),
		p.deploy(ctx, "shop", "d3", "/web"),
		p.deploy(ctx, "shop", "d4", "/web/cart/buttons"),
		p.tearDown(ctx, "shop", "t1"),
		p.deploy(ctx, "bank", "d1", "/"),
	)
}

// takeOver ends the deploys that the first process has started.
func (p *process) takeOver(ctx context.Context, first *process) error {
	err := errors.Join(p.holders(ctx, "shop"), p.deploy(ctx, "shop", "d5", "/web"))
	p.printf("the first process continues, and its outcome of d2 is refused")
	if err := errors.Join(err, first.answer(ctx, "deploy shop/d2", nil)); err != nil {
		return err
	}
	_, stale := first.Sweep(ctx)
	p.printf("  %d: %v", lifecycle.HTTPStatus(stale), stale)
	rec, err := p.Deploys().Get(ctx, "shop/d2")
	p.printf("  deploy d2 of shop: %s, %s", rec.State, rec.Payload.Attributes)
	return errors.Join(
		err,
		first.Close(ctx),
		p.answer(ctx, "deploy shop/d2", nil),
		p.wait(ctx, "shop", "d2"),
		p.answer(ctx, "deploy shop/d1", errors.New("the cart does not start")),
		p.wait(ctx, "shop", "d1"),
	)
}

// teardown runs alone.
func (p *process) teardown(ctx context.Context) error {
	p.printf("a teardown runs alone")
	_, err := p.Teardown(ctx, "shop", "t2", nil)
	err = errors.Join(
		err,
		p.await(ctx, "teardown shop/t2"),
		p.deploy(ctx, "shop", "d6", "/db"),
		p.tearDown(ctx, "shop", "t3"),
	)
	return errors.Join(
		err,
		p.answer(ctx, "teardown shop/t2", nil),
		p.waitTeardown(ctx, "shop", "t2"),
		p.deploy(ctx, "shop", "d7", "/db"),
	)
}

// deletion deletes a system during a deploy.
func (p *process) deletion(ctx context.Context) error {
	p.printf("delete a system during a deploy")
	return errors.Join(
		p.begin(ctx, "bank", "d2", "/ledger"),
		p.await(ctx, "deploy bank/d2"),
		p.remove(ctx, "bank"),
		p.wait(ctx, "bank", "d2"),
	)
}

func (p *process) begin(ctx context.Context, system lattice.SystemID, id lattice.DeployID, path string) error {
	definition := json.RawMessage(fmt.Sprintf(`{"definition":%q}`, id))
	_, err := p.Deploy(ctx, system, id, lock.MustParse(path), definition)
	return err
}

func (p *process) wait(ctx context.Context, system lattice.SystemID, id lattice.DeployID) error {
	rec, err := p.WaitDeploy(ctx, system, id)
	path := strings.TrimSuffix(rec.Payload.Path.String(), "/")
	p.printf("  deploy %s of %s%s: %s%s", id, system, path, rec.State, suffix(rec.Reason))
	return err
}

// deploy deploys and waits for the outcome.
func (p *process) deploy(ctx context.Context, system lattice.SystemID, id lattice.DeployID, path string) error {
	if err := p.begin(ctx, system, id, path); err != nil {
		return err
	}
	return p.wait(ctx, system, id)
}

func (p *process) waitTeardown(ctx context.Context, system lattice.SystemID, id lattice.TeardownID) error {
	rec, err := p.WaitTeardown(ctx, system, id)
	p.printf("  teardown %s of %s: %s%s", id, system, rec.State, suffix(rec.Reason))
	return err
}

func (p *process) tearDown(ctx context.Context, system lattice.SystemID, id lattice.TeardownID) error {
	if _, err := p.Teardown(ctx, system, id, nil); err != nil {
		return err
	}
	return p.waitTeardown(ctx, system, id)
}

// holders prints the locks of a system.
func (p *process) holders(ctx context.Context, system lattice.SystemID) error {
	holders, err := p.Actions().Holders(ctx, system, lock.Root())
	for _, h := range holders {
		p.printf("  %s holds %v of %s", h.Owner, h.Path, system)
	}
	return err
}

func suffix(reason string) string {
	if reason == "" {
		return ""
	}
	return ", " + reason
}

// ends are the states that all records must end in.
var ends = map[string]string{
	"lattice-system shop": "stable",

	"lattice-deploy shop/d1": "failed", "lattice-deploy shop/d2": "succeeded", "lattice-deploy shop/d3": "failed",
	"lattice-deploy shop/d4": "failed", "lattice-deploy shop/d5": "failed", "lattice-deploy shop/d6": "failed",
	"lattice-deploy shop/d7": "succeeded", "lattice-deploy bank/d1": "succeeded", "lattice-deploy bank/d2": "failed",

	"lattice-teardown shop/t1": "failed", "lattice-teardown shop/t2": "succeeded", "lattice-teardown shop/t3": "failed",
}

// verify returns an error if a record is in a wrong state, or a lock is left.
func verify(ctx context.Context, store lifecycle.Store, p *process) error {
	found := 0
	for _, machine := range []string{"lattice-system", "lattice-service", "lattice-deploy", "lattice-teardown"} {
		records, err := store.List(ctx, lifecycle.Query{Machine: machine, Limit: lifecycle.MaxPage})
		if err != nil {
			return err
		}
		for _, r := range records {
			found++
			if want := ends[machine+" "+r.ID]; r.State != want {
				return fmt.Errorf("%s %s: state is %s, want %q", machine, r.ID, r.State, want)
			}
		}
	}
	if found != len(ends) {
		return fmt.Errorf("%d records exist, want %d", found, len(ends))
	}
	for system := range p.Actions().Systems() {
		return fmt.Errorf("system %s has locks", system)
	}
	return nil
}
