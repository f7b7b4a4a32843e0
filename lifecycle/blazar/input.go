package blazar

import (
	"encoding/json"
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
	Name       string
	Start, End time.Time
	Amounts    map[string]int  // by id of the reservation
	Attributes json.RawMessage // empty: they stay; the JSON value null is a value
}

// checkID refuses ids of leases from which no ids of reservations can be made.
func checkID(id string) error {
	const room = 80 // for the rest of such an id
	switch {
	case strings.Contains(id, "/"):
		return &InputError{"id", "it contains a slash"}
	case len(id) > lifecycle.MaxID-room:
		return &InputError{"id", fmt.Sprintf("%d bytes, more than %d", len(id), lifecycle.MaxID-room)}
	}
	return nil
}

// checkNew refuses an invalid lease that is to be created, and sets the defaults.
func (s *Service) checkNew(spec *LeaseSpec) error {
	if spec.Start.IsZero() {
		spec.Start = s.config.Now()
	}
	if spec.Start.Before(s.minute()) {
		return &InputError{"start", "it must not be in the past"}
	}
	for i, r := range spec.Reservations {
		if r.ResourceID != "" {
			return &InputError{fmt.Sprintf("reservation %d", i+1), fmt.Sprintf("its plugin assigns the resources, not %q", r.ResourceID)}
		}
	}
	return s.checkSpec(spec)
}

// checkSpec refuses an invalid lease.
func (s *Service) checkSpec(spec *LeaseSpec) error {
	if !spec.End.After(spec.Start) {
		return &InputError{"end", "it must be after the start"}
	}
	for i, r := range spec.Reservations {
		field := fmt.Sprintf("reservation %d", i+1)
		if _, known := s.config.Plugins[r.Resource]; !known {
			return &InputError{field, fmt.Sprintf("there is no plugin for resources of type %q", r.Resource)}
		}
		if r.Amount < 0 {
			return &InputError{field, fmt.Sprintf("an amount of %d", r.Amount)}
		}
	}
	return nil
}

// apply changes the content of a lease, or returns why that is not possible. A lease
// has started, or has ended, if its event was executed or was due before now.
func (s *Service) apply(spec *LeaseSpec, update *LeaseUpdate, amounts map[int]int, started, ended bool) error {
	now, before := s.minute(), *spec
	if !update.Start.IsZero() {
		spec.Start = update.Start
	}
	if !update.End.IsZero() {
		spec.End = update.End
	}
	moved := !spec.Start.Equal(before.Start)
	onlyName := !moved && spec.End.Equal(before.End) && len(amounts) == 0
	switch {
	case onlyName:
	case ended || before.End.Before(now):
		return &InputError{"end", "only name and attributes of a lease that has ended can change"}
	case moved && (started || before.Start.Before(now)):
		return &InputError{"start", "the lease has started"}
	case moved && spec.Start.Before(now):
		return &InputError{"start", "it must not be in the past"}
	case !spec.End.After(spec.Start) || spec.End.Before(now):
		return &InputError{"end", "it must be after the start, and not in the past"}
	}
	spec.Reservations = slices.Clone(spec.Reservations)
	for i, amount := range amounts {
		switch {
		case i >= len(spec.Reservations):
			return &InputError{"reservation", "the lease has fewer reservations"}
		case amount < 0:
			return &InputError{"reservation", fmt.Sprintf("an amount of %d", amount)}
		}
		spec.Reservations[i].Amount = amount
	}
	if update.Name != "" {
		spec.Name = update.Name
	}
	if len(update.Attributes) > 0 {
		spec.Attributes = slices.Clone(update.Attributes)
	}
	// The content is written only after the plugins were called.
	return lifecycle.Limits{}.CheckPayload(spec)
}

// minute returns the begin of the present minute. A lease that starts in this minute
// starts now.
func (s *Service) minute() time.Time { return s.config.Now().Truncate(time.Minute) }
