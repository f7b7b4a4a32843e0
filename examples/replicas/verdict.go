package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

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
		if _, known := started[row.Operation]; !known {
			started[row.Operation] = row
		}
		last = row.To
	}
	if o.state != last {
		fault("the record is %s, the history ends with %s", o.state, last)
	}
	for _, r := range o.requests {
		if row := asked[r.key]; row.Event != r.event || row.Operation != r.operation {
			fault("a user was answered %+v, the history has %v", r, row)
		}
	}
	executed := map[lifecycle.OpID]bool{}
	var latest lifecycle.OpID
	for _, order := range o.orders {
		if started[order.Operation].Token != order.Admission {
			fault("no operation has the order %+v", order)
		}
		if order.refused {
			t.refused++
			continue
		}
		t.executed++
		executed[order.Operation] = true
		if order.Operation < latest {
			t.stale++
		}
		latest = max(latest, order.Operation)
	}
	for _, row := range o.rows {
		if row.Event == "done" && !executed[row.Operation] {
			fault("done without an order: %v", row)
		}
	}
}

// judge reads all objects and returns an error if the verdict is bad.
func (w *world) judge(ctx context.Context) error {
	var guarded, control tally
	var unread error
	rows := func(yield func(history.Row, error) bool) {
		for i := range *objects {
			o, err := w.object(ctx, nameOf(i))
			if err != nil {
				unread = err
				return
			}
			if fenced(o.vm) {
				guarded.judge(o)
			} else {
				control.judge(o)
			}
			for _, row := range o.rows {
				if !yield(rowOf(&row), nil) {
					return
				}
			}
		}
	}
	summary, err := history.Check(rows, []history.TableVersion{{Name: "1", Table: w.vms.Machine().Table()}}, nil)
	stuck, unlisted := w.vms.Stuck(ctx, 0)
	if err := errors.Join(unread, err, unlisted); err != nil {
		return err
	}
	faults := slices.Concat(guarded.faults, control.faults)
	for _, finding := range summary.Findings {
		faults = append(faults, finding.String())
	}
	for _, s := range stuck {
		faults = append(faults, fmt.Sprintf("%s is stuck: %s", s.ID, s.Cause))
	}
	if guarded.stale > 0 {
		faults = append(faults, "late orders were executed in spite of the fence")
	}
	if control.stale == 0 {
		faults = append(faults, "no late order was executed without the fence either: the run shows nothing")
	}
	w.printf("requests: %d accepted, %d times because an earlier attempt had been; %d attempts without an answer",
		w.users.accepted.Load(), w.users.replayed.Load(), w.users.lost.Load())
	w.printf("history: %v", summary)
	w.printf("orders with the fence: %d executed, %d late ones refused, %d late ones executed", guarded.executed, guarded.refused, guarded.stale)
	w.printf("orders of the control: %d executed, %d late ones among them", control.executed, control.stale)
	for _, fault := range faults[:min(len(faults), 20)] {
		w.printf("fault: %s", fault)
	}
	if len(faults) > 0 {
		return fmt.Errorf("the verdict is bad: %d faults", len(faults))
	}
	w.printf("verdict: good")
	return nil
}

// object reads what is known of a VM.
func (w *world) object(ctx context.Context, vm string) (*object, error) {
	o := &object{vm: vm, state: "absent", orders: w.cloud.received(vm), requests: w.users.requests[vm]}
	now, err := w.vms.Get(ctx, vm)
	if err == nil {
		o.state = now.State
	} else if !errors.Is(err, lifecycle.ErrNotFound) {
		return nil, err
	}
	o.rows, err = w.vms.History(ctx, vm, 0, lifecycle.MaxPage)
	return o, err
}

func rowOf(row *lifecycle.HistoryRow) history.Row {
	return history.Row{
		Machine: row.Machine, ID: row.ID, Version: row.Version, Sequence: row.Sequence, Operation: uint64(row.Operation),
		From: row.From, FromOrigin: row.FromOrigin, To: row.To, Origin: row.Origin, Event: row.Event, Actor: row.Actor, At: row.At,
	}
}
