// Package evolve compares two versions of a table. It answers whether old and new
// binaries may run side by side on the same objects during a rolling upgrade.
//
//	report, err := evolve.Diff(oldTable, newTable, &evolve.Config{
//		States: map[string]string{"Ready": "Running"}, // renamed
//	})
//	if err != nil {
//		return err
//	}
//	fmt.Println(report.Level) // compatible, drain, mapping or unsafe
//	for _, hazard := range report.Hazards {
//		fmt.Println(hazard.ID, hazard.Message)
//	}
//
// # Verdict
//
// The worst hazard is the verdict:
//
//	compatible  the versions run side by side for any time, and back again
//	drain       compatible while some states are empty and no caller fires what leads there
//	mapping     compatible once names are translated, see Report.Mapping
//	unsafe      an old or a new node would do what is wrong for the other
//
// A hazard that a drain removes is unsafe if the state cannot be kept empty.
//
//	id               level         meaning
//	unknown-to-old   unsafe        a new node writes a state that an old one cannot read
//	unknown-to-new   drain         an old node writes a state that a new one cannot read
//	forbidden        unsafe        an old node does what the new table forbids
//	ignored          unsafe        an old node accepts and ignores what the new table forbids
//	two-results      unsafe        the same request has two results
//	refused-by-old   note          an old node refuses what the new table allows
//	entry-forbidden  unsafe        an old node adds objects as the new table does not
//	deadline-action  unsafe        the sweepers of the two versions act differently
//	deadline-added   drain         objects that an old node put there have no deadline
//	deadline-time    note          the sweepers do the same after different times
//	kind             unsafe        the versions disagree on transitional, at rest or absent
//	undo             drain         failed for one version, at rest for the other: one drops what undo needs
//	stranded         unsafe        one version alone cannot bring the object to rest
//	renamed          mapping       the machine, state, event or actor has another name
//
// [Report.Code] returns the translation of states as code for package lifecycle, which
// applies it to the records. Diff does not know that the new binaries do so: map the names by
// [Config].States, and withhold the events that lead to states which the old table lacks
// ([Config].Hold).
//
// # Actors
//
// A row without actors is open to every actor that its table names, and to the sweeper
// only if another row of the same state and event names it. If the table names none but
// the sweeper, the row is open to one anonymous actor. If the table names no actor at all,
// the row is also open to every actor that the other table names.
//
// # Guarantees
//
//   - Diff accepts every pair of tables, sound or not, and changes none. It is safe
//     for concurrent use. The same pair gives the same report.
//   - Equal tables give no differences and no hazards. Titles, notes, sources and the
//     order of declaration make no difference. The order of trial does, and so does the
//     first of several absent states, from which managers create objects.
//   - Every hazard except a renaming has a shortest path to it as its witness: from no
//     object, or from an object in the field if there is no such path.
//
// # Limits
//
//   - Guards of one name decide alike, guards of different names independently.
//   - Diff does not see overrides, payloads, handlers, the configuration of a manager
//     and the preconditions, relations and aggregates over these states.
//   - Diff does not follow an object after a version that cannot read it: what comes next
//     is reported when this hazard is gone.
//   - Two verdicts do not add up: compare the versions that run side by side.
//   - Diff treats a name that is gone and a new name as unrelated, unless the Config
//     maps one to the other.
//   - Of two old states that become one, only one has the new name. Drain the other: move its
//     objects while the old version runs.
package evolve
