package main

import (
	"bufio"
	"fmt"

	"github.com/interlock-go/interlock/fsm/tour"
	"github.com/interlock-go/interlock/internal/visible"
)

func declareTour(c *call) func() (bool, error) {
	refused := c.flags.Bool("refused", true, "list the refused requests too")
	origins := c.flags.Bool("origins", true, "take rows and list requests in every origin of an object; if false, once in each state")
	return func() (bool, error) {
		t, file := c.tables[0], nameOf(c.files[0])
		plan, err := tour.New(t, &tour.Config{AnyOrigin: !*origins})
		if err != nil {
			return false, fmt.Errorf("%s: %w", file, err)
		}
		findings := len(plan.Missed) > 0
		w := bufio.NewWriter(c.out) // a table may have very many refused requests
		fmt.Fprintln(w, plan)
		if *refused {
			negatives, err := tour.Negatives(t)
			if err != nil {
				return false, fmt.Errorf("%s: %w", file, err)
			}
			fmt.Fprintf(w, "%s: refused\n", visible.Text(t.Name))
			n, origin := 0, map[string]string{} // by state: the first
			for cell := range negatives {
				if first, ok := origin[cell.State]; ok && first != cell.Origin && !*origins {
					continue
				}
				n, origin[cell.State] = n+1, cell.Origin
				if _, err := fmt.Fprintf(w, "  %s\n", cell); err != nil {
					return false, err
				}
			}
			fmt.Fprintf(w, "%d requests\n", n)
		}
		return findings, w.Flush()
	}
}
