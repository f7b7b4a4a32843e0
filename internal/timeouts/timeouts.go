// Package timeouts changes the timeouts of a table. Systems with configurable timeouts
// use it.
package timeouts

import (
	"fmt"
	"time"

	"github.com/interlock-go/interlock/fsm"
)

// Set returns the table with other timeouts in some states; without any, the same table, row
// by row. The error names a timeout that is not positive, or a state that has no timeout in
// the table.
func Set[S, E comparable](spec fsm.Spec[S, E], timeouts map[S]time.Duration) (fsm.Spec[S, E], error) {
	if len(timeouts) == 0 {
		return spec, nil
	}
	set := map[S]bool{}
	var rows []fsm.Row[S, E]
	for _, row := range spec.Rows {
		if row.Timeout == 0 {
			rows = append(rows, row)
			continue
		}
		for _, from := range row.From {
			one := row
			one.From = []S{from}
			if timeout, ok := timeouts[from]; ok {
				one.Timeout, set[from] = timeout, true
			}
			rows = append(rows, one)
		}
	}
	for state, timeout := range timeouts {
		if timeout <= 0 || !set[state] {
			return spec, fmt.Errorf("timeout %v of state %v in %s: use a positive one, and a state that has a timeout", timeout, state, spec.Name)
		}
	}
	spec.Rows = rows
	return spec, nil
}
