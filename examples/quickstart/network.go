package main

import (
	"context"
	"fmt"
	"math/rand/v2"
)

// network carries messages in one direction. It loses some, delivers some twice, and
// delivers some after messages that were sent later. One goroutine sends.
type network[M any] struct {
	out   chan M
	dice  *rand.Rand
	late  []M
	count traffic
}

type traffic struct{ sent, lost, twice, late int }

func (t traffic) String() string {
	return fmt.Sprintf("%d sent, %d of them lost, %d delivered twice, %d delivered late", t.sent, t.lost, t.twice, t.late)
}

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
	if len(n.late) > 50 { // the operations of most of them have ended
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
