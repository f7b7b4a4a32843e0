// Command fsm checks, draws and compares lifecycle tables, and checks histories by
// them.
//
//	go run github.com/interlock-go/interlock/fsm/cmd/fsm <command> [flags] [arguments]
//
//	fsm check   [flags] table.json...           report faults and oddities of tables
//	fsm draw    [flags] table.json              draw a table
//	fsm diff    [flags] old.json new.json       compare two versions for a rolling upgrade
//	fsm verify  [flags] table.json [history]    check a history by the table, or the table as a protocol
//	fsm tour    [flags] table.json              list a path through all rows, and the refused requests
//	fsm help    [command]                       describe a command and its flags
//
// verify shows on standard error how far it is, if that is a terminal.
//
// Tables are lifecycle-table/1 documents, which [fsm.ReadTable] reads and
// [fsm.WriteTable] writes. A "-" stands for standard input. Flags stand before the
// arguments. check, diff and verify take -format text or json, diff also go. Programs must
// use the JSON, to which later versions only add fields.
//
// A table may have other fields, which no command reads: a misspelt field has no effect. The
// row numbers of the output count from 0, in the order of the table. Characters that are not
// printable appear as numbers or escapes, so that no name can control the terminal.
//
// # Exit codes
//
//	0  no findings
//	1  findings: those that -fail-on names, or that the command reports
//	2  wrong usage or unreadable input; there is no result
//
// A gate of a build is one line:
//
//	fsm check -fail-on=warning table.json
//	fsm diff table.released.json table.json
//
// # Histories
//
// verify reads JSON lines, one change of one object a line, see [history.Read], and
// reports the changes that the table of their time does not allow, see
// [history.Check]. -version NAME@SINCE=FILE gives a further version of the table: for rows
// that name it and, with @SINCE, for rows without a version from this time on. Other rows
// without a version are for the table itself. An empty history is an error. So are flags for a
// history without a history.
//
// # Protocols
//
// verify without a history explores the table as a protocol: one object, the peer
// that does its work, messages that are lost, duplicated and reordered, an owner
// that dies, and a sweeper. It reports
//
//   - whether the object can come to rest from every state that it reaches, or a shortest
//     path to a state from which it cannot
//   - whether every operation ends if the sweeper keeps sweeping, the peer keeps working
//     and messages are not lost forever, or a run in which one does not
//
// Users fire the rows of states at rest and the rows that supersede an operation. The peer
// answers for all actors but the sweeper, once in each transitional state, with any other
// event that has a row there and is not ignored. The model has no forced rows.
//
// A transitional state with the field manual counts as rest, because an operator moves the
// objects that stay in it.
//
// If the table names no actors, any actor takes its rows. If it has no deadlines, there is
// no sweeper, and an object is stuck after a lost message or the death of its owner. -loss 0
// and -crash 0 explore it without these faults.
//
// An inconclusive exploration is a finding. The verdict is about the budgets of operations,
// messages and faults that the output names, each with its flag. -trace FILE writes the
// path as a fixture, which [explore.ParseTrace] reads, for a test that replays it.
//
// # Compared versions
//
// diff reports whether old and new binaries may run side by side on the same
// objects: compatible, compatible once some states are drained, compatible with a
// mapping of names, or unsafe, with a shortest path to each hazard. See
// [evolve.Diff]. The exit code is 1 unless the versions are compatible without a
// condition. -fail-on names the lowest level that fails: drain (the default), mapping,
// unsafe, difference or never. -map old=new maps the name of a state;
// event:old=new, actor: and guard: map other names. -hold "event in state" names an
// event that no caller fires while an old binary runs.
//
// -format go prints the lifecycle.Version of the old table, the code that a new binary
// needs to read the records of old ones. An old state without a new name is a comment. Such a
// binary refuses what leads an old record to a state that the old table lacks: pass these
// events with -hold.
package main
