// Ovc runs the objects of a small OpenvCloud. A node is put in maintenance while users
// request actions on its machines. A disk is detached, attached, and deleted with its
// machine. A hypervisor does not answer. Objects in the recycle bin are destroyed.
//
// It prints what happens, with the text of every refusal. It fails if an object ends
// in a wrong state.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/ovc"
)

func main() {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	if err := run(ctx, os.Stdout, time.Second); err != nil {
		fmt.Fprintln(os.Stderr, "ovc:", err)
		os.Exit(1)
	}
}

// run runs the program. An action that takes longer than long is stuck, and objects
// stay in the recycle bin as long.
func run(ctx context.Context, out io.Writer, long time.Duration) error {
	s := newStory(ctx, out, long)
	defer s.end()
	s.say("m1, m2 and m3 run on node n1, and d1 is attached to m2")
	s.must(s.cloud.Add(ctx, ovc.KindNode, "n1", ovc.Model{}))
	for _, vm := range []string{"m1", "m2", "m3"} {
		s.must(s.cloud.Add(ctx, ovc.KindVM, vm, ovc.Model{Labels: map[string]string{"customer": "acme"}}))
		s.done(ovc.KindVM, vm, ovc.Deploy, "")
	}
	s.must(s.cloud.Add(ctx, ovc.KindDisk, "d1", ovc.Model{}))
	s.done(ovc.KindVM, "m2", ovc.AddDisk, "d1")

	s.say("n1 is put in maintenance: its machines are migrated, with their status unchanged")
	s.hypervisor.hold(ovc.Migrate)
	maintenance := s.begin(ovc.KindNode, "n1", ovc.PutInMaintenance, "")
	s.hypervisor.await(ctx, 3)
	s.show()
	s.say("destroy m1 and detach d1: both are accepted, and wait")
	destroyed := s.begin(ovc.KindVM, "m1", ovc.Destroy, "")
	detached := s.begin(ovc.KindVM, "m2", ovc.DetachDisk, "d1")
	s.show()
	s.say("stop m1 and delete m2: both are refused")
	s.refused(ovc.KindVM, "m1", ovc.Stop)
	s.refused(ovc.KindVM, "m2", ovc.Delete)

	s.say("the migrations end, and then the accepted actions are done")
	s.hypervisor.let(ovc.Migrate)
	for _, h := range []*ovc.Handle{maintenance, destroyed, detached} {
		s.wait(h)
	}
	s.say("  done to m1: %s", strings.Join(s.hypervisor.done("m1"), ", "))
	s.show()
	if s.err == nil && s.cloud.Queuer().Exists(ovc.KindVM, "m1") {
		s.err = errors.New("m1 is destroyed and has a queue")
	}

	s.say("stop m3 and attach d1: m3 is halted again")
	s.done(ovc.KindVM, "m3", ovc.Stop, "")
	s.done(ovc.KindVM, "m3", ovc.AttachDisk, "d1")
	s.show()
	s.unanswered(long)
	s.byHand()

	s.say("delete m3 with its disk; after the retention period both are destroyed")
	s.done(ovc.KindVM, "m3", ovc.Delete, "")
	s.show()
	s.sleep(long + long/4)
	for _, h := range s.heal().Expired {
		s.wait(h)
	}
	s.show()
	return s.verify()
}

// unanswered is a reboot whose answer comes too late.
func (s *story) unanswered(long time.Duration) {
	s.say("reboot m2: the hypervisor does not answer")
	s.hypervisor.hold(ovc.Reboot)
	reboot := s.begin(ovc.KindVM, "m2", ovc.Reboot, "")
	s.hypervisor.await(s.ctx, 1)
	s.sleep(long + long/4)
	for _, c := range s.heal().Stuck {
		s.say("  %s was stuck in %s and is %s again", c.ID, c.From, c.To)
	}
	s.hypervisor.let(ovc.Reboot)
	if s.err == nil {
		_, err := reboot.Wait(s.ctx)
		failed, ok := errors.AsType[*lifecycle.OutcomeError](err)
		if !ok || failed.Outcome != lifecycle.Lost {
			s.err = fmt.Errorf("the late answer was written: %w", err)
			return
		}
		s.say("  the late answer has no effect")
	}
}

// byHand changes statuses like an agent that does the work elsewhere.
func (s *story) byHand() {
	s.say("two agents pause m2 at once, and one deploys any machine of acme")
	s.must(s.cloud.UpdateStatus(s.ctx, ovc.KindVM, "m2", ovc.Running, ovc.Pausing))
	_, err := s.cloud.UpdateStatus(s.ctx, ovc.KindVM, "m2", ovc.Running, ovc.Pausing)
	s.refusal(err)
	s.must(s.cloud.UpdateStatus(s.ctx, ovc.KindVM, "m2", ovc.Pausing, ovc.Paused))
	s.must(s.cloud.Add(s.ctx, ovc.KindVM, "m4", ovc.Model{Labels: map[string]string{"customer": "acme"}}))
	s.must(s.cloud.Add(s.ctx, ovc.KindVM, "m5", ovc.Model{Labels: map[string]string{"customer": "acme"}}))
	ofAcme := func(vm ovc.Record) bool { return vm.Payload.Labels["customer"] == "acme" }
	_, err = s.cloud.UpdateSearch(s.ctx, ovc.KindVM, ofAcme, ovc.Virtual, ovc.Deploying)
	s.refusal(err)
}

// ends are the states that the objects must end in.
var ends = []string{
	"m1 DESTROYED", "m2 PAUSED", "m3 DESTROYED", "m4 VIRTUAL", "m5 VIRTUAL", "d1 DESTROYED", "n1 MAINTENANCE",
}

// verify ends all queues and returns an error if an object is in a wrong state.
func (s *story) verify() error {
	if s.err != nil {
		return s.err
	}
	if err := s.cloud.Queuer().Terminate(s.ctx); err != nil {
		return err
	}
	list, err := s.states()
	if err != nil {
		return err
	}
	if !slices.Equal(list, ends) {
		return fmt.Errorf("it ends with %s", strings.Join(list, ", "))
	}
	fmt.Fprintln(s.out, "end: every object is in the expected state")
	return nil
}
