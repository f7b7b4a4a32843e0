package sqlstore

import (
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/lifecycle"
)

// value is an argument of a statement: a column of the record, or another fact of
// a change.
type value uint8

const (
	vMachine value = iota
	vID
	vState
	vOrigin
	vTarget
	vRevision
	vSequence
	vOperation
	vOwner
	vEpoch
	vWork
	vArgs
	vWorkOptions
	vDeadline
	vChangedAt
	vActor
	vEvent
	vReason
	vPayload
	vSaved
	vToken
	columns // the number of columns of a record

	vNow         = iota - 1 // the time of the commit, NULL if the statement itself reads the clock
	vWithin                 // microseconds until the deadline, or NULL
	vExpect                 // the number of the expected revision
	vExpectToken            // the token of the expected revision
	vFrom                   // the state before, as the table has it
	vFromState              // the state before, as the history has it
	vFromOrigin             // the origin before
	vTo                     // the state after, also if it is absent
	vToOrigin               // the origin after

	values // the number of values
)

var columnNames = [columns]string{
	"machine", "id", "state", "origin", "target", "revision", "sequence", "operation", "owner", "epoch",
	"work", "args", "work_options", "deadline", "changed_at", "actor", "event", "reason", "payload", "saved", "token",
}

func (v value) kind() kind {
	switch v {
	case vRevision, vSequence, vOperation, vEpoch, vDeadline, vChangedAt, vNow, vWithin, vExpect:
		return ofNumber
	case vArgs, vWorkOptions, vPayload, vSaved, vToken, vExpectToken:
		return ofBytes
	}
	return ofText
}

// metadata are the columns that a MetadataOnly change writes.
var metadata = []value{vOwner, vEpoch, vWork, vArgs, vWorkOptions, vRevision, vToken}

// historyColumn is a column of the history.
type historyColumn uint8

const (
	hMachine historyColumn = iota
	hID
	hSequence
	hRevision
	hToken
	hOperation
	hFrom
	hFromOrigin
	hTo
	hOrigin
	hEvent
	hActor
	hReason
	hAt
	historyColumns // the number of columns of the history
)

var (
	// historyNames are the names of the columns in the store's own table.
	historyNames = [historyColumns]string{
		"machine", "id", "sequence", "revision", "token", "operation", "from_state", "from_origin", "to_state", "origin",
		"event", "actor", "reason", "at",
	}
	// historyValues are the values that a change writes into the columns.
	historyValues = [historyColumns]value{
		vMachine, vID, vSequence, vRevision, vToken, vOperation, vFromState, vFromOrigin, vTo, vToOrigin, vEvent, vActor, vReason, vNow,
	}
)

// layout names the tables and columns of a store, in quotes. An empty name: there
// is no such table or column.
type layout struct {
	table         string
	column        [columns]string
	history       string
	historyColumn [historyColumns]string
	messages      string

	existing        bool   // the table is the caller's: it has any collation, and NULLs
	existingHistory bool   // the history is the caller's
	machine         string // the machine of all objects of an existing table
	removed         string // the state of the row of a removed object
	deletes         bool   // a removed object has no row
	nativeTimes     bool   // times have the engine's own type; otherwise they are microseconds
	indexes         string // begins the names of the indexes of the store's own table
	// noToken is the token of a row that no commit has written: zeros in the store's own
	// table; in an existing table, where such a row has NULL or no bytes, a value that no
	// token equals.
	noToken []byte
}

// own returns the layout of the store's own tables.
func (e *engine) own(prefix string) *layout {
	l := &layout{
		table: e.quoted(prefix + "objects"), indexes: prefix + "objects", messages: e.quoted(prefix + "messages"),
		noToken: make([]byte, len(lifecycle.Token{})),
	}
	for i, name := range columnNames {
		l.column[i] = e.quoted(name)
	}
	l.ownHistory(e, prefix)
	return l
}

func (l *layout) ownHistory(e *engine, prefix string) {
	l.history = e.quoted(prefix + "history")
	for i, name := range historyNames {
		l.historyColumn[i] = e.quoted(name)
	}
}

// named returns the columns of a list that the table has.
func (l *layout) named(list ...value) (named []value) {
	for _, v := range list {
		if l.column[v] != "" {
			named = append(named, v)
		}
	}
	return named
}

// from returns the columns of the table from one on.
func (l *layout) from(first value) (named []value) {
	for v := first; v < columns; v++ {
		named = append(named, l.named(v)...)
	}
	return named
}

// revision returns the revision of a record: the number of commits that have
// written the row, and the token of the last one. The number alone would repeat:
// InnoDB, and PostgreSQL without synchronous_commit, show a commit before it is on
// disk. If such an engine is killed, a record that was read may be lost, and another
// commit then writes a record with the same number.
//
//	revision = number                   the table keeps no token, or no commit has written one
//	         | number "-" token in hex
func (l *layout) revision(number int64, token []byte) lifecycle.Revision {
	if l.column[vToken] == "" || len(token) == 0 || number == 0 && !l.existing {
		return lifecycle.Revision(strconv.FormatInt(number, 10))
	}
	var room [20 + 1 + 2*len(lifecycle.Token{})]byte
	text := strconv.AppendInt(room[:0], number, 10)
	text = append(text, '-')
	return lifecycle.Revision(hex.AppendEncode(text, token))
}

// parse is the inverse of revision. A revision of another store has the number
// noNumber.
func (l *layout) parse(r lifecycle.Revision) (number int64, token []byte) {
	digits, rest, _ := strings.Cut(string(r), "-")
	number, err := strconv.ParseInt(digits, 10, 64)
	if err == nil && rest != "" {
		token, err = hex.DecodeString(rest)
	}
	if err != nil || number < 0 || number == maxNumber || l.revision(number, token) != r {
		return noNumber, nil
	}
	return number, token
}

const (
	noNumber                    = -1  // the number of no row
	absent   lifecycle.Revision = "0" // the revision of an object that no commit has written
)
