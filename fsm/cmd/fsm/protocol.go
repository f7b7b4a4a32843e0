package main

import (
	"context"
	"errors"
	"flag"
	"fmt"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/explore"
	"github.com/interlock-go/interlock/internal/tablemodel"
)

// protocol has the bounds of the model of a table.
type protocol struct {
	operations, capacity, loss, duplicate, crash int
	megabytes, workers                           int
}

func protocolFlags(flags *flag.FlagSet) *protocol {
	p := &protocol{}
	count := func(to *int, name string, n int, usage string) {
		flags.IntVar(to, name, n, "without a history: "+usage)
	}
	count(&p.operations, "operations", 2, "users start this `many`")
	count(&p.capacity, "capacity", 2, "at most this `many` messages are in flight in each direction")
	count(&p.loss, "loss", 1, "the channels lose this `many` messages")
	count(&p.duplicate, "duplicate", 1, "the channels duplicate this `many` messages")
	count(&p.crash, "crash", 1, "the owner of the object dies this `many` times")
	count(&p.megabytes, "memory", 1024, "stop, inconclusive, beyond this many `MiB`")
	count(&p.workers, "workers", 0, "this `many` goroutines (default: the number of processors)")
	return p
}

// protocolResult is the output in JSON.
type protocolResult struct {
	Name     string   `json:"name"`
	Outcome  string   `json:"outcome"`
	Property string   `json:"property,omitempty"` // that does not hold
	Problem  string   `json:"problem,omitempty"`  // its error, or the reason for an inconclusive outcome
	States   int      `json:"states"`
	Steps    int      `json:"steps"`
	Depth    int      `json:"depth"`
	Unused   []string `json:"unused,omitempty"`
	Trace    string   `json:"trace,omitempty"` // as text
}

// protocol explores the table as a protocol. Every outcome but holds is a finding.
func (c *call) protocol(t *fsm.Table, file string, p *protocol, form string) (bool, error) {
	for _, n := range []int{p.operations, p.capacity, p.megabytes} {
		if n < 1 {
			return false, misused("-operations, -capacity and -memory: want 1 or more")
		}
	}
	none := func(n int) int { // for the model, 0 is the default and a negative number is none
		if n <= 0 {
			return -1
		}
		return n
	}
	sys, err := tablemodel.System(t, &tablemodel.Options{
		Operations: p.operations, Capacity: p.capacity,
		Loss: none(p.loss), Duplicate: none(p.duplicate), Crash: none(p.crash),
	})
	if err != nil {
		return false, fmt.Errorf("%s: %w", called(file), err)
	}
	v, err := sys.Explore(context.Background(), &explore.Config{Workers: p.workers, MaxBytes: min(int64(p.megabytes), 1<<40) << 20})
	if err != nil {
		return false, fmt.Errorf("%s: %w", called(file), err)
	}
	findings := v.Outcome != explore.Holds
	if form == "text" {
		return findings, c.print(v.String())
	}
	r := protocolResult{
		Name: t.Name, Outcome: v.Outcome.String(), Property: v.Property,
		States: v.States, Steps: v.Steps, Depth: v.Depth, Unused: v.Unused,
	}
	if err := errors.Join(v.Problem, v.Reason); err != nil {
		r.Problem = err.Error()
	}
	if v.Trace != nil {
		r.Trace = v.Trace.String()
	}
	return findings, c.json(r)
}
