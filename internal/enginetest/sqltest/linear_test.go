package sqltest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
)

// standing is where an order stands.
type standing struct {
	sequence  uint64
	operation lifecycle.OpID
	state     state
	payload   string
}

// said is one call and its answer.
type said struct {
	event   event          // empty: it only looks
	forced  state          // where an override leads
	refuses bool           // the table has no row for it, or there is no order
	found   string         // the payload that Edit was given last, if it wrote with one
	edits   bool           // it has one
	about   lifecycle.OpID // of a report
	reports bool
	is      standing // after it, or as it was found
}

// leads is the table of an order, without the sweeper.
func leads(from state, e event) (to state, ok bool) {
	to, ok = map[state]map[event]state{
		none:   {place: open},
		open:   {pay: paying, note: open, drop: none},
		paying: {settled: paid},
		paid:   {reopen: open, drop: none},
	}[from][e]
	return to, ok
}

// anOrder is what one order is to those who ask one after the other.
var anOrder = porcupine.Model{
	Init: func() any { return standing{state: none} },
	Step: func(before, input, _ any) (bool, any) {
		at, c := before.(standing), input.(said)
		to, ok := leads(at.state, c.event)
		switch {
		case c.refuses && c.reports:
			return !ok || at.operation != c.about, at
		case c.refuses && c.event == "": // nobody is there to look at, or to override
			return at.state == none, at
		case c.refuses:
			return !ok, at
		case c.event == "" && c.forced == "":
			return c.is == at, at
		case c.forced != "":
			to = c.forced
		case !ok:
			return false, at
		}
		fits := c.is.sequence == at.sequence+1 && c.is.state == to && c.is.operation >= at.operation
		if c.edits && at.state != none {
			fits = fits && c.found == at.payload
		}
		if c.reports { // which tell no more
			fits = at.operation == c.about
			return fits, standing{at.sequence + 1, at.operation, to, at.payload}
		}
		if !c.edits {
			fits = fits && (c.is.payload == at.payload || at.state == none || to == none)
		}
		return fits, c.is
	},
}

// TestManagersAreLinearizable: managers on three stores, each with connections of
// its own, move the same objects concurrently. All answers can be put in one
// order, in which each Edit gets what the change before it has written.
func TestManagersAreLinearizable(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		e = unhurried(e)
		w := e.open(t)
		require.NoError(t, sqlstore.Migrate(t.Context(), pool(t, w), e.dialect, nil))
		var managers []*orders
		for range 3 {
			store, err := sqlstore.Open(t.Context(), pool(t, w), e.dialect, nil)
			require.NoError(t, err)
			defer store.Close()
			for range 2 {
				managers = append(managers, lifecycle.Must(order, store, &lifecycle.Config[event]{
					WorkerActor: bank, Done: []event{settled}, Failed: []event{reopen},
				}))
			}
		}
		calls := 100
		if long() {
			calls = 400
		}
		const objects = 8
		h := &hearing{seen: make([][]porcupine.Operation, objects)}
		var group sync.WaitGroup
		for i, m := range managers {
			group.Go(func() {
				dice := rand.New(rand.NewPCG(uint64(i), rand.Uint64()))
				object := 0
				for n := range calls {
					if n%8 == 0 {
						object = dice.IntN(objects)
					}
					if err := h.ask(t.Context(), m, i, object, dice, fmt.Sprint(i, "/", n)); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		group.Wait()
		require.False(t, t.Failed())
		for o, history := range h.seen {
			require.Equal(t, porcupine.Ok, porcupine.CheckOperationsTimeout(anOrder, history, time.Minute), "object %d, %d calls", o, len(history))
		}
		require.Greater(t, h.wrote.Load(), int64(calls), "hardly anything was written")
	})
}

// hearing notes what is said.
type hearing struct {
	clock atomic.Int64
	wrote atomic.Int64
	mu    sync.Mutex
	seen  [][]porcupine.Operation // by object
}

func (h *hearing) note(client, object int, called int64, c said) {
	op := porcupine.Operation{ClientId: client, Input: c, Call: called, Return: h.clock.Add(1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen[object] = append(h.seen[object], op)
	if !c.refuses && (c.event != "" || c.forced != "") {
		h.wrote.Add(1)
	}
}

func stand(r *lifecycle.Record[state, string]) standing {
	return standing{r.Sequence, r.Operation, r.State, r.Payload}
}

// ask makes one call and notes its answer, if that says anything: a conflict
// does not.
func (h *hearing) ask(ctx context.Context, m *orders, client, object int, dice *rand.Rand, label string) error {
	id := fmt.Sprint("o", object)
	called := h.clock.Add(1)
	c := said{edits: dice.IntN(2) == 0}
	change := &lifecycle.Change[string]{}
	if c.edits {
		change.Edit = func(p *string) error {
			c.found, *p = *p, label
			return nil
		}
	}
	settle := func(rec lifecycle.Record[state, string], err error) error {
		switch {
		case err == nil:
			c.is = stand(&rec)
		case errors.Is(err, lifecycle.ErrConflict) && !errors.Is(err, lifecycle.ErrExists):
			return nil
		case errors.Is(err, fsm.ErrNotAllowed), errors.Is(err, fsm.ErrWrongActor), errors.Is(err, lifecycle.ErrBusy),
			errors.Is(err, lifecycle.ErrNotFound), errors.Is(err, lifecycle.ErrExists):
			c.refuses = true
		default:
			return fmt.Errorf("client %d: %w", client, err)
		}
		h.note(client, object, called, c)
		return nil
	}
	switch dice.IntN(8) {
	case 0:
		c.edits = false
		return settle(m.Get(ctx, id))
	case 1:
		c.event, c.edits = place, false
		return settle(m.Create(ctx, id, place, customer, label))
	case 2:
		rec, err := m.Get(ctx, id)
		if err != nil {
			return settle(rec, err)
		}
		called, c.edits, c.event = h.clock.Add(1), false, settled
		c.reports, c.about = true, rec.Operation
		verdict, err := m.Report(ctx, id, rec.Operation, settled, bank, "")
		switch {
		case err != nil: // by too many conflicts
			return settle(rec, err)
		case verdict == lifecycle.Repeated:
			return nil
		}
		c.refuses = verdict != lifecycle.Applied
		h.note(client, object, called, c)
		return nil
	case 3:
		if dice.IntN(2) == 0 {
			return nil
		}
		c.forced = []state{open, paid}[dice.IntN(2)]
		return settle(m.Override(ctx, id, c.forced, customer, "so it is", change))
	case 4:
		c.event = pay
		handle, err := m.Do(ctx, id, pay, customer, lifecycle.Func(func(context.Context) error { return nil }), change)
		if err != nil {
			return settle(lifecycle.Record[state, string]{}, err)
		}
		if err := settle(handle.Admitted(), nil); err != nil {
			return err
		}
		c = said{event: settled} // at some time since Do was called
		rec, err := handle.Wait(ctx)
		if err != nil {
			return nil // somebody else has ended it
		}
		c.is = stand(&rec)
		h.note(client, object, called, c)
		return nil
	default:
		c.event = []event{note, note, reopen, drop}[dice.IntN(4)]
		return settle(m.Fire(ctx, id, c.event, customer, change))
	}
}
