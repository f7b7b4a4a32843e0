package main

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// request is what the controller sends to the CRM: bring this cluster to where
// its state leads, as this operation.
type request struct {
	cluster   string
	operation lifecycle.OpID
	state     edgecloud.State // CreateRequested, UpdateRequested or DeleteRequested
}

// answer is what the CRM sends back, about one operation.
type answer struct {
	cluster   string
	operation lifecycle.OpID
	event     edgecloud.Event
	reason    string
}

// controller passes requests on to the CRM, reports its answers, and does what
// the table leaves to it: it prepares deletions and takes failures back.
type controller struct {
	mgr      *manager
	changed  <-chan lifecycle.HistoryRow
	requests *network[request]
	answers  *network[answer]
	undone   map[edgecloud.State]int
}

func (c *controller) run(ctx context.Context) error {
	c.undone = make(map[edgecloud.State]int)
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case row := <-c.changed:
			err = c.follow(ctx, row)
		case a := <-c.answers.out:
			// Whatever the network makes of the answers: one that is late, or
			// comes twice, is told apart and changes nothing.
			_, err = c.mgr.Report(ctx, a.cluster, a.operation, a.event, edgecloud.CRM, a.reason)
		case <-again.C:
			err = c.askAgain(ctx)
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// follow does what a change asks of the controller.
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

// askAgain repeats the requests that have not been answered, because the
// request or the answer may be lost. The CRM does nothing twice.
func (c *controller) askAgain(ctx context.Context) error {
	requested := map[edgecloud.State]edgecloud.State{
		edgecloud.CreateRequested: edgecloud.CreateRequested, edgecloud.Creating: edgecloud.CreateRequested,
		edgecloud.UpdateRequested: edgecloud.UpdateRequested, edgecloud.Updating: edgecloud.UpdateRequested,
		edgecloud.DeleteRequested: edgecloud.DeleteRequested, edgecloud.Deleting: edgecloud.DeleteRequested,
	}
	var owed lifecycle.Select[edgecloud.State]
	owed.UnchangedFor = 5 * time.Millisecond
	for state := range requested {
		owed.States = append(owed.States, state)
	}
	for rec, err := range c.mgr.All(ctx, owed) {
		if err != nil {
			return err
		}
		c.requests.send(ctx, request{rec.ID, rec.Operation, requested[rec.State]})
	}
	return nil
}

// crm does the work on the cloudlet. It remembers how the last operation of
// each cluster ended, so that a request that comes again is only answered again.
type crm struct {
	requests *network[request]
	answers  *network[answer]
}

func (m *crm) run(ctx context.Context) error {
	last := make(map[string]answer)
	for {
		select {
		case <-ctx.Done():
			return nil
		case r := <-m.requests.out:
			a, known := last[r.cluster]
			switch {
			case known && a.operation > r.operation:
				continue // a late request for what is long over
			case !known || a.operation < r.operation:
				m.answers.send(ctx, answer{r.cluster, r.operation, edgecloud.Working, ""})
				a = work(r)
				last[r.cluster] = a
			}
			m.answers.send(ctx, a)
		}
	}
}

// work ends well, or not.
func work(r request) answer {
	if fails(r.state, number(r.cluster)) {
		return answer{r.cluster, r.operation, edgecloud.Fail, errNoRoom.Error()}
	}
	return answer{r.cluster, r.operation, edgecloud.Done, ""}
}

var errNoRoom = errors.New("the cloudlet has no room")
