package main

import (
	"context"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// network carries messages one way. Some are lost, some are delivered twice, and some
// late, which is after messages that were sent later. One goroutine sends.
type network[M any] struct {
	out   chan M
	dice  *rand.Rand
	late  []M
	count traffic
}

type traffic struct{ sent, lost, twice, late int }

func newNetwork[M any](seed uint64) *network[M] {
	return &network[M]{out: make(chan M, 1<<16), dice: rand.New(rand.NewPCG(seed, seed))}
}

// send does not wait for the receiver unless 65,536 messages wait.
func (n *network[M]) send(ctx context.Context, msg M) {
	n.count.sent++
	switch roll := n.dice.IntN(100); {
	case roll < 10:
		n.count.lost++
	case roll < 25:
		n.count.twice++
		n.deliver(ctx, msg)
		n.deliver(ctx, msg)
	case roll < 45:
		n.count.late++
		n.late = append(n.late, msg)
	default:
		n.deliver(ctx, msg)
	}
	if len(n.late) > 50 { // long enough for most of them to be too late
		for _, msg := range n.late {
			n.deliver(ctx, msg)
		}
		n.late = nil
	}
}

func (n *network[M]) deliver(ctx context.Context, msg M) {
	select {
	case n.out <- msg:
	case <-ctx.Done():
	}
}

// fails reports whether an operation fails, by the number of the cluster.
func fails(requested edgecloud.State, i int) bool {
	switch requested {
	case edgecloud.CreateRequested:
		return i%17 == 5
	case edgecloud.UpdateRequested:
		return i%13 == 4
	case edgecloud.DeleteRequested:
		return i%19 == 6
	}
	return false
}

func number(cluster string) int {
	i, err := strconv.Atoi(strings.TrimPrefix(cluster, "c-"))
	if err != nil {
		panic("quickstart: not an id of a cluster: " + cluster)
	}
	return i
}
