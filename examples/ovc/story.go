package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/ovc"
	"github.com/interlock-go/interlock/queue"
)

// story performs steps until one fails.
type story struct {
	ctx        context.Context // of one run, which is one call
	out        io.Writer
	cloud      *ovc.Service
	hypervisor *hypervisor
	err        error
}

func newStory(ctx context.Context, out io.Writer, long time.Duration) *story {
	s := &story{ctx: ctx, out: out, hypervisor: &hypervisor{begun: make(chan ovc.Event, 100), held: map[ovc.Event]chan struct{}{}}}
	s.cloud = ovc.New(lifecycle.NewMemoryStore(), &ovc.Config{Method: s.method, StuckAfter: long, Retention: long})
	return s
}

// end lets all held methods go on, and waits until nothing runs.
func (s *story) end() {
	s.hypervisor.let(ovc.Migrate)
	s.hypervisor.let(ovc.Reboot)
	_ = s.cloud.Queuer().Terminate(context.WithoutCancel(s.ctx))
}

// method does one method. To put a node in maintenance, it migrates the machines; the
// hypervisor does all other methods.
func (s *story) method(ctx context.Context, call ovc.Call) error {
	if call.Method != ovc.PutInMaintenance {
		s.hypervisor.do(call)
		return nil
	}
	var migrations []*queue.Ticket[lifecycle.Key]
	for _, vm := range []string{"m1", "m2", "m3"} {
		migration, err := s.cloud.Migrate(ctx, vm, nil)
		if err != nil {
			return err
		}
		migrations = append(migrations, migration)
	}
	for _, migration := range migrations {
		if err := migration.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *story) say(format string, args ...any) {
	if s.err == nil {
		fmt.Fprintf(s.out, format+"\n", args...)
	}
}

// must keeps the first error.
func (s *story) must(_ any, err error) {
	if s.err == nil {
		s.err = err
	}
}

// begin requests an action.
func (s *story) begin(kind ovc.Kind, id string, action ovc.Event, with string) *ovc.Handle {
	if s.err != nil {
		return nil
	}
	h, err := s.cloud.Do(s.ctx, kind, id, action, &ovc.Options{With: with})
	s.must(h, err)
	return h
}

func (s *story) wait(h *ovc.Handle) {
	if s.err == nil {
		s.must(h.Wait(s.ctx))
	}
}

// done requests an action and waits until it is done.
func (s *story) done(kind ovc.Kind, id string, action ovc.Event, with string) {
	s.wait(s.begin(kind, id, action, with))
}

// refused requests an action that must be refused, and prints the error.
func (s *story) refused(kind ovc.Kind, id string, action ovc.Event) {
	if s.err == nil {
		_, err := s.cloud.Do(s.ctx, kind, id, action, nil)
		s.refusal(err)
	}
}

func (s *story) refusal(err error) {
	if s.err == nil && err == nil {
		s.err = fmt.Errorf("a request was not refused")
	}
	s.say("  %d: %v", lifecycle.HTTPStatus(err), err)
}

func (s *story) heal() ovc.Healing {
	h, err := s.cloud.SelfHeal(s.ctx)
	s.must(h, err)
	return h
}

func (s *story) sleep(d time.Duration) {
	select {
	case <-time.After(d):
	case <-s.ctx.Done():
		s.must(nil, lifecycle.Ended(s.ctx))
	}
}

func (s *story) states() (list []string, err error) {
	for kind := range ovc.Kinds() {
		for rec, err := range s.cloud.Objects(kind).All(s.ctx, lifecycle.Select[ovc.State]{}) {
			if err != nil {
				return nil, err
			}
			list = append(list, rec.ID+" "+string(rec.State))
		}
	}
	return list, nil
}

// show prints all states.
func (s *story) show() {
	list, err := s.states()
	s.must(list, err)
	s.say("  %s", strings.Join(list, ", "))
}

// hypervisor does methods, at once or after let if they are held.
type hypervisor struct {
	begun chan ovc.Event // methods that are held, as they begin

	mu    sync.Mutex
	held  map[ovc.Event]chan struct{} // until it is closed
	calls []ovc.Call                  // that were done
}

// do has no context, like many clients of remote services.
func (h *hypervisor) do(call ovc.Call) {
	h.mu.Lock()
	held := h.held[call.Method]
	h.mu.Unlock()
	if held != nil {
		h.begun <- call.Method
		<-held
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, call)
}

// hold delays a method until let.
func (h *hypervisor) hold(method ovc.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held[method] = make(chan struct{})
}

func (h *hypervisor) let(method ovc.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if held := h.held[method]; held != nil {
		close(held)
		h.held[method] = nil
	}
}

// await returns when n held methods have begun.
func (h *hypervisor) await(ctx context.Context, n int) {
	for range n {
		select {
		case <-h.begun:
		case <-ctx.Done():
			return
		}
	}
}

// done returns what was done to a machine.
func (h *hypervisor) done(vm string) (list []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.calls {
		if c.ID == vm {
			list = append(list, string(c.Method))
		}
	}
	return list
}
