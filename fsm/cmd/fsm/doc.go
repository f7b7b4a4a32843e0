// Command fsm checks, draws and compares lifecycle tables, and judges histories
// by them.
//
//	go run github.com/interlock-go/interlock/fsm/cmd/fsm <command> [flags] [arguments]
//
//	fsm check   [flags] table.json...           say what is wrong with tables, and what is odd
//	fsm draw    [flags] table.json              draw a table
//	fsm diff    [flags] old.json new.json       judge a new version beside the old one
//	fsm verify  [flags] table.json [history]    judge a history by the table, or the table as a protocol
//	fsm tour    [flags] table.json              list a way through all rows, and what is to be refused
//	fsm help    [command]                       tell about a command and its flags
//
// Tables are lifecycle-table/1 documents, as [fsm.ParseTable] reads and
// [fsm.WriteTable] writes them; those of a machine come from its Table. A "-"
// stands for standard input. Flags may stand before, between and behind the
// arguments, and "--" ends them. All commands but draw take -format text or json;
// the text is for people and may change, the JSON is for programs and only grows.
//
// # Exit codes
//
//	0  all is well
//	1  there are findings: those that -fail-on names, or that the command is about
//	2  wrong usage, or input that cannot be read; nothing was judged
//
// A gate of a build is one line:
//
//	fsm check -fail-on=warning table.json
//	fsm diff -fail-on=unsafe table.released.json table.json
//
// # Histories
//
// verify takes JSON lines, one change of one object a line, as [history.Read]
// reads them from a store or from anywhere else, and says what the table of the
// time does not allow: see [history.Check]. -version NAME@SINCE=FILE gives further
// versions of the table. An empty history is bad input: nothing was shown by it. So
// are flags for a history where none is named.
//
// # Protocols
//
// verify without a history explores the table as a protocol: one object, the peer
// that does its work, and messages between them that are lost, come twice and in
// any order, an owner that dies, and a sweeper. It says whether the object can come
// to rest from wherever it gets to, with the shortest way to where it cannot.
// Whatever was not explored to the end is inconclusive, and fails too.
//
// # Compared versions
//
// diff says what the change of a table means for a fleet in which old and new
// binaries run side by side on the same objects: compatible, compatible once
// some states are drained, compatible with a mapping of names, or unsafe, with the
// shortest way to what goes wrong. See [evolve.Diff]. -fail-on names the least level
// that fails: drain, mapping, unsafe (the default), also difference for any
// difference and never. -map old=new says that a state has another name now,
// -map event:old=new, actor: and guard: say it of others. A name that was guessed
// passes no gate but never: confirm it with -map, or deny it with -no-guess.
// -hold "event in state" is what nobody asks for until the last old binary is gone.
package main
