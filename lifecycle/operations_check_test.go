package lifecycle_test

import (
	"context"
	"errors"
	"slices"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// checkPath is path, but for overrides.
func (p *playground) checkPath(rows []lifecycle.HistoryRow) {
	table := workVM.Table()
	state, operation := "", lifecycle.OpID(0)
	ends := map[lifecycle.OpID]int{}
	for i, row := range rows {
		if row.Sequence != uint64(i+1) || row.From != state || row.Operation < operation {
			p.fault("%v does not go on where %v ended", row, rows[max(i-1, 0)])
			return
		}
		state, operation = row.To, row.Operation
		if row.To == "none" {
			state = ""
		}
		if row.Event == lifecycle.Overridden {
			continue
		}
		s, o, err := table.ParseStatus(or(row.From, "none"), or(row.FromOrigin, "none"))
		e, ok := table.EventIndex(row.Event)
		if err != nil || !ok {
			p.fault("%v: %v", row, err)
			return
		}
		candidates, err := table.Candidates(nil, s, o, e, row.Actor, false)
		if err != nil {
			p.fault("%v is no row of the table: %v", row, err)
			return
		}
		if to, _ := table.After(s, o, candidates[0]); table.States[to].Name != row.To {
			p.fault("%v does not lead where the row does", row)
		}
		if row.Actor == "worker" && row.Event != "progress" {
			if ends[row.Operation]++; ends[row.Operation] > 1 {
				p.fault("%v is a second outcome of its operation", row)
			}
		}
	}
}

// checkTicket compares the result of a ticket with what was written.
func (p *playground) checkTicket(ctx context.Context, h held, rows []lifecycle.HistoryRow) {
	over, stop := context.WithCancel(ctx)
	stop()
	_, err := h.h.Wait(over)
	operation, outcome, unwritten := h.h.Operation(), lifecycle.Succeeded, error(nil)
	if err != nil {
		e, ok := errors.AsType[*lifecycle.OutcomeError](err)
		if !ok {
			p.fault("a ticket of %s has no outcome: %v", h.id, err)
			return
		}
		operation, outcome, unwritten = e.Operation, e.Outcome, e.Unwritten
	}
	me := processLife{h.by.owner.Name(), h.by.owner.Epoch()}
	i := slices.IndexFunc(rows, func(r lifecycle.HistoryRow) bool {
		return r.Operation == operation && r.Actor == "worker" && p.writer[r.Token] == me
	})
	written := ""
	if i >= 0 {
		written = rows[i].Event
	}
	switch {
	case unwritten != nil:
		if written != "" || !errors.Is(unwritten, errDead) && rows[len(rows)-1].From != "inspecting" && !errors.Is(unwritten, fsm.ErrNotAllowed) {
			p.fault("%v; and it was written: %q", err, written)
		}
	case outcome == lifecycle.Lost && written != "":
		p.fault("%v; and it was written: %q", err, written)
	case err == nil && operation == h.h.Operation() && written != "done":
		p.fault("operation %d of %s succeeded, and %q was written", operation, h.id, written)
	case (outcome == lifecycle.Failed || outcome == lifecycle.Panicked) && written != "fail" && written != "done":
		p.fault("%v, and %q was written", err, written)
	}
}
