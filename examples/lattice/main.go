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
	b, err := newBackend(ctx, store, "build shop/d1", "deploy shop/d2")
	if err != nil {
		return err
	}
	first := &demo{out, b}
	defer func() { _ = first.Close(ctx) }() // takeOver closes it if all steps succeed
	if err := errors.Join(first.systems(ctx), first.deploys(ctx)); err != nil {
		return err
	}
	fmt.Fprintln(out, "the process stalls; the next process acquires its locks and continues its deploys")
	b, err = newBackend(ctx, store, "deploy shop/d1", "deploy shop/d2", "deploy bank/d2", "teardown shop/t2")
	if err != nil {
		return err
	}
	second := &demo{out, b}
	if err := errors.Join(second.takeOver(ctx, first), second.teardown(ctx), second.deletion(ctx)); err != nil {
		return err
	}
	if err := verify(ctx, store, second); err != nil {
		return err
	}
	fmt.Fprintln(out, "all records are in the expected states, and no lock is left")
	return second.Close(ctx)
}

// demo performs steps in one process.
type demo struct {
	out io.Writer
	*backend
}

func (d *demo) printf(format string, args ...any) { fmt.Fprintf(d.out, format+"\n", args...) }

// systems creates three systems, one of them with an invalid definition.
func (d *demo) systems(ctx context.Context) error {
	d.printf("create three systems")
	for _, id := range []lattice.SystemID{"shop", "bank", "park"} {
		h, err := d.CreateSystem(ctx, id, nil)
		if err != nil {
			return err
		}
		rec, _ := h.Wait(ctx) // the record has the reason of a failure
		d.printf("  %s: %s%s", id, rec.State, suffix(rec.Reason))
	}
	return d.remove(ctx, "park")
}

func (d *demo) remove(ctx context.Context, id lattice.SystemID) error {
	h, err := d.DeleteSystem(ctx, id)
	if err == nil {
		_, err = h.Wait(ctx)
	}
	d.printf("  %s: deleted", id)
	return err
}

// deploys runs two deploys of separate paths. All conflicting actions are refused.
func (d *demo) deploys(ctx context.Context) error {
	d.printf("two deploys run at once; conflicting actions fail")
	return errors.Join(
		d.begin(ctx, "shop", "d1", "/web/cart"),
		d.begin(ctx, "shop", "d2", "/web/search"),
		d.await(ctx, "build shop/d1", "deploy shop/d2"),
		d.holders(ctx, "shop"),
		d.deploy(ctx, "shop", "d3", "/web"),
		d.deploy(ctx, "shop", "d4", "/web/cart/buttons"),
		d.tearDown(ctx, "shop", "t1"),
		d.deploy(ctx, "bank", "d1", "/"),
	)
}

// takeOver ends the deploys that the first process has started.
func (d *demo) takeOver(ctx context.Context, first *demo) error {
	err := errors.Join(d.holders(ctx, "shop"), d.deploy(ctx, "shop", "d5", "/web"))
	d.printf("the first process continues, and its outcome of d2 is refused")
	if err := errors.Join(err, first.answer(ctx, "deploy shop/d2", nil)); err != nil {
		return err
	}
	_, stale := first.Sweep(ctx)
	d.printf("  %d: %v", lifecycle.HTTPStatus(stale), stale)
	rec, err := d.Deploys().Get(ctx, "shop/d2")
	d.printf("  deploy d2 of shop: %s, %s", rec.State, rec.Payload.Attributes)
	return errors.Join(
		err,
		first.Close(ctx),
		d.answer(ctx, "deploy shop/d2", nil),
		d.wait(ctx, "shop", "d2"),
		d.answer(ctx, "deploy shop/d1", errors.New("the cart does not start")),
		d.wait(ctx, "shop", "d1"),
	)
}

// teardown runs alone.
func (d *demo) teardown(ctx context.Context) error {
	d.printf("a teardown runs alone")
	_, err := d.Teardown(ctx, "shop", "t2", nil)
	err = errors.Join(
		err,
		d.await(ctx, "teardown shop/t2"),
		d.deploy(ctx, "shop", "d6", "/db"),
		d.tearDown(ctx, "shop", "t3"),
	)
	return errors.Join(
		err,
		d.answer(ctx, "teardown shop/t2", nil),
		d.waitTeardown(ctx, "shop", "t2"),
		d.deploy(ctx, "shop", "d7", "/db"),
	)
}

// deletion deletes a system during a deploy.
func (d *demo) deletion(ctx context.Context) error {
	d.printf("delete a system during a deploy")
	return errors.Join(
		d.begin(ctx, "bank", "d2", "/ledger"),
		d.await(ctx, "deploy bank/d2"),
		d.remove(ctx, "bank"),
		d.wait(ctx, "bank", "d2"),
	)
}

func (d *demo) begin(ctx context.Context, system lattice.SystemID, id lattice.DeployID, path string) error {
	definition := json.RawMessage(fmt.Sprintf(`{"definition":%q}`, id))
	_, err := d.Deploy(ctx, system, id, lock.MustParse(path), definition)
	return err
}

func (d *demo) wait(ctx context.Context, system lattice.SystemID, id lattice.DeployID) error {
	rec, err := d.WaitDeploy(ctx, system, id)
	path := strings.TrimSuffix(rec.Payload.Path.String(), "/")
	d.printf("  deploy %s of %s%s: %s%s", id, system, path, rec.State, suffix(rec.Reason))
	return err
}

// deploy deploys and waits for the outcome.
func (d *demo) deploy(ctx context.Context, system lattice.SystemID, id lattice.DeployID, path string) error {
	if err := d.begin(ctx, system, id, path); err != nil {
		return err
	}
	return d.wait(ctx, system, id)
}

func (d *demo) waitTeardown(ctx context.Context, system lattice.SystemID, id lattice.TeardownID) error {
	rec, err := d.WaitTeardown(ctx, system, id)
	d.printf("  teardown %s of %s: %s%s", id, system, rec.State, suffix(rec.Reason))
	return err
}

func (d *demo) tearDown(ctx context.Context, system lattice.SystemID, id lattice.TeardownID) error {
	if _, err := d.Teardown(ctx, system, id, nil); err != nil {
		return err
	}
	return d.waitTeardown(ctx, system, id)
}

// holders prints the locks of a system.
func (d *demo) holders(ctx context.Context, system lattice.SystemID) error {
	holders, err := d.Actions().Holders(ctx, system, lock.Root())
	for _, h := range holders {
		d.printf("  %s holds %v of %s", h.Owner, h.Path, system)
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
func verify(ctx context.Context, store lifecycle.Store, d *demo) error {
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
	for system := range d.Actions().Systems() {
		return fmt.Errorf("system %s has locks", system)
	}
	return nil
}
