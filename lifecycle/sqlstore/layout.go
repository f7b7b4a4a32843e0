package sqlstore

import (
	"bytes"
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
	vAdmission
	vChangeToken
	vFence
	vVersion
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
	vRequest                // NULL: none
	vFingerprint            // of the request, or NULL
	vFields                 // the columns of fields of the payload, a []any

	values // the number of values
)

var columnNames = [columns]string{
	"machine", "id", "state", "origin", "target", "revision", "sequence", "operation", "admission", "change_token",
	"fence", "table_version",
	"owner", "epoch",
	"work", "args", "work_options", "deadline", "changed_at", "actor", "event", "reason", "payload", "saved", "token",
}

// historyNames are the columns of the history, by the value that a change writes.
var historyNames = [values]string{
	vMachine: "machine", vID: "id", vSequence: "sequence", vRevision: "revision", vToken: "token", vOperation: "operation",
	vFromState: "from_state", vFromOrigin: "from_origin", vTo: "to_state", vToOrigin: "origin",
	vEvent: "event", vActor: "actor", vReason: "reason", vNow: "at",
	vVersion: "table_version", vRequest: "request", vFingerprint: "fingerprint",
}

func (v value) kind() kind {
	switch v {
	case vRevision, vSequence, vOperation, vFence, vEpoch, vDeadline, vChangedAt, vNow, vWithin, vExpect:
		return ofNumber
	case vAdmission, vChangeToken, vArgs, vWorkOptions, vPayload, vSaved, vToken, vExpectToken:
		return ofBytes
	}
	return ofText
}

// isTime reports whether the column of a value is a time, in a record or in the history.
func (v value) isTime() bool { return v == vDeadline || v == vChangedAt || v == vNow }

// metadata are the columns that a MetadataOnly change writes.
var metadata = []value{vOwner, vEpoch, vWork, vArgs, vWorkOptions, vRevision, vToken}

// table names a table and its columns, in quotes. An empty name: there is none.
type table struct {
	name        string
	column      [values]string
	types       [values]*Type  // of columns that have one
	sqlTypes    [values]string // of columns with a type, as the engine reports them
	fields      []field        // of the payload
	existing    bool           // the table is the caller's: it has any collation, and NULLs
	nativeTimes bool           // times have the engine's own type; otherwise they are microseconds
	key         []value        // of the unique index that the table must have
	// indexes are those that queries of the store need, with their columns in order. An
	// existing table needs none.
	indexes map[string][]value
}

// layout is where a store keeps the records of one existing table, or those of all other
// machines.
type layout struct {
	objects, history table
	st               *statements
	machine          string // the machine of all objects of an existing table
	removed          string // the state of the row of a removed object
	deletes          bool   // a removed object has no row
	indexes          string // begins the names of the indexes of the store's own table
	// noToken is the token of a row that no commit has written: zeros in the store's own
	// table; in an existing table, where such a row has NULL or no bytes, a value that no
	// token equals.
	noToken []byte
	version int    // of the store's own tables
	floor   uint64 // >= every number of a key that the tables did not have at the last AfterRestore
}

// own returns the layout of the store's own tables of a version.
func (e *engine) own(prefix string, version int) *layout {
	name := prefix + "objects"
	l := &layout{
		objects: table{name: e.quoted(name), key: []value{vMachine, vID}, indexes: map[string][]value{
			name + "_state":    {vMachine, vState, vID},
			name + "_age":      {vMachine, vState, vChangedAt},
			name + "_deadline": {vMachine, vDeadline},
			name + "_owner":    {vMachine, vOwner, vEpoch, vDeadline, vState, vID},
		}},
		history: e.ownHistory(prefix, version),
		indexes: name, noToken: make([]byte, len(lifecycle.Token{})), version: version,
	}
	for v, name := range columnNames {
		l.objects.column[v] = e.quoted(name)
	}
	if version < 2 {
		l.objects.column[vAdmission] = ""
	}
	if version < 3 {
		l.objects.column[vChangeToken], l.objects.column[vVersion] = "", ""
	}
	if version < 4 {
		l.objects.column[vFence] = ""
	}
	return l
}

func (e *engine) ownHistory(prefix string, version int) table {
	name := prefix + "history"
	t := table{name: e.quoted(name), key: []value{vMachine, vID, vSequence}}
	for v, name := range historyNames {
		if name != "" {
			t.column[v] = e.quoted(name)
		}
	}
	if version >= 2 {
		t.indexes = map[string][]value{name + "_at": {vNow}}
	}
	if version >= 3 {
		t.indexes[name+"_request"] = []value{vMachine, vRequest}
	} else {
		t.column[vVersion], t.column[vRequest], t.column[vFingerprint] = "", "", ""
	}
	return t
}

// named returns the columns of a list that the table has.
func (t *table) named(list ...value) (named []value) {
	for _, v := range list {
		if t.column[v] != "" {
			named = append(named, v)
		}
	}
	return named
}

// list returns the names of the columns of a list that the table has.
func (t *table) list(list []value) string {
	var names []string
	for _, v := range t.named(list...) {
		names = append(names, t.column[v])
	}
	return strings.Join(names, ", ")
}

// from returns the columns of the table from one on.
func (t *table) from(first value) (named []value) {
	for v := first; v < values; v++ {
		named = append(named, t.named(v)...)
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
	if l.objects.column[vToken] == "" || len(token) == 0 || !l.objects.existing && (number == 0 || bytes.Equal(token, l.noToken)) {
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

const noNumber = -1 // the number of no row

// unknown is the record of a key that has neither a row nor a history.
func (l *layout) unknown(key lifecycle.Key) record {
	return record{StoredRecord: lifecycle.StoredRecord{
		Key: key, Sequence: l.floor, Operation: lifecycle.OpID(l.floor), Revision: l.revision(int64(l.floor), nil),
	}}
}
