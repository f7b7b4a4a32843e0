package main

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// controller sends requests to the CRM and reports its answers. It also fires its own
// events of the table: it prepares deletions and undoes failures.
type controller struct {
	mgr      *manager
	changed  <-chan lifecycle.HistoryRow
	requests *network[request]
	answers  *network[answer]
	undone   map[edgecloud.State]int
	verdicts map[lifecycle.Verdict]int
}

func (c *controller) run(ctx context.Context) error {
	c.undone, c.verdicts = map[edgecloud.State]int{}, map[lifecycle.Verdict]int{}
	again := time.Tick(5 * time.Millisecond)
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case row := <-c.changed:
			err = c.follow(ctx, row)
		case a := <-c.answers.out:
			// A late or repeated answer changes nothing.
			var verdict lifecycle.Verdict
			verdict, err = c.mgr.Report(ctx, a.cluster, a.operation, a.event, edgecloud.CRM, &lifecycle.Change[edgecloud.ClusterSpec]{Reason: a.reason})
			c.verdicts[verdict]++
		case <-again:
			err = c.repeat(ctx)
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// follow handles a change of state.
func (c *controller) follow(ctx context.Context, row lifecycle.HistoryRow) error {
	switch state := edgecloud.State(row.To); state {
	case edgecloud.CreateRequested, edgecloud.UpdateRequested, edgecloud.DeleteRequested:
		c.requests.send(ctx, request{row.ID, row.Operation, state})
	case edgecloud.DeletePrepare:
		_, err := c.mgr.Fire(ctx, row.ID, edgecloud.Prepared, edgecloud.Controller, nil)
		return err
	case edgecloud.CreateError, edgecloud.UpdateError, edgecloud.DeleteError:
		c.undone[state]++
		_, err := c.mgr.Fire(ctx, row.ID, edgecloud.Undo, edgecloud.Controller,
			&lifecycle.Change[edgecloud.ClusterSpec]{Reason: row.Reason})
		return err
	}
	return nil
}

// repeat sends the unanswered requests again, because the request or the answer may be
// lost. The CRM executes no operation twice.
func (c *controller) repeat(ctx context.Context) error {
	requested := map[edgecloud.State]edgecloud.State{
		edgecloud.CreateRequested: edgecloud.CreateRequested, edgecloud.Creating: edgecloud.CreateRequested,
		edgecloud.UpdateRequested: edgecloud.UpdateRequested, edgecloud.Updating: edgecloud.UpdateRequested,
		edgecloud.DeleteRequested: edgecloud.DeleteRequested, edgecloud.Deleting: edgecloud.DeleteRequested,
	}
	unanswered := lifecycle.Select[edgecloud.State]{States: slices.Collect(maps.Keys(requested)), UnchangedFor: 5 * time.Millisecond}
	for rec, err := range c.mgr.All(ctx, unanswered) {
		if err != nil {
			return err
		}
		c.requests.send(ctx, request{rec.ID, rec.Operation, requested[rec.State]})
	}
	return nil
}
