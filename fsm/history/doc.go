// Package history checks a history by the tables of its time: rows from a store,
// or JSON lines, of many objects in one feed.
//
//	tables := []history.TableVersion{{Table: machine.Table()}}
//	summary, err := history.Check(history.Read(file), tables, nil)
//	if err != nil {
//		return err
//	}
//	for _, f := range summary.Findings {
//		fmt.Println(f) // line 5 "front" #3: wrong-actor: opening -done-> open by user; ...
//	}
//
// # Guarantees
//
//   - [Check] makes one pass. Its memory grows with the objects that are alive at
//     once and not with the length of the history.
//   - After a finding it continues from what the row states, so that one mistake is
//     one finding.
//   - An empty history is an error and never a pass.
//   - The same history gives the same findings. Their ids are stable; the texts may
//     change.
//
// # Findings
//
//	id                      meaning
//	unreadable              the line does not have the form of Read
//	unknown-machine         the row names a machine without a table
//	unknown-version         the row names a version without a table
//	unknown-name            the table does not have a state or an event of the row
//	wrong-version           another version has the step
//	illegal-step            no row of the table makes the step, or an earlier row always takes the event
//	wrong-actor             the table has the step for other actors
//	no-beginning            the first row of an object does not create it
//	created-twice           the row creates an object that exists
//	broken-chain            the row does not start where the row before it ended
//	outcome-without-intent  work that did not start ends, or a row has the number of another operation
//	wrong-origin            the origin is not the last state of rest
//	skipped-sequence        a sequence number is missing
//	repeated-sequence       a sequence number repeats or comes late
//	repeated-operation      a new operation has the number of an earlier one
//	time-backwards          the row is older than the row before it
//
// # Limits
//
// Check runs no guards. It sees what the rows state and not whether they are true. It does not
// compare a row with the event "(override)" or "(migrate)" with the rows of the table.
// If guards decide whether a step supersedes the operation or continues it, both are
// legal: a greater operation number starts an operation, and the same one continues it.
// A row that creates a removed object again may skip numbers, because a store may have
// forgotten the object: rows that are missing between the two are not found.
// [Read] follows encoding/json: of a repeated field the last one counts, and the
// case of letters in field names does not matter.
package history
