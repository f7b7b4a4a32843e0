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
	Transitions int            `json:"transitions"` // to take: pairs of a row and a status
	Steps       int            `json:"steps"`       // of all sequences
	Sequences   [][]tourStep   `json:"sequences"`
	Missed      []missed       `json:"missed"` // rows that no object can take
	Negatives   []negativeCell `json:"negatives"`
}

type tourStep struct {
	State    string    `json:"state"`
	Origin   string    `json:"origin"`
	Event    string    `json:"event"`
	Actor    fsm.Actor `json:"actor,omitempty"`
	Forced   bool      `json:"forced,omitempty"`
	Agree    []string  `json:"agree,omitempty"`  // guards
	Refuse   []string  `json:"refuse,omitempty"` // guards
	To       string    `json:"to"`
	ToOrigin string    `json:"to_origin"`
	Row      int       `json:"row"`
	Ignored  bool      `json:"ignored,omitempty"`
}

type missed struct {
	Row    int    `json:"row"`
	From   string `json:"from"`
	Reason string `json:"reason"`
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
	every := flags.Bool("every-actor", false, "take each row by every actor who may")
	stranger := flags.String("stranger", "", "an `actor` that the table does not declare, and who is to be refused everything")
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

// tour writes text as it comes: there may be very many negative cells.
func (c *call) tour(t *fsm.Table, plan *tour.Tour, negatives iter.Seq[tour.Negative]) error {
	w := bufio.NewWriter(c.out)
	if plan != nil {
		fmt.Fprintln(w, plan)
	}
	if negatives != nil {
		fmt.Fprintf(w, "%s: to be refused\n", t.Name)
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

// maxNegatives is how many negative cells are put into one document.
const maxNegatives = 1 << 18

func inJSON(t *fsm.Table, plan *tour.Tour, negatives iter.Seq[tour.Negative]) (toured, error) {
	out := toured{Name: t.Name, Sequences: [][]tourStep{}, Missed: []missed{}, Negatives: []negativeCell{}}
	if plan != nil {
		out.Transitions, out.Steps = plan.Transitions, plan.Steps
		for _, steps := range plan.Sequences {
			sequence := []tourStep{}
			for _, s := range steps {
				sequence = append(sequence, tourStep{
					s.From, s.Origin, s.Event, s.Actor, s.Force, s.Agree, s.Refuse, s.To, s.ToOrigin, s.Row, s.Ignored,
				})
			}
			out.Sequences = append(out.Sequences, sequence)
		}
		for _, m := range plan.Missed {
			out.Missed = append(out.Missed, missed(m))
		}
	}
	if negatives == nil {
		return out, nil
	}
	for n := range negatives {
		if len(out.Negatives) == maxNegatives {
			return out, fmt.Errorf("more than %d requests to be refused: too many for one JSON document", maxNegatives)
		}
		out.Negatives = append(out.Negatives, negativeCell{n.State, n.Origin, n.Event, n.Actor, n.Force, n.Refuse, why(n.Err)})
	}
	return out, nil
}

// why names a refusal for programs.
func why(err error) string {
	for _, w := range []struct {
		err  error
		name string
	}{
		{fsm.ErrNotAllowed, "not-allowed"}, {fsm.ErrWrongActor, "wrong-actor"}, {fsm.ErrForcedOnly, "forced-only"}, {fsm.ErrGuard, "guard"},
	} {
		if errors.Is(err, w.err) {
			return w.name
		}
	}
	return err.Error()
}
