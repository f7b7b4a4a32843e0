package fsmtest

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/shrink"
)

// WalkConfig refines [Walk]. The zero value and nil are the defaults.
type WalkConfig struct {
	Seed     uint64 // of what is drawn; 0: any, and it is told
	Requests int    // altogether; default 1000
	Length   int    // most requests of one object; default 60
	// Model is what the system is compared with. Default: [Model] of the table.
	Model Driver
}

// Walk makes random requests of a system and of a model, and fails t where their
// answers differ: accepted or refused, in which state, and if both refuse by a
// sentinel of package fsm, by which. About half of the requests are such that some
// row takes them. What fails is made short and told with its seed. The table
// is that of a machine.
func Walk(t testing.TB, table *fsm.Table, d Driver, config *WalkConfig) {
	t.Helper()
	if config == nil {
		config = &WalkConfig{}
	}
	w := &walk{t: t, table: table, d: d, model: config.Model}
	if w.model == nil {
		w.model = Model(table)
	}
	for i := range table.Rows {
		if g := table.Rows[i].Guard; g != "" {
			w.guards = append(w.guards, g)
		}
	}
	if len(table.Events) == 0 || len(table.Actors) == 0 {
		t.Errorf("%s: nothing can be asked", table.Name)
		return
	}
	seed := cmp.Or(config.Seed, rand.Uint64())
	most, drawn := cmp.Or(config.Requests, 1000), 0
	for i := 0; drawn < most; i++ {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		requests := w.draw(random.IntN, min(cmp.Or(config.Length, 60), most-drawn))
		drawn += len(requests)
		if err := w.play(requests); err != nil {
			t.Error(shrink.Report(seed, requests, err, w.play))
			return
		}
	}
	t.Logf("%s: Seed %d: %d requests, %d of them accepted; the driver could not make %d",
		table.Name, seed, w.requests, w.accepted, w.cannot)
}

type walk struct {
	t        testing.TB
	table    *fsm.Table
	d, model Driver
	guards   []string

	requests, accepted, cannot int
}

// draw makes up a sequence. It goes along the table, so that it gets around, and
// ends soon after the object has; what was drawn means something from any state.
func (w *walk) draw(n func(int) int, length int) (requests []Request) {
	guide := &model{t: w.table}
	guide.Reset(w.t)
	for late := 0; len(requests) < length && late < 4; {
		r := Request{
			Event: w.table.Events[n(len(w.table.Events))], Actor: w.table.Actors[n(len(w.table.Actors))], Force: n(4) == 0,
		}
		row, ok := guide.possible(n)
		if !ok {
			late++
		}
		if ok && n(3) > 0 {
			r.Event, r.Force = w.table.Events[row.Event], row.Forced && n(4) > 0
			if len(row.Actors) > 0 && n(6) > 0 {
				r.Actor = w.table.Actors[row.Actors[n(len(row.Actors))]]
			}
		}
		told := make(map[string]bool)
		for _, g := range w.guards {
			if told[g] {
				continue
			}
			told[g] = true
			if n(2) == 0 {
				r.Agree = append(r.Agree, g)
			} else {
				r.Refuse = append(r.Refuse, g)
			}
		}
		requests = append(requests, r)
		_, _ = guide.Apply(w.t, r)
	}
	return requests
}

// possible returns a row that may be taken now, guards willing.
func (m *model) possible(n func(int) int) (*fsm.TableRow, bool) {
	var rows []int
	for i := range m.t.Rows {
		for _, from := range m.t.Rows[i].From {
			if from == m.state && can(m.t, [2]int{m.state, m.origin}, i) {
				rows = append(rows, i)
			}
		}
	}
	if len(rows) == 0 {
		return nil, false
	}
	return &m.t.Rows[rows[n(len(rows))]], true
}

// play makes the requests of both, and tells the first difference.
func (w *walk) play(requests []Request) error {
	if state, want := w.d.Reset(w.t), w.model.Reset(w.t); state != want {
		return fmt.Errorf("a new object begins in %s instead of %s", state, want)
	}
	for i, r := range requests {
		state, refusal := w.d.Apply(w.t, r)
		if errors.Is(refusal, ErrCannot) {
			w.cannot++
			continue
		}
		want, wanted := w.model.Apply(w.t, r)
		w.requests++
		if wanted == nil {
			w.accepted++
		}
		switch {
		case state != want, (refusal == nil) != (wanted == nil), reason(refusal) != nil && reason(wanted) != nil && reason(refusal) != reason(wanted):
			return fmt.Errorf("request %d, %s, ends in %s and should end in %s", i+1, r, answered(state, refusal), answered(want, wanted))
		}
	}
	return nil
}

func answered(state string, refusal error) string {
	if refusal == nil {
		return state
	}
	return fmt.Sprintf("%s (refused: %v)", state, refusal)
}
