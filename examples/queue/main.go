// Queue runs actions on VMs and disks, one at a time for each object.
//
//   - A VM is migrated while a user requests its destruction. The destruction waits.
//     A second request is refused, and the error names the running action.
//   - A disk moves from one VM to another. Both actions take the disk and a VM.
//   - A region limits the number of actions. Another region does not wait for it.
//
// The program fails if two actions run on one object at once, if a limit is exceeded,
// or if a VM ends in a wrong state.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/queue"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "queue:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	q := queue.Must(&queue.Config[string]{
		Classes: map[string]queue.Limit{"seoul": {MaxRunning: 2}, "tokyo": {MaxRunning: 2}},
	})
	s := &service{queue: q}
	for _, vm := range []string{"vm-1", "vm-2", "vm-3"} {
		s.state.Store(vm, "RUNNING")
	}
	err := s.destroyDuringMigration(ctx, out)
	if err == nil {
		err = s.moveDisk(ctx, out)
	}
	if err == nil {
		err = s.createInRegions(ctx, out)
	}
	return errors.Join(err, q.Terminate(ctx))
}

// service keeps the states of the VMs. A real service keeps them in a store.
type service struct {
	queue *queue.Queuer[string]
	state sync.Map // by VM
	busy  sync.Map // the running action by object
}

// destroyDuringMigration submits two requests while a migration runs.
func (s *service) destroyDuringMigration(ctx context.Context, out io.Writer) error {
	started, end := make(chan struct{}), make(chan struct{})
	migrate, err := s.submit(ctx, "migrate", func() {
		close(started)
		<-end
	}, "vm-1")
	if err != nil {
		return err
	}
	<-started
	destroy, err := s.queue.Submit(ctx, "vm-1", s.transition("destroy", "vm-1", "DESTROYING", "DESTROYED"))
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "vm-1: %s, %s runs, %s waits\n", s.get("vm-1"), migrate.Info().Name, destroy.Info().Name)

	_, err = s.queue.Submit(ctx, "vm-1", s.transition("stop", "vm-1", "STOPPING", "STOPPED"))
	refused, ok := errors.AsType[*queue.RefusedError](err)
	if !ok {
		return fmt.Errorf("stop of vm-1 was not refused: %w", err)
	}
	fmt.Fprintf(out, "vm-1: stop refused: %v; %s runs, %d waiting\n", refused.Err, refused.Running, refused.Waiting)

	close(end)
	if err := errors.Join(migrate.Wait(ctx), destroy.Wait(ctx)); err != nil {
		return err
	}
	fmt.Fprintf(out, "vm-1: %s\n", s.get("vm-1"))
	return s.verify("vm-1", "DESTROYED")
}

// moveDisk detaches a disk from one VM and attaches it to another. The second action
// waits for the disk, and a reboot of the first VM waits for the VM.
func (s *service) moveDisk(ctx context.Context, out io.Writer) error {
	var order []string // the queue runs the actions of disk-1 one at a time
	record := func(name string) func() { return func() { order = append(order, name) } }
	detach, err := s.submit(ctx, "detach", record("detach from vm-2"), "disk-1", "vm-2")
	if err != nil {
		return err
	}
	attach, err := s.submit(ctx, "attach", record("attach to vm-3"), "disk-1", "vm-3")
	if err != nil {
		return err
	}
	reboot, err := s.queue.Submit(ctx, "vm-2", s.transition("reboot", "vm-2", "REBOOTING", "RUNNING"))
	if err != nil {
		return err
	}
	if err := errors.Join(detach.Wait(ctx), attach.Wait(ctx), reboot.Wait(ctx)); err != nil {
		return err
	}
	fmt.Fprintf(out, "disk-1: %s, %s\n", order[0], order[1])
	return s.verify("vm-2", "RUNNING")
}

// createInRegions creates six VMs at once. Each region runs two creations at a time.
func (s *service) createInRegions(ctx context.Context, out io.Writer) error {
	var mu sync.Mutex
	running, most := map[string]int{}, map[string]int{}
	count := func(region string, n int) {
		mu.Lock()
		defer mu.Unlock()
		running[region] += n
		most[region] = max(most[region], running[region])
	}
	var all errgroup.Group
	for i := range 6 {
		vm, region := fmt.Sprint("vm-", 4+i), []string{"seoul", "tokyo"}[i%2]
		create := &queue.Action{
			Name: "create", Class: region,
			Run: s.exclusive("create", []string{vm}, func() {
				count(region, 1)
				count(region, -1)
			}),
			Settle: func(context.Context, queue.Outcome, error) { s.state.Store(vm, "RUNNING") },
		}
		all.Go(func() error {
			ticket, err := s.queue.Submit(ctx, vm, create)
			if err != nil {
				return err
			}
			return errors.Join(ticket.Wait(ctx), s.verify(vm, "RUNNING"))
		})
	}
	if err := all.Wait(); err != nil {
		return err
	}
	for _, region := range []string{"seoul", "tokyo"} {
		if most[region] > 2 {
			return fmt.Errorf("%s: %d creations ran at once", region, most[region])
		}
		fmt.Fprintf(out, "%s: 3 VMs created, at most 2 at once\n", region)
	}
	return nil
}

// submit submits an action that changes no state, and takes all objects.
func (s *service) submit(ctx context.Context, name string, work func(), objects ...string) (*queue.Ticket[string], error) {
	return s.queue.SubmitAll(ctx, objects, &queue.Action{Name: name, Run: s.exclusive(name, objects, work)})
}

// transition returns an action that changes the state of a VM: to during when it is
// admitted, and to after when it ends. It is refused unless the VM is RUNNING.
func (s *service) transition(name, vm, during, after string) *queue.Action {
	return &queue.Action{
		Name: name,
		Admit: func(context.Context) error {
			if !s.state.CompareAndSwap(vm, "RUNNING", during) {
				return fmt.Errorf("%s is %v", vm, s.get(vm))
			}
			return nil
		},
		Run:    s.exclusive(name, []string{vm}, func() {}),
		Settle: func(context.Context, queue.Outcome, error) { s.state.Store(vm, after) },
	}
}

// exclusive returns work that fails if another action runs on one of the objects.
func (s *service) exclusive(name string, objects []string, work func()) func(context.Context) error {
	return func(context.Context) error {
		for _, object := range objects {
			if other, busy := s.busy.LoadOrStore(object, name); busy {
				return fmt.Errorf("%s: %s runs during %s", object, name, other)
			}
			defer s.busy.Delete(object)
		}
		work()
		return nil
	}
}

// get returns the state of a VM, nil if there is none.
func (s *service) get(vm string) any {
	state, _ := s.state.Load(vm)
	return state
}

// verify returns an error if a VM is in a wrong state.
func (s *service) verify(vm, want string) error {
	if state := s.get(vm); state != want {
		return fmt.Errorf("%s ended in %v, not in %s", vm, state, want)
	}
	return nil
}
