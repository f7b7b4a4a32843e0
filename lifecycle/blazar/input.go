package blazar

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// invalid returns the error about a field of a requested lease or update.
func invalid(field, format string, args ...any) error {
	return fmt.Errorf("%w: %s: "+format, append([]any{lifecycle.ErrInvalid, field}, args...)...)
}

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
		return invalid("id", "it contains a slash")
	case len(id) > lifecycle.MaxID-room:
		return invalid("id", "%d bytes, more than %d", len(id), lifecycle.MaxID-room)
	}
	return nil
}

// checkNew refuses an invalid lease that is to be created, and sets the defaults.
func (s *Service) checkNew(spec *LeaseSpec) error {
	if spec.Start.IsZero() {
		spec.Start = s.config.Now()
	}
	if spec.Start.Before(s.minute()) {
		return invalid("start", "it must not be in the past")
	}
	for i, r := range spec.Reservations {
		if r.ResourceID != "" {
			return invalid(fmt.Sprintf("reservation %d", i+1), "its plugin assigns the resources, not %q", r.ResourceID)
		}
	}
	return s.checkSpec(spec)
}

// checkSpec refuses an invalid lease.
func (s *Service) checkSpec(spec *LeaseSpec) error {
	if !spec.End.After(spec.Start) {
		return invalid("end", "it must be after the start")
	}
	for i, r := range spec.Reservations {
		field := fmt.Sprintf("reservation %d", i+1)
		if _, known := s.config.Plugins[r.Resource]; !known {
			return invalid(field, "there is no plugin for resources of type %q", r.Resource)
		}
		if r.Amount < 0 {
			return invalid(field, "an amount of %d", r.Amount)
		}
	}
	return nil
}

// contentAfter returns the content of a lease after an update, or why that is not possible. A
// lease has started, or has ended, if its event was executed or was due before now.
func (s *Service) contentAfter(lease *LeaseDetails, update *LeaseUpdate) (LeaseSpec, error) {
	now, before, spec := s.minute(), &lease.Spec, lease.Spec
	if !update.Start.IsZero() {
		spec.Start = update.Start
	}
	if !update.End.IsZero() {
		spec.End = update.End
	}
	moved := !spec.Start.Equal(before.Start)
	onlyName := !moved && spec.End.Equal(before.End) && len(update.Amounts) == 0
	switch {
	case onlyName:
	case lease.event(EndLease).Status != EventUndone || before.End.Before(now):
		return spec, invalid("end", "only name and attributes of a lease that has ended can change")
	case moved && (lease.event(StartLease).Status != EventUndone || before.Start.Before(now)):
		return spec, invalid("start", "the lease has started")
	case moved && spec.Start.Before(now):
		return spec, invalid("start", "it must not be in the past")
	case !spec.End.After(spec.Start) || spec.End.Before(now):
		return spec, invalid("end", "it must be after the start, and not in the past")
	}
	spec.Reservations = slices.Clone(spec.Reservations)
	for id, amount := range update.Amounts {
		var request *Request
		for _, r := range lease.Reservations {
			if r.ID == id {
				request = spec.request(r.Number)
			}
		}
		switch {
		case request == nil:
			return spec, invalid("reservation "+id, "the lease has no such reservation")
		case amount < 0:
			return spec, invalid("reservation "+id, "an amount of %d", amount)
		}
		request.Amount = amount
	}
	if update.Name != "" {
		spec.Name = update.Name
	}
	if len(update.Attributes) > 0 {
		spec.Attributes = slices.Clone(update.Attributes)
	}
	for i := range lease.Reservations {
		if _, _, changes := lease.allocations(i, &spec); changes {
			if _, err := s.plugin(lease.Reservations[i].Resource); err != nil {
				return spec, err
			}
		}
	}
	// The content is written only after the plugins were called.
	return spec, lifecycle.Limits{}.CheckPayload(spec)
}

// minute returns the begin of the present minute. A lease that starts in this minute
// starts now.
func (s *Service) minute() time.Time { return s.config.Now().Truncate(time.Minute) }
