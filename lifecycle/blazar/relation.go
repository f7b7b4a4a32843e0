package blazar

import "github.com/interlock-go/interlock/lifecycle/relation"

// The roles of the reservations and events of a lease.
var (
	reservationRole = relation.NewRole("reservation", ReservationRecord)
	eventRoles      = map[string]relation.Role[EventState]{
		StartLease:     relation.NewRole(StartLease, EventRecord),
		EndLease:       relation.NewRole(EndLease, EventRecord),
		BeforeEndLease: relation.NewRole(BeforeEndLease, EventRecord),
	}
)

// Relationships is [Combinations] as a relation. A [Service] checks it in the commit
// of every transition, except to DELETING and ERROR. A lease needs exactly one event
// of each type for which the document requires a status. While a lease is updated,
// none of its events is in progress, before_end_lease included. Relationships is
// immutable and safe for concurrent use.
var Relationships = relation.Must(relationships())

func relationships() relation.Spec[LeaseState] {
	spec := relation.Spec[LeaseState]{Name: "relationships between statuses", Parent: Lease}
	for _, c := range Combinations() {
		row := relation.Row[LeaseState]{States: []LeaseState{c.Lease}}
		if c.Reservations != nil {
			row.Need = append(row.Need, reservationRole.All(c.Reservations...))
		}
		if c.Lease == LeaseUpdating {
			for _, t := range []string{StartLease, EndLease, BeforeEndLease} {
				row.Need = append(row.Need, eventRoles[t].None(EventInProgress))
			}
		} else if c.Start != nil {
			row.Need = append(row.Need, eventRoles[StartLease].One(c.Start...), eventRoles[EndLease].One(c.End...))
		}
		spec.Rows = append(spec.Rows, row)
	}
	return spec
}
