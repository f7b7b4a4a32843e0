package tumblebug

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// handler is the name of the work of VMs.
const handler = "provider"

// evidence is what was seen of the action of a VM since the provider has accepted
// it. What was seen before says nothing, and what an earlier process saw is lost.
type evidence struct {
	operation lifecycle.OpID
	moved     bool // the VM was seen on its way
	verdict   verdict
	count     int       // looks that said so, one after another
	at        time.Time // of the last that counts
}

// control is the work of an operation of a VM: it requests the action from the
// provider and asks for the status until the action has ended. It ends with its
// context, at the deadline of the VM.
func (s *System) control(ctx context.Context, _ []byte) error {
	t := lifecycle.TaskOf(ctx)
	// The operation may have waited for its turn past its deadline.
	if err := t.Heartbeat(ctx); errors.Is(err, lifecycle.ErrStale) {
		return err
	}
	vm, stray, err := s.subject(ctx, t.ID)
	for err != nil {
		// The provider was not asked, so nothing has failed.
		if err := s.pause(ctx); err != nil {
			return err
		}
		vm, stray, err = s.subject(ctx, t.ID)
	}
	if stray {
		return errStray
	}
	ref := refOf(&vm)
	ref.Operation = t.Operation
	action, _ := Doing(vm.State)
	if err = s.begin(ctx, ref, t.ID, action); errors.Is(err, ErrRejected) {
		return err
	}
	defer s.forget(t.ID, t.Operation)
	for {
		said, answered := s.ask(ctx, ref, action)
		switch s.weigh(t.ID, t.Operation, action, said, answered) {
		case succeeded:
			return nil
		case failed:
			return errors.Join(fmt.Errorf("tumblebug: %s has ended: the VM is %s", action, said), err)
		case pending:
		}
		if err := s.pause(ctx); err != nil {
			return err
		}
	}
}

// subject returns a VM about which a provider is to be asked, and whether that is a
// stray that is not to be made. The bad schedule: a process that makes the VMs of an
// MCI stands still; the MCI is terminated and deleted, and another one of its name is
// made; the process goes on while that one is Creating too.
func (s *System) subject(ctx context.Context, id string) (vm vmRecord, stray bool, err error) {
	if vm, err = s.vms.Get(ctx, id); err != nil || vm.State != Creating {
		return vm, false, err
	}
	mci, err := s.mcis.Get(ctx, vm.Payload.MCI)
	if errors.Is(err, lifecycle.ErrNotFound) {
		return vm, true, nil
	}
	return vm, mci.Payload.Life != vm.Payload.Life, err
}

// pause waits for the time of the next look.
func (s *System) pause(ctx context.Context) error {
	timer := time.NewTimer(s.poll)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// begin asks the provider for an action, and notes that it was accepted.
func (s *System) begin(ctx context.Context, ref VMRef, vm string, action Action) error {
	var err error
	if action == ActionCreate {
		err = s.provider.Create(ctx, ref)
	} else {
		err = s.provider.Control(ctx, ref, action)
	}
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.known[vm] = &evidence{operation: ref.Operation}
	}
	return err
}

// begun reports whether the provider has accepted an operation in this process.
func (s *System) begun(vm string, operation lifecycle.OpID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.known[vm]
	return e != nil && e.operation == operation
}

func (s *System) forget(vm string, operation lifecycle.OpID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// A later operation may have been accepted while this one was ending.
	if e := s.known[vm]; e != nil && e.operation == operation {
		delete(s.known, vm)
	}
}

