// Queue runs actions on VMs and disks, one at a time for each: a migration that
// nobody sees, a destroy that waits for it, a second request that is refused and
// learns what is in the way, a disk that moves from one VM to another, and a
// provider's region at its limit that holds up no other.
//
// It prints the story and a time line of what waited and ran, and fails if two
// actions were ever at one object, or if anything ends where it should not.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/interlock-go/interlock/queue"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "queue:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	line := newTimeLine()
	w := &world{out: out, ctx: ctx, line: line, ends: map[string]chan struct{}{}, states: map[string]string{}}
	w.queue = queue.Must(&queue.Config[string]{
		Classes: map[string]queue.Limit{"aws/seoul": {MaxRunning: 2}, "aws/tokyo": {MaxRunning: 2}},
		Observer: queue.Observer[string]{
			Accepted: line.accepted, Started: line.started, Finished: line.finished,
		},
	})
	for _, vm := range []string{"vm-1", "vm-2", "vm-3"} {
		w.states[vm] = "RUNNING"
	}

	w.say("the provider migrates vm-1, which keeps its state; a user destroys it meanwhile")
	w.ask("migrate", "", "", "vm-1")
	w.begins("migrate")
	w.ask("destroy", "DESTROYING", "DESTROYED", "vm-1")
	w.say("a second user is too late")
	w.ask("stop", "STOPPING", "STOPPED", "vm-1")

	w.say("a disk moves from vm-2 to vm-3: each action takes the disk and the VM")
	w.ask("detach", "", "", "disk-1", "vm-2")
	w.begins("detach")
	w.ask("attach", "", "", "disk-1", "vm-3")
	w.ask("reboot", "REBOOTING", "RUNNING", "vm-2")

	w.say("a region takes two at a time; another region does not wait for it")
	w.create("vm-4", "aws/seoul")
	w.begins("create-vm-4")
	w.create("vm-5", "aws/seoul")
	w.begins("create-vm-5")
	w.create("vm-6", "aws/seoul")
	w.create("vm-7", "aws/tokyo")
	w.begins("create-vm-7")

	w.say("one by one they end, and what waited for nothing else begins")
	w.finish("detach")
	w.begins("attach", "reboot")
	w.finish("create-vm-4")
	w.begins("create-vm-6")
	w.finish("migrate")
	w.begins("destroy")
	for _, name := range []string{"reboot", "attach", "create-vm-7", "create-vm-5", "create-vm-6", "destroy"} {
		w.finish(name)
	}
	if w.err != nil {
		return w.err
	}
	if err := w.queue.Terminate(ctx); err != nil {
		return err
	}
	line.step()
	fmt.Fprintf(out, "\n%s\n\n", w)
	line.draw(out)
	return errors.Join(line.verify(), w.verify())
}

// world is the VMs and their states, and the story that changes them.
type world struct {
	out   io.Writer
	ctx   context.Context // of one run, which is one call
	line  *timeLine
	queue *queue.Queuer[string]
	ends  map[string]chan struct{} // by action, closed when it may end
	err   error

	mu     sync.Mutex
	states map[string]string
}

func (w *world) say(what string) {
	if w.err == nil {
		fmt.Fprintln(w.out, what)
	}
}

// ask submits an action on objects, the last of which is the VM. From its
// admission to its end the VM is in the state during, and then in the state then;
// empty: the action does not change it.
func (w *world) ask(name, during, then string, keys ...string) {
	vm := keys[len(keys)-1]
	w.submit(keys, &queue.Action{
		Name: name,
		Admit: func(context.Context) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			if state := w.states[vm]; during != "" && state != "RUNNING" {
				return fmt.Errorf("cannot execute action at this time: %s is %s", vm, state)
			}
			w.set(vm, during)
			return nil
		},
		Settle: func(context.Context, queue.Outcome, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.set(vm, then)
		},
	})
}

// create submits the creation of a VM in a region.
func (w *world) create(vm, region string) {
	w.submit([]string{vm}, &queue.Action{
		Name: "create-" + vm, Class: region,
		Settle: func(context.Context, queue.Outcome, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.set(vm, "RUNNING")
		},
	})
}

// set changes a state. REQUIRES: w.mu.
func (w *world) set(vm, state string) {
	if state != "" {
		w.states[vm] = state
	}
}

func (w *world) submit(keys []string, act *queue.Action) {
	if w.err != nil {
		return
	}
	end := make(chan struct{})
	act.Run = func(ctx context.Context) error {
		select {
		case <-end:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	w.line.step()
	_, err := w.queue.SubmitAll(w.ctx, keys, act)
	if refused, ok := errors.AsType[*queue.RefusedError](err); ok {
		fmt.Fprintf(w.out, "  %s is refused: %v; %s runs, %d waiting\n", act.Name, refused.Err, refused.Running, refused.Waiting)
		return
	}
	w.err = err
	w.ends[act.Name] = end
}

// begins waits until these actions run.
func (w *world) begins(names ...string) {
	if w.err == nil {
		w.err = w.line.await(w.ctx, "started", names...)
	}
}

// finish lets an action end, and waits until it has.
func (w *world) finish(name string) {
	if w.err != nil {
		return
	}
	w.line.step()
	close(w.ends[name])
	w.err = w.line.await(w.ctx, "finished", name)
}

// String lists the VMs and their states.
func (w *world) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []string
	for vm, state := range w.states {
		list = append(list, vm+" "+state)
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// verify returns an error if a VM is not where it should be.
func (w *world) verify() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for vm, state := range w.states {
		want := "RUNNING"
		if vm == "vm-1" {
			want = "DESTROYED"
		}
		if state != want {
			return fmt.Errorf("%s ended as %s", vm, state)
		}
	}
	return nil
}
