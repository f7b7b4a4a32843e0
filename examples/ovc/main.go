// Ovc runs the objects of a small OpenvCloud: a node that is put in maintenance
// while users go on working with its machines, a disk that is detached, attached
// and deleted with its machine, a hypervisor that does not answer, and a recycle
// bin that empties itself.
//
// It prints the story, who was refused and why, and fails if anything ends where
// it should not.
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

// run tells the whole story. An action is stuck that takes longer than so long,
// and the recycle bin keeps things for as long.
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

	s.say("the node is put in maintenance: its machines are migrated, which nobody sees")
	s.hypervisor.hold(ovc.Migrate)
	maintenance := s.begin(ovc.KindNode, "n1", ovc.PutInMaintenance, "")
	s.hypervisor.await(ctx, 3)
	s.show()
	s.say("ann destroys m1 and detaches d1: both are accepted, and wait")
	destroyed := s.begin(ovc.KindVM, "m1", ovc.Destroy, "")
	detached := s.begin(ovc.KindVM, "m2", ovc.DetachDisk, "d1")
	s.show()
	s.say("bob is too late for m1 and m2")
	s.refused(ovc.KindVM, "m1", ovc.Stop)
	s.refused(ovc.KindVM, "m2", ovc.Delete)

	s.say("the migrations end, and then ann's actions are done")
	s.hypervisor.let(ovc.Migrate)
	for _, h := range []*ovc.Handle{maintenance, destroyed, detached} {
		s.wait(h)
	}
	s.say("  done to m1: %s", strings.Join(s.hypervisor.done("m1"), ", "))
	s.show()
	if s.err == nil && s.cloud.Queuer().Exists(ovc.KindVM, "m1") {
		s.err = errors.New("m1 is destroyed and has a queue")
	}

	s.say("m3 is stopped and gets d1: it is halted again, and not running")
	s.done(ovc.KindVM, "m3", ovc.Stop, "")
	s.done(ovc.KindVM, "m3", ovc.AttachDisk, "d1")
	s.show()
	s.unanswered(long)
	s.byHand()

	s.say("m3 is deleted, its disk goes with it, and after the retention period both are destroyed")
	s.done(ovc.KindVM, "m3", ovc.Delete, "")
	s.show()
	s.sleep(long + long/4)
	for _, h := range s.heal().Expired {
		s.wait(h)
	}
	s.show()
	return s.verify()
}

// unanswered is a reboot that nobody hears of again.
func (s *story) unanswered(long time.Duration) {
	s.say("the hypervisor does not answer to a reboot of m2")
	s.hypervisor.hold(ovc.Reboot)
	reboot := s.begin(ovc.KindVM, "m2", ovc.Reboot, "")
	s.hypervisor.await(s.ctx, 1)
	s.sleep(long + long/4)
	for _, c := range s.heal().Stuck {
		s.say("  %s was stuck in %s, and is %s again", c.ID, c.From, c.To)
	}
	s.hypervisor.let(ovc.Reboot)
	if s.err == nil {
		_, err := reboot.Wait(s.ctx)
		failed, ok := errors.AsType[*lifecycle.OutcomeError](err)
		if !ok || failed.Outcome != lifecycle.Lost {
			s.err = fmt.Errorf("what it says later counts: %w", err)
			return
		}
		s.say("  its late answer counts for nothing")
	}
}

// byHand is what an agent does that works elsewhere.
func (s *story) byHand() {
	s.say("two agents want to pause m2 by hand, and one wants any machine of acme")
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

// ends is where everything has to be in the end.
var ends = []string{
	"m1 DESTROYED", "m2 PAUSED", "m3 DESTROYED", "m4 VIRTUAL", "m5 VIRTUAL", "d1 DESTROYED", "n1 MAINTENANCE",
}

// verify ends all queues and returns an error if anything is where it should not
// be.
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
	fmt.Fprintln(s.out, "in the end everything is where it should be")
	return nil
}
