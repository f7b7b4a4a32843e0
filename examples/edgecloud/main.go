// Edgecloud runs a controller, two cloudlets and their CRMs, and tells what
// happens when messages are lost, repeated and late, when a CRM gives up, is
// silent, crashes or is replaced, and when the controller itself crashes. In the
// end nobody asks any more: the controller places and removes instances by what
// customers demand.
//
// It prints the story, with every refusal, and fails if anything is accepted that
// must not be, or ends where it should not.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

func main() {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "edgecloud:", err)
		os.Exit(1)
	}
}

// run tells the whole story.
func run(ctx context.Context, out io.Writer) error {
	s := &story{ctx: ctx, out: out, store: &lifecycle.MemoryStore{KeepHistory: -1}, sites: map[string]*site{}}
	s.restart()
	for _, chapter := range []func(){
		s.comesUp, s.lostAndLate, s.givesUp, s.needed, s.silent, s.away, s.crashed, s.replaced, s.demanded,
	} {
		chapter()
		if s.err != nil {
			return s.err
		}
	}
	return s.verify()
}

// A cloudlet is created by a user, its CRM starts, and so does one by hand.
func (s *story) comesUp() {
	s.say("a user asks for the cloudlet berlin; oslo is started by hand")
	_, err := s.c.Cloudlets.Create(s.ctx, "berlin", "v1")
	s.note(err)
	s.connect("berlin", "v1")
	s.connect("oslo", "v1")
}

// Messages are lost, repeated and late.
func (s *story) lostAndLate() {
	s.say("a user asks for the cluster c1 in berlin, and at once for the app a1 in it")
	c1, err := s.c.Clusters.Create(s.ctx, "c1", edgecloud.ClusterSpec{Cloudlet: "berlin", Nodes: 2}, nil)
	s.note(err)
	_, err = s.c.Apps.Create(s.ctx, "a1", edgecloud.AppSpec{ClusterInst: "c1", Replicas: 1}, nil)
	s.refused(err, lifecycle.ErrPrecondition)
	berlin := s.sites["berlin"]
	berlin.lose = 1
	s.say("the message that it is Creating is lost, and the one that it is Ready comes three times")
	s.serve("berlin")
	s.serve("berlin")
	s.report(c1.ID, c1.Operation, edgecloud.Ready, lifecycle.Repeated)
	s.report(c1.ID, c1.Operation, edgecloud.Ready, lifecycle.Repeated)
	_, err = s.c.Apps.Create(s.ctx, "a1", edgecloud.AppSpec{ClusterInst: "c1", Replicas: 1}, nil)
	s.note(err)
	s.serve("berlin")
	s.is("c1", edgecloud.Ready, 2)
}

// The CRM gives up: the operation decides the error state, and is undone.
func (s *story) givesUp() {
	s.say("c1 is to grow, and the CRM gives up")
	berlin := s.sites["berlin"]
	berlin.broken = errors.New("no quota")
	rec, err := s.c.Clusters.Update(s.ctx, "c1", grow(9), nil)
	s.note(err)
	s.serve("berlin")
	berlin.broken = nil
	_, err = s.c.Clusters.Wait(s.ctx, rec, nil)
	s.refused(err, edgecloud.ErrFailed)
	s.is("c1", edgecloud.Ready, 2)
	s.say("what it says about that operation now is too late")
	s.report("c1", rec.Operation, edgecloud.Ready, lifecycle.Refused)
	s.report("c1", rec.Operation-1, edgecloud.Ready, lifecycle.Stale)
}

// What is needed does not go.
func (s *story) needed() {
	s.say("a user deletes c1, and the controller finds who needs it")
	_, err := s.c.Clusters.Delete(s.ctx, "c1", nil)
	s.refused(err, edgecloud.ErrInUse)
	s.is("c1", edgecloud.Ready, 2)
}

// A CRM that is silent, and one that is still working, are told apart.
func (s *story) silent() {
	s.say("the CRM does not answer; then it begins, and does not end")
	impatient := &edgecloud.Call{Patience: 20 * time.Millisecond}
	rec, err := s.c.Clusters.Create(s.ctx, "c2", edgecloud.ClusterSpec{Cloudlet: "berlin"}, nil)
	s.note(err)
	_, err = s.c.Clusters.Wait(s.ctx, rec, impatient)
	s.refused(err, edgecloud.ErrNoAnswer)
	rec, err = s.c.Clusters.Create(s.ctx, "c2", edgecloud.ClusterSpec{Cloudlet: "berlin"}, nil)
	s.note(err)
	s.report("c2", rec.Operation, edgecloud.Creating, lifecycle.Applied)
	_, err = s.c.Clusters.Wait(s.ctx, rec, impatient)
	s.refused(err, edgecloud.ErrStillWorking)
	s.report("c2", rec.Operation, edgecloud.CreateError, lifecycle.Applied)
	_, err = s.c.Clusters.Undo(s.ctx, "c2", rec.Operation, "enough")
	s.note(err)
	s.is("c2", edgecloud.NotPresent, 0)
}

