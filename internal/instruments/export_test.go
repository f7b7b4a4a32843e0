package instruments

import (
	"context"

	"github.com/interlock-go/interlock/lifecycle"
)

// AddStuck adds the numbers of the stuck objects that a function finds.
func (g *Gauges) AddStuck(machine string, find func(context.Context) ([]lifecycle.SweepResult, error)) {
	add(g, &g.managers, machine, &stuck{find: find})
}
