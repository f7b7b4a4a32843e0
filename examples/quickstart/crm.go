package main

import (
	"context"
	"strings"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// request is a message of the controller to the CRM: the operation that a cluster is in.
type request struct {
	cluster   string
	operation lifecycle.OpID
	state     edgecloud.State // CreateRequested, UpdateRequested or DeleteRequested
}

// answer is a message of the CRM about an operation.
type answer struct {
	cluster   string
	operation lifecycle.OpID
	event     edgecloud.Event
	reason    string
}

// runCRM executes operations on the cloudlet. It keeps the answer of the last operation
// of each cluster, so that it only answers a repeated request.
func runCRM(ctx context.Context, requests *network[request], answers *network[answer]) error {
	last := make(map[string]answer)
	for {
		select {
		case <-ctx.Done():
			return nil
		case r := <-requests.out:
			a, found := last[r.cluster]
			switch {
			case found && a.operation > r.operation:
				continue // a late request: its operation has ended
			case !found || a.operation < r.operation:
				answers.send(ctx, answer{r.cluster, r.operation, edgecloud.Working, ""})
				a = execute(r)
				last[r.cluster] = a
			}
			answers.send(ctx, a)
		}
	}
}

// execute returns the outcome of an operation.
func execute(r request) answer {
	if fails(r.state, r.cluster) {
		return answer{r.cluster, r.operation, edgecloud.Fail, "the cloudlet has no free node"}
	}
	return answer{r.cluster, r.operation, edgecloud.Done, ""}
}

// fails reports whether an operation fails, by the last digit of the cluster.
func fails(requested edgecloud.State, cluster string) bool {
	digit := map[edgecloud.State]string{
		edgecloud.CreateRequested: "5", edgecloud.UpdateRequested: "4", edgecloud.DeleteRequested: "6",
	}[requested]
	return strings.HasSuffix(cluster, digit)
}