// The network and the controller are away, and the CRM works on.
func (s *story) away() {
	s.say("a1 is to have 3 replicas; network and controller are away while the CRM does it")
	_, err := s.c.Apps.Update(s.ctx, "a1", func(a *edgecloud.AppSpec) error { a.Replicas = 3; return nil }, nil)
	s.note(err)
	s.sites["berlin"].lose = 2
	s.serve("berlin")
	s.restart()
	s.drop("berlin")
	_, err = s.c.Clusters.Create(s.ctx, "c3", edgecloud.ClusterSpec{Cloudlet: "berlin"}, nil)
	s.refused(err, lifecycle.ErrPrecondition)
	s.say("it reconnects, and says what it has")
	s.connect("berlin", "v1")
}

// The CRM crashes, and knows nothing but what is there.
func (s *story) crashed() {
	s.say("c1 is to grow and a2 to come; the CRM crashes before it has done either")
	_, err := s.c.Apps.Create(s.ctx, "a2", edgecloud.AppSpec{ClusterInst: "c1", Replicas: 1}, nil)
	s.note(err)
	_, err = s.c.Clusters.Update(s.ctx, "c1", grow(3), nil)
	s.refused(err, edgecloud.ErrInUse)
	s.sites["berlin"].crash()
	s.connect("berlin", "v1")
	s.serve("berlin")
	_, err = s.c.Clusters.Update(s.ctx, "c1", grow(3), nil)
	s.note(err)
	s.sites["berlin"].crash()
	s.connect("berlin", "v1")
	s.serve("berlin")
	s.is("c1", edgecloud.Ready, 3)
}

// The CRM of a cloudlet is replaced, in vain at first.
func (s *story) replaced() {
	cloudlets := s.c.Cloudlets
	s.say("berlin is to run v2, and v1 cannot bring it up")
	_, err := cloudlets.Upgrade(s.ctx, "berlin", "v2", "")
	s.note(err)
	old := s.sites["berlin"].notify
	s.note(cloudlets.AckUpgrade(s.ctx, "berlin", old))
	_, err = s.c.Apps.Delete(s.ctx, "a2", nil)
	s.refused(err, lifecycle.ErrPrecondition)
	s.note(cloudlets.BringUpFailed(s.ctx, "berlin", old, "no image"))
	s.note(cloudlets.KeepOld(s.ctx, "berlin", old))
	_, err = s.c.Apps.Delete(s.ctx, "a2", nil)
	s.refused(err, lifecycle.ErrPrecondition)
	s.say("a person repairs it, and v2 is started without a word of v1")
	s.note(cloudlets.Repaired(s.ctx, "berlin", "v1", "the image is there"))
	_, err = cloudlets.Upgrade(s.ctx, "berlin", "v2", "")
	s.note(err)
	s.sites["berlin"].crash() // the new one knows nothing of the old one
	s.connect("berlin", "v2")
	moved, err := cloudlets.Disconnected(s.ctx, "berlin", old)
	s.note(err)
	s.must(!moved, "the end of v1 has moved the cloudlet")
	s.refused(cloudlets.AckUpgrade(s.ctx, "berlin", old), lifecycle.ErrStale)
	_, err = s.c.Apps.Delete(s.ctx, "a2", nil)
	s.note(err)
	s.serve("berlin")
}

// verify returns an error if anything is not where it should be, here or there.
func (s *story) verify() error {
	var at []string
	for rec, err := range s.c.Clusters.Manager().All(s.ctx, lifecycle.Select[edgecloud.State]{}) {
		s.note(err)
		at = append(at, fmt.Sprintf("%s %s", rec.ID, rec.State))
	}
	for rec, err := range s.c.Apps.Manager().All(s.ctx, lifecycle.Select[edgecloud.State]{}) {
		s.note(err)
		at = append(at, fmt.Sprintf("%s %s", rec.ID, rec.State))
	}
	s.must(slices.Equal(at, []string{"c1 Ready", "a1 Ready"}), "there are %v", at)
	berlin, oslo := s.sites["berlin"], s.sites["oslo"]
	s.must(len(berlin.there) == 2 && len(oslo.there) == 0, "berlin has %d things, oslo %d", len(berlin.there), len(oslo.there))
	s.must(berlin.there[appKey("a1")].App.Replicas == 3, "a1 has %d replicas", berlin.there[appKey("a1")].App.Replicas)
	s.must(berlin.twice == 0 && oslo.twice == 0, "operations were done twice")
	v := s.c.Clusters.Verdicts()
	s.must(v.Applied > 0, "nothing was applied")
	if s.err == nil {
		s.say("in the end: c1 and a1 are Ready here and there, nothing else is, and nothing was done twice")
	}
	return s.err
}
