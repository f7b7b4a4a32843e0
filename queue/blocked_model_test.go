package queue_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/queue"
)

// room is the naive rule that gives room to actions. After every change it tries all
// waiting actions again, in the order of their arrival.
type room struct {
	perKey, all   int
	inside, wants []*guest // in order
}

type guest struct {
	id      int
	keys    []string
	refused bool // by Admit
	gate    chan struct{}
	cancel  context.CancelFunc
	ticket  *queue.Ticket[string]
	over    bool
}

func (g *guest) shares(o *guest) bool {
	return slices.ContainsFunc(g.keys, func(k string) bool { return slices.Contains(o.keys, k) })
}

// running reports whether the guest is first in all its lanes. One that Admit will
// refuse does not run.
func (r *room) running(g *guest) bool {
	return !g.refused && slices.IndexFunc(r.inside, g.shares) == slices.Index(r.inside, g)
}

func (r *room) waiting() (list []*guest) {
	return slices.DeleteFunc(slices.Clone(r.inside), r.running)
}

func (r *room) fits(g *guest) bool {
	for _, o := range r.wants {
		if o == g {
			break
		}
		if r.perKey > 0 && o.shares(g) {
			return false
		}
	}
	for _, k := range g.keys {
		n := 0
		for _, o := range r.inside {
			if slices.Contains(o.keys, k) {
				n++
			}
		}
		if r.perKey > 0 && n >= r.perKey {
			return false
		}
	}
	return r.all == 0 || len(r.waiting()) < r.all
}

func (r *room) settle() {
	for {
		i := slices.IndexFunc(r.wants, r.fits)
		if i >= 0 {
			r.inside = append(r.inside, r.wants[i])
			r.wants = slices.Delete(r.wants, i, i+1)
			continue
		}
		// All that fit have their places. Only then Admit refuses one, the oldest.
		for k, g := range r.inside {
			if g.refused && (i < 0 || g.id < r.inside[i].id) {
				i = k
			}
		}
		if i < 0 {
			return
		}
		r.inside[i].over = true
		r.inside = slices.Delete(r.inside, i, i+1)
	}
}

// refusals are the answers of Admit, which come as late as in the naive rule. The queue calls
// Admit of several submitters at once. The order of their answers decides which of them get room.
type refusals struct {
	mu   sync.Mutex
	ids  []int // whose Admit runs
	last time.Time
}

func (r *refusals) answer(id int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ids = append(r.ids, id)
	for waiting := true; waiting; waiting = slices.Min(r.ids) != id || !time.Now().After(r.last) {
		r.mu.Unlock()
		time.Sleep(time.Nanosecond) // until nothing else happens
		r.mu.Lock()
	}
	r.ids, r.last = slices.DeleteFunc(r.ids, func(o int) bool { return o == id }), time.Now()
	return errBoom
}

func (r *room) leave(g *guest) {
	gone := func(o *guest) bool { return o == g }
	r.inside, r.wants = slices.DeleteFunc(r.inside, gone), slices.DeleteFunc(r.wants, gone)
	g.over = true
	r.settle()
}

// TestBlockedModel compares the submitters that wait for room with the naive rule.
// Submitters cancel their wait or are refused by Admit. Actions end and are cancelled.
func TestBlockedModel(t *testing.T) {
	checks(t, "2000", "200000")
	type step struct {
		n, do   int
		keys    []string
		refused bool
	}
	rapid.Check(t, func(rt *rapid.T) {
		r := &room{
			perKey: rapid.SampledFrom([]int{0, 1, 1, 2}).Draw(rt, "per key"),
			all:    rapid.SampledFrom([]int{0, 1, 3}).Draw(rt, "waiting"),
		}
		steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
			return step{
				n: rapid.IntRange(0, 20).Draw(t, "n"), do: rapid.IntRange(0, 6).Draw(t, "do"),
				keys:    rapid.SliceOfNDistinct(rapid.SampledFrom(modelKeys), 1, 3, rapid.ID).Draw(t, "keys"),
				refused: rapid.IntRange(0, 7).Draw(t, "refused") == 0,
			}
		}), 1, 40).Draw(rt, "steps")
		wrong := ""
		synctest.Test(t, func(t *testing.T) {
			q := queue.Must(&queue.Config[string]{MaxPerKey: r.perKey, MaxWaiting: r.all})
			var guests []*guest
			refused := refusals{last: time.Now()}
			enter := func(s step) {
				ctx, cancel := context.WithCancel(t.Context())
				g := &guest{id: len(guests), keys: s.keys, refused: s.refused, gate: make(chan struct{}), cancel: cancel}
				guests = append(guests, g)
				act := &queue.Action{Name: fmt.Sprint(g.id), Wait: true, Run: func(context.Context) error { <-g.gate; return nil }}
				if g.refused {
					act.Admit = func(context.Context) error { return refused.answer(g.id) }
				}
				go func() { g.ticket, _ = q.SubmitAll(ctx, g.keys, act) }()
				r.wants = append(r.wants, g)
				r.settle()
			}
			look := func(what string) {
				time.Sleep(time.Microsecond) // for the refusals
				synctest.Wait()
				want := map[string][]string{}
				got := map[string][]string{}
				for _, k := range modelKeys {
					for _, g := range r.inside {
						if slices.Contains(g.keys, k) {
							want[k] = append(want[k], fmt.Sprint(g.id, " ", r.running(g)))
						}
					}
					for _, i := range q.Inspect(k) {
						got[k] = append(got[k], fmt.Sprint(i.Name, " ", i.State == queue.Running))
					}
				}
				wants := fmt.Sprint(len(r.wants), " wait for room")
				gots := fmt.Sprint(q.Stats().Blocked, " wait for room")
				if diff := cmp.Diff(want, got) + cmp.Diff(wants, gots); diff != "" && wrong == "" {
					wrong = what + ": reference -, queue +\n" + diff
				}
			}
			for i, s := range steps {
				running := slices.DeleteFunc(slices.Clone(r.inside), func(g *guest) bool { return !r.running(g) })
				switch waiting := r.waiting(); {
				case s.do < 4:
					enter(s)
				case s.do == 4 && len(running) > 0:
					g := running[s.n%len(running)]
					close(g.gate)
					r.leave(g)
				case s.do == 5 && len(waiting) > 0:
					g := waiting[s.n%len(waiting)]
					g.ticket.Cancel(nil)
					r.leave(g)
				case s.do == 6 && len(r.wants) > 0:
					g := r.wants[s.n%len(r.wants)]
					g.cancel()
					r.leave(g)
				}
				look(fmt.Sprint("step ", i))
			}
			for len(r.inside) > 0 && wrong == "" {
				g := r.inside[0]
				close(g.gate)
				r.leave(g)
				look("drain")
			}
			for _, g := range guests {
				g.cancel()
				if wrong != "" && !g.over {
					close(g.gate)
				}
			}
			if err := q.Terminate(t.Context()); err != nil || q.Stats() != (queue.Stats{}) {
				wrong += fmt.Sprint(" left: ", q.Stats(), err)
			}
		})
		if wrong != "" {
			rt.Fatal(wrong)
		}
	})
}
