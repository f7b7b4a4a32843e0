package main

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// request is what the controller sends to the CRM: the operation that the cluster is
// in.
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

// controller sends requests to the CRM and reports its answers. It also fires its own
// events of the table: it prepares deletions and undoes failures.
type controller struct {
	mgr      *manager
	changed  <-chan lifecycle.HistoryRow
	requests *network[request]
	answers  *network[answer]
	undone   map[edgecloud.State]int
	verdicts map[lifecycle.Verdict]int // on the answers
}

func (c *controller) run(ctx context.Context) error {
	c.undone, c.verdicts = map[edgecloud.State]int{}, map[lifecycle.Verdict]int{}
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
			// An answer that comes late or twice changes nothing.
			var verdict lifecycle.Verdict
			verdict, err = c.mgr.Report(ctx, a.cluster, a.operation, a.event, edgecloud.CRM, a.reason)
			c.verdicts[verdict]++
		case <-again.C:
			err = c.repeat(ctx)
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// follow does what the controller has to do after a change.
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

// repeat sends the requests again that have not been answered, because the request or
// the answer may be lost. The CRM does nothing twice.
func (c *controller) repeat(ctx context.Context) error {
	requested := map[edgecloud.State]edgecloud.State{
		edgecloud.CreateRequested: edgecloud.CreateRequested, edgecloud.Creating: edgecloud.CreateRequested,
		edgecloud.UpdateRequested: edgecloud.UpdateRequested, edgecloud.Updating: edgecloud.UpdateRequested,
		edgecloud.DeleteRequested: edgecloud.DeleteRequested, edgecloud.Deleting: edgecloud.DeleteRequested,
	}
	var unanswered lifecycle.Select[edgecloud.State]
	unanswered.UnchangedFor = 5 * time.Millisecond
	for state := range requested {
		unanswered.States = append(unanswered.States, state)
	}
	for rec, err := range c.mgr.All(ctx, unanswered) {
		if err != nil {
			return err
		}
		c.requests.send(ctx, request{rec.ID, rec.Operation, requested[rec.State]})
	}
	return nil
}

// crm does the work on the cloudlet. It keeps the answer of the last operation of each
// cluster, so that it only answers a repeated request.
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
				continue // a late request for an operation that is over
			case !known || a.operation < r.operation:
				m.answers.send(ctx, answer{r.cluster, r.operation, edgecloud.Working, ""})
				a = work(r)
				last[r.cluster] = a
			}
			m.answers.send(ctx, a)
		}
	}
}

// work returns the outcome of an operation.
func work(r request) answer {
	if fails(r.state, number(r.cluster)) {
		return answer{r.cluster, r.operation, edgecloud.Fail, errNoRoom.Error()}
	}
	return answer{r.cluster, r.operation, edgecloud.Done, ""}
}

var errNoRoom = errors.New("the cloudlet has no room")
