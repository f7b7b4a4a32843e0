package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"iter"
	"slices"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/tour"
)

// toured is the output in JSON.
type toured struct {
	Name        string         `json:"name"`
	Transitions int            `json:"transitions"` // pairs of a row and a status
	Steps       int            `json:"steps"`       // of all sequences
	Sequences   [][]tour.Step  `json:"sequences"`
	Missed      []tour.Missed  `json:"missed"`
	Negatives   []negativeCell `json:"negatives"`
}

type negativeCell struct {
	State  string    `json:"state"`
	Origin string    `json:"origin"`
	Event  string    `json:"event"`
	Actor  fsm.Actor `json:"actor,omitempty"`
	Forced bool      `json:"forced,omitempty"`
	Refuse []string  `json:"refuse,omitempty"` // guards
	Why    string    `json:"why"`              // not-allowed, wrong-actor, forced-only or guard
}

func setupTour(flags *flag.FlagSet) func(*call, []string) (bool, error) {
	form := format(flags)
	only := oneOf(flags, "only", "what to list", "all", "tour", "negatives")
	every := flags.Bool("every-actor", false, "take each row by every actor that may fire it")
	stranger := flags.String("stranger", "", "an undeclared `actor`, of which the table refuses every request")
	return func(c *call, files []string) (bool, error) {
		if len(files) != 1 {
			return false, misused("want one table, found %d", len(files))
		}
		t, err := c.table(files[0])
		if err != nil {
			return false, err
		}
		if slices.Contains(t.Actors, fsm.Actor(*stranger)) {
			return false, misused("-stranger %s: the table declares this actor", *stranger)
		}
		var plan *tour.Tour
		var negatives iter.Seq[tour.Negative]
		if only.value != "negatives" {
			if plan, err = tour.New(t, &tour.Config{EveryActor: *every}); err != nil {
				return false, fmt.Errorf("%s: %w", called(files[0]), err)
			}
		}
		if only.value != "tour" {
			if negatives, err = tour.Negatives(t, &tour.NegativeConfig{Stranger: fsm.Actor(*stranger)}); err != nil {
				return false, fmt.Errorf("%s: %w", called(files[0]), err)
			}
		}
		findings := plan != nil && len(plan.Missed) > 0
		if form.value == "text" {
			return findings, c.tour(t, plan, negatives)
		}
		out, err := inJSON(t, plan, negatives)
		if err != nil {
			return false, fmt.Errorf("%s: %w", called(files[0]), err)
		}
		return findings, c.json(out)
	}
}

// tour writes the text in pieces, because a table may have very many negative cells.
func (c *call) tour(t *fsm.Table, plan *tour.Tour, negatives iter.Seq[tour.Negative]) error {
	w := bufio.NewWriter(c.out)
	if plan != nil {
		fmt.Fprintln(w, plan)
	}
	if negatives != nil {
		fmt.Fprintf(w, "%s: refused\n", t.Name)
		n := 0
		for cell := range negatives {
			n++
			if _, err := fmt.Fprintf(w, "  %s\n", cell); err != nil {
				return err
			}
		}
		fmt.Fprintf(w, "%d requests\n", n)
	}
	return w.Flush()
}

// maxNegatives is the number of negative cells that one document holds.
const maxNegatives = 1 << 18

func inJSON(t *fsm.Table, plan *tour.Tour, negatives iter.Seq[tour.Negative]) (toured, error) {
	out := toured{Name: t.Name, Sequences: [][]tour.Step{}, Missed: []tour.Missed{}, Negatives: []negativeCell{}}
	if plan != nil {
		out.Transitions, out.Steps = plan.Transitions, plan.Steps
		out.Sequences = append(out.Sequences, plan.Sequences...)
		out.Missed = append(out.Missed, plan.Missed...)
	}
	if negatives == nil {
		return out, nil
	}
	for n := range negatives {
		if len(out.Negatives) == maxNegatives {
			return out, fmt.Errorf("more than %d refused requests: too many for one JSON document", maxNegatives)
		}
		out.Negatives = append(out.Negatives, negativeCell{n.State, n.Origin, n.Event, n.Actor, n.Force, n.Refuse, why(n.Err)})
	}
	return out, nil
}

// why names a refusal for programs.
func why(err error) string {
	switch {
	case errors.Is(err, fsm.ErrWrongActor):
		return "wrong-actor"
	case errors.Is(err, fsm.ErrForcedOnly):
		return "forced-only"
	case errors.Is(err, fsm.ErrGuard):
		return "guard"
	}
	return "not-allowed"
}
