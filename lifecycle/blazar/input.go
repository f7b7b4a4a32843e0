package blazar

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// InputError is a fault in a requested lease or update. It matches
// [lifecycle.ErrInvalid]. Nothing was changed.
type InputError struct{ Field, Reason string }

// Error returns one line.
func (e *InputError) Error() string { return fmt.Sprintf("blazar: %s: %s", e.Field, e.Reason) }

// Is matches [lifecycle.ErrInvalid].
func (e *InputError) Is(target error) bool { return target == lifecycle.ErrInvalid }

// LeaseUpdate is a change of a lease. Fields that are zero change nothing. A
// LeaseUpdate is read only.
type LeaseUpdate struct {
	Name                  string
	Start, End, BeforeEnd time.Time
	Amounts               map[string]int // by id of the reservation
}

// checkID refuses ids of leases from which no ids of reservations can be made.
func checkID(id string) error {
	const room = 80 // for the rest of such an id, and for a time before it
	switch {
	case strings.Contains(id, "/"):
		return &InputError{"id", "a slash in it"}
	case len(id) > lifecycle.MaxID-room:
		return &InputError{"id", fmt.Sprintf("%d bytes, more than %d", len(id), lifecycle.MaxID-room)}
	}
	return nil
}

// checkSpec refuses an invalid lease, and sets the defaults.
func (s *Service) checkSpec(spec *LeaseSpec) error {
	now := s.minute()
	if spec.Start.IsZero() {
		spec.Start = s.config.Now()
	}
	switch {
	case spec.Start.Before(now):
		return &InputError{"start", "it must not be in the past"}
	case !spec.End.After(spec.Start):
		return &InputError{"end", "it must be after the start"}
	}
	if spec.BeforeEnd.IsZero() && s.config.Notice > 0 {
		spec.BeforeEnd = later(spec.End.Add(-s.config.Notice), spec.Start)
	}
	if err := checkBeforeEnd(spec); err != nil {
		return err
	}
	for i, r := range spec.Reservations {
		field := fmt.Sprintf("reservation %d", i+1)
		if _, known := s.config.Plugins[r.Resource]; !known {
			return &InputError{field, fmt.Sprintf("no resources of type %q can be reserved", r.Resource)}
		}
		if r.Amount < 0 {
			return &InputError{field, fmt.Sprintf("an amount of %d", r.Amount)}
		}
	}
	return nil
}

// apply changes the content of a lease, or returns why that is not possible. A lease
// has begun, or is over, if its event was tried or was due before now.
func (s *Service) apply(spec *LeaseSpec, update *LeaseUpdate, amounts map[int]int, begun, over bool) error {
	now, before := s.minute(), *spec
	set := func(to *time.Time, from time.Time) {
		if !from.IsZero() {
			*to = from
		}
	}
	set(&spec.Start, update.Start)
	set(&spec.End, update.End)
	moved := !spec.Start.Equal(before.Start) || !spec.End.Equal(before.End) || !update.BeforeEnd.IsZero() || len(amounts) > 0
	switch {
	case !moved: // a name can always be changed
	case over || before.End.Before(now):
		return &InputError{"end", "a lease that is over can only be renamed"}
	case (begun || before.Start.Before(now)) && !spec.Start.Equal(before.Start):
		return &InputError{"start", "the lease has begun"}
	case !spec.Start.Equal(before.Start) && spec.Start.Before(now):
		return &InputError{"start", "it must not be in the past"}
	case !spec.End.After(spec.Start) || spec.End.Before(now):
		return &InputError{"end", "it must be after the start, and not in the past"}
	}
	switch {
	case !update.BeforeEnd.IsZero():
		spec.BeforeEnd = update.BeforeEnd
	case !spec.BeforeEnd.IsZero(): // as long before the end as it was
		spec.BeforeEnd = later(spec.End.Add(-before.End.Sub(before.BeforeEnd)), spec.Start)
	}
	if err := checkBeforeEnd(spec); err != nil {
		return err
	}
	spec.Reservations = slices.Clone(spec.Reservations)
	for i, amount := range amounts {
		switch {
		case i >= len(spec.Reservations):
			return &InputError{"reservation", "the lease has fewer of them"}
		case amount < 0:
			return &InputError{"reservation", fmt.Sprintf("an amount of %d", amount)}
		}
		spec.Reservations[i].Amount = amount
	}
	if update.Name != "" {
		spec.Name = update.Name
	}
	return nil
}

func checkBeforeEnd(spec *LeaseSpec) error {
	if !spec.BeforeEnd.IsZero() && (spec.BeforeEnd.Before(spec.Start) || !spec.BeforeEnd.Before(spec.End)) {
		return &InputError{"before end", "it must be within the lease"}
	}
	return nil
}

// minute returns the begin of the present minute. A lease that starts in this minute
// starts now.
func (s *Service) minute() time.Time { return s.config.Now().Truncate(time.Minute) }

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// unrefused returns an error with the same text that does not match [ErrRefused].
func unrefused(err error) error {
	if errors.Is(err, ErrRefused) {
		return errors.New(err.Error())
	}
	return err
}
