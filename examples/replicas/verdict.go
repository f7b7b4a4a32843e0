package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/fsm/history"
	"github.com/interlock-go/interlock/lifecycle"
)

// object is all that is known of a VM at the end.
type object struct {
	vm       string
	state    string // of the record; "absent": there is none
	rows     []lifecycle.HistoryRow
	orders   []order // as the provider has received them
	requests []request
}

// tally is what was found in objects of one kind.
type tally struct {
	executed int // orders
	refused  int // late orders, by the provider
	stale    int // late orders that were executed
	faults   []string
}

// skew is how far the clocks of the database and of this program may differ.
const skew = 10 * time.Millisecond

// judge checks an object. Package history checks the rows alone.
func (t *tally) judge(o *object) {
	fault := func(format string, args ...any) {
		t.faults = append(t.faults, o.vm+": "+fmt.Sprintf(format, args...))
	}
	asked := map[string]lifecycle.HistoryRow{}
	started := map[lifecycle.OpID]lifecycle.HistoryRow{}
	last := "absent"
	for _, row := range o.rows {
		if _, twice := asked[row.Request]; twice && row.Request != "" {
			fault("a request was accepted twice: %v", row)
		}
		asked[row.Request] = row
		if row.Event == "fail" {
			fault("an operation has failed: %v", row)
		}
		if _, known := started[row.Operation]; !known {
			started[row.Operation] = row
		}
		last = row.To
	}
	if o.state != last {
		fault("the record is %s, the history ends with %s", o.state, last)
	}
	for _, r := range o.requests {
		row, written := asked[r.key]
		delete(asked, r.key)
		switch {
		case r.refused.IsZero() && (row.Event != r.event || row.Operation != r.operation):
			fault("a user was answered operation %d for %s (%s), the history has %v", r.operation, r.key, r.event, row)
		case !r.refused.IsZero() && written && row.At.Before(r.refused.Add(-skew)):
			// If the row came later, an earlier attempt without an answer was late.
			fault("a user was refused %s (%s), although the history had %v", r.key, r.event, row)
		}
	}
	delete(asked, "")
	for request, row := range asked {
		fault("no user was answered for %s, the history has %v", request, row)
	}
	first := map[lifecycle.OpID]order{} // if it was refused, the others were too
	var latest lifecycle.OpID
	for _, order := range o.orders {
		if row, known := started[order.Operation]; !known || row.Token != order.Admission {
			fault("no operation has the order of replica %s for operation %d", order.Replica, order.Operation)
		}
		if _, again := first[order.Operation]; !again {
			first[order.Operation] = order
		} else if by := first[order.Operation].Replica; by != order.Replica {
			fault("two replicas, %s and %s, have ordered operation %d", by, order.Replica, order.Operation)
		}
		if order.refused {
			t.refused++
			continue
		}
		t.executed++
		if order.Operation < latest {
			t.stale++
		}
		latest = max(latest, order.Operation)
	}
	for _, row := range o.rows {
		order, ok := first[row.Operation]
		if row.Event == "done" && (!ok || order.refused || row.At.Before(order.at.Add(-skew))) {
			fault("done without an order before it: %v", row)
		}
	}
}

// missing returns what the run is for and has not happened: without it, the run shows nothing.
func (w *world) missing(guarded, control *tally) (list []string) {
	check := func(happened bool, what string) {
		if !happened {
			list = append(list, "the run shows nothing about "+what)
		}
	}
	check(guarded.refused > 0, "late orders that the fence refuses")
	check(control.stale > 0, "late orders that are executed without the fence")
	check(w.users.replayed.Load() > 0, "answers that repeat a lost one")
	for _, fault := range faults {
		check(len(w.took[fault]) > 0, "operations of a replica that was "+fault)
	}
	return list
}

// judge reads all objects and returns an error if the verdict is bad.
func (w *world) judge(ctx context.Context) error {
	w.cloud.mu.Lock() // an order of a replica that has ended may still arrive
	defer w.cloud.mu.Unlock()
	var guarded, control tally
	var rows bytes.Buffer // JSON lines, as package history reads them
	lines := json.NewEncoder(&rows)
	for i := range *objects {
		o, err := w.object(ctx, nameOf(i))
		if err != nil {
			return err
		}
		if fenced(o.vm) {
			guarded.judge(o)
		} else {
			control.judge(o)
		}
		for _, row := range o.rows {
			err = errors.Join(err, lines.Encode(row))
		}
		if err != nil {
			return err
		}
	}
	summary, err := history.Check(history.Read(&rows), []history.TableVersion{{Name: "1", Table: w.vms.Machine().Table()}}, nil)
	stuck, unlisted := lifecycle.Stuck(ctx, w.vms, 0)
	if err := errors.Join(err, unlisted); err != nil {
		return err
	}
	found := slices.Concat(guarded.faults, control.faults)
	for _, finding := range summary.Findings {
		found = append(found, finding.String())
	}
	for _, s := range stuck {
		found = append(found, fmt.Sprintf("%s is stuck: %s", s.ID, s.Cause))
	}
	if guarded.stale > 0 {
		found = append(found, "late orders were executed in spite of the fence")
	}
	found = append(found, w.missing(&guarded, &control)...)
	w.printf("requests: %d accepted; %d attempts without an answer, %d answers that repeat a lost one",
		w.users.accepted.Load(), w.users.lost.Load(), w.users.replayed.Load())
	w.printf("history: %v", summary)
	w.printf("orders with the fence: %d executed, %d late ones refused, %d late ones executed", guarded.executed, guarded.refused, guarded.stale)
	w.printf("orders of the control: %d executed, %d late ones among them", control.executed, control.stale)
	for _, fault := range found[:min(len(found), 20)] {
		w.printf("fault: %s", fault)
	}
	if len(found) > 0 {
		return fmt.Errorf("the verdict is bad: %d faults", len(found))
	}
	w.printf("verdict: good")
	return nil
}

// object reads what is known of a VM.
func (w *world) object(ctx context.Context, vm string) (*object, error) {
	o := &object{vm: vm, state: "absent", orders: w.cloud.orders[vm], requests: w.users.requests[vm]}
	now, err := w.vms.Get(ctx, vm)
	if err == nil {
		o.state = now.State
	} else if !errors.Is(err, lifecycle.ErrNotFound) {
		return nil, err
	}
	for after := uint64(0); ; after = o.rows[len(o.rows)-1].Sequence {
		page, err := w.vms.History(ctx, vm, after, lifecycle.MaxPage)
		o.rows = append(o.rows, page...)
		if err != nil || len(page) < lifecycle.MaxPage {
			return o, err
		}
	}
}
