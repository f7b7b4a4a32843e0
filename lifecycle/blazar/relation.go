package blazar

import "github.com/interlock-go/interlock/lifecycle"

// The roles of the records of a [Service] towards their lease.
var (
	reservationRole = lifecycle.NewRole("reservation", ReservationRecord)
	eventRoles      = map[string]lifecycle.Role[EventState]{
		StartLease:     lifecycle.NewRole(StartLease, EventRecord),
		EndLease:       lifecycle.NewRole(EndLease, EventRecord),
		BeforeEndLease: lifecycle.NewRole(BeforeEndLease, EventRecord),
	}
)

// Relationships is [Combinations] as a relation: what a [Service] checks in the
// commit of every transition but that to ERROR. A lease needs exactly one event
// of each type where the document says of which status. No event of it may be in
// progress while it is updated, the one before its end included: the document
// says so of all events. It is immutable and safe for concurrent use.
var Relationships = lifecycle.MustRelation(relationships())

func relationships() lifecycle.RelationSpec[LeaseState] {
	spec := lifecycle.RelationSpec[LeaseState]{Name: "relationships between statuses", Parent: Lease}
	for _, c := range Combinations() {
		row := lifecycle.RelationRow[LeaseState]{States: []LeaseState{c.Lease}}
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