// weigh adds a look to what is known of an action, and says what it comes to. A
// look that is not enough by itself has to be confirmed by others, one in each
// interval: who asks more often does not learn more.
//
// What is not answered says nothing, however often: a provider that is out of reach
// while a VM is terminated must not count as one that no longer has it.
func (s *System) weigh(vm string, operation lifecycle.OpID, action Action, said State, answered bool) verdict {
	if !answered {
		return pending
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.known[vm]
	if e == nil || e.operation != operation {
		e = nil
	}
	v, sure := judge(action, said, e != nil && e.moved)
	switch {
	case sure:
		return v
	case e == nil:
		return pending
	}
	if said != Undefined && Correct(action, said) == action.ing() {
		e.moved = true
	}
	if s.add(e, v) && v != pending {
		return v
	}
	return pending
}

// add adds a look, and reports whether there are enough that say the same.
// REQUIRES: s.mu.
func (s *System) add(e *evidence, v verdict) bool {
	if v != e.verdict {
		e.verdict, e.count = v, 0
	}
	if now := time.Now(); e.count == 0 || now.Sub(e.at) >= s.poll {
		e.count, e.at = e.count+1, now
	}
	return e.count >= s.confirm
}

// look asks the provider about a VM, writes down what it says, and returns the VM
// as it is then. What rests in a status that is cached is not asked about.
func (s *System) look(ctx context.Context, vm vmRecord) (vmRecord, error) {
	if Cached(vm.State) {
		s.saved.Add(1)
		return vm, nil
	}
	action, _ := Doing(vm.State)
	said, answered := s.ask(ctx, refOf(&vm), action)
	if ctx.Err() != nil {
		return vm, lifecycle.Ended(ctx) // whose silence says nothing about the VM
	}
	var err error
	if action != ActionComplete {
		event := Succeed
		switch s.weigh(vm.ID, vm.Operation, action, said, answered) {
		case pending:
			return vm, nil
		case failed:
			event = Fail
		case succeeded:
		}
		_, err = s.vms.Report(ctx, vm.ID, vm.Operation, event, CSP, "seen "+string(said))
		s.forget(vm.ID, vm.Operation)
	} else {
		event, ok := seen[said]
		if !s.credible(&vm, said) || !ok {
			return vm, nil
		}
		_, err = s.vms.Fire(ctx, vm.ID, event, Observer, &lifecycle.Change[VMSpec]{Expect: vm.Revision})
		if errors.Is(err, lifecycle.ErrConflict) || errors.Is(err, lifecycle.ErrNotFound) {
			err = nil // somebody else has moved it: it is looked at next time
		}
	}
	if err != nil {
		return vm, err
	}
	return s.vms.Get(ctx, vm.ID)
}

// credible reports whether what is said about a VM at rest is to be written down.
// It is, at once, but for what nobody would ask about again: that is confirmed
// like the end of an action.
func (s *System) credible(vm *vmRecord, said State) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.known[vm.ID]
	if e != nil && e.operation > vm.Operation {
		return false // an action has begun since
	}
	if said == vm.State || said != Failed && said != Terminated {
		delete(s.known, vm.ID)
		return said != vm.State
	}
	v := succeeded
	if said == Failed {
		v = failed
	}
	if e == nil {
		e = &evidence{}
		s.known[vm.ID] = e
	}
	e.operation = vm.Operation
	if s.add(e, v) {
		delete(s.known, vm.ID)
		return true
	}
	return false
}

// seen are the events of what is seen of an object at rest.
var seen = map[State]Event{
	Running: SeeRunning, Suspended: SeeSuspended, Terminated: SeeTerminated, Failed: SeeFailed, Undefined: SeeNothing,
}

// refresh looks at the VMs of an MCI, a few at a time, and returns those that are
// there then.
func (s *System) refresh(ctx context.Context, vms []vmRecord) ([]vmRecord, error) {
	var (
		now   = make([]vmRecord, len(vms))
		errs  = make([]error, len(vms))
		slots = make(chan struct{}, s.looks)
		all   sync.WaitGroup
	)
	for i := range vms {
		slots <- struct{}{}
		all.Go(func() {
			now[i], errs[i] = s.look(ctx, vms[i])
			<-slots
		})
	}
	all.Wait()
	there := now[:0]
	for i, err := range errs {
		switch {
		case errors.Is(err, lifecycle.ErrNotFound): // refined meanwhile
		case err != nil:
			return nil, err
		default:
			there = append(there, now[i])
		}
	}
	return there, nil
}

func refOf(vm *vmRecord) VMRef {
	nsID, mciID := place(vm.Payload.MCI)
	return VMRef{NsID: nsID, MciID: mciID, VMID: last(vm.ID), Operation: vm.Operation, VMSpec: vm.Payload}
}
