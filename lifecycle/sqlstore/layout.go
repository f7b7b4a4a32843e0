package sqlstore

import (
	"bytes"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/lifecycle"
)

// value is an argument of a statement: a column of the record or of the history, or another
// fact of a change. The fields of a payload that have columns follow after the last one.
type value int

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
	vDeadline // in a change: microseconds until the deadline, or NULL
	vChangedAt
	vActor
	vEvent
	vReason
	vPayload
	vSaved
	vToken
	vFromState   // the state before
	vFromOrigin  // the origin before
	vTo          // the state after, also if it is absent
	vToOrigin    // the origin after
	vNow         // the time of the commit, NULL if the statement itself reads the clock
	vRequest     // NULL: none
	vFingerprint // of the request, or NULL
	vExpect      // the number of the expected revision
	vExpectToken // the token of the expected revision

	values // the number of values
)

// columns describes the values: one line has all that the statements, the checks and the
// store's own tables depend on.
var columns = [values]struct {
	objects, history string // its columns in the store's own tables; empty: none
	kind             kind
	most             int    // bytes of a name; 0: any number
	field            string // of [lifecycle.StoredRecord]: no change can set it without a column
}{
	vMachine:     {"machine", "machine", ofText, maxName, ""},
	vID:          {"id", "id", ofText, maxName, ""},
	vState:       {"state", "", ofText, maxName, ""},
	vOrigin:      {"origin", "", ofText, maxName, "Origin"},
	vTarget:      {"target", "", ofText, maxName, ""},
	vRevision:    {"revision", "revision", ofNumber, 0, ""},
	vSequence:    {"sequence", "sequence", ofNumber, 0, ""},
	vOperation:   {"operation", "operation", ofNumber, 0, "Operation"},
	vAdmission:   {"admission", "", ofBytes, 0, ""},
	vChangeToken: {"change_token", "", ofBytes, 0, ""},
	vFence:       {"fence", "", ofNumber, 0, "Fence"},
	vVersion:     {"table_version", "table_version", ofText, maxName, "Version"},
	vOwner:       {"owner", "", ofText, maxName, "Owner"},
	vEpoch:       {"epoch", "", ofNumber, 0, "Epoch"},
	vWork:        {"work", "", ofText, maxWord, "Work"},
	vArgs:        {"args", "", ofBytes, 0, "Args"},
	vWorkOptions: {"work_options", "", ofBytes, 0, "WorkOptions"},
	vDeadline:    {"deadline", "", ofNumber, 0, "Deadline"},
	vChangedAt:   {"changed_at", "", ofNumber, 0, ""},
	vActor:       {"actor", "actor", ofText, maxWord, ""},
	vEvent:       {"event", "event", ofText, maxWord, ""},
	vReason:      {"reason", "reason", ofText, 0, ""},
	vPayload:     {"payload", "", ofBytes, 0, "Payload"},
	vSaved:       {"saved", "", ofBytes, 0, "Saved"},
	vToken:       {"token", "token", ofBytes, 0, ""},
	vFromState:   {"", "from_state", ofText, maxName, ""},
	vFromOrigin:  {"", "from_origin", ofText, maxName, ""},
	vTo:          {"", "to_state", ofText, maxName, ""},
	vToOrigin:    {"", "origin", ofText, maxName, ""},
	vNow:         {"", "at", ofNumber, 0, ""},
	vRequest:     {"", "request", ofText, maxName, ""},
	vFingerprint: {"", "fingerprint", ofText, maxName, ""},
	vExpect:      {"", "", ofNumber, 0, ""},
	vExpectToken: {"", "", ofBytes, 0, ""},
}

// kind is that of the column of a value. A field of the payload has a type of its own.
func (v value) kind() kind {
	if v >= values {
		return ofText
	}
	return columns[v].kind
}

// isTime reports whether the column of a value is a time, in a record or in the history.
func (v value) isTime() bool { return v == vDeadline || v == vChangedAt || v == vNow }

// required are the columns of a record that are compared, and never NULL.
var required = []value{vID, vState, vRevision, vSequence}

// emptied reports whether the store writes NULL into the column of a record.
func (v value) emptied() bool { return v == vDeadline || v.kind() == ofBytes && v != vToken }

// metadata are the columns that a MetadataOnly change writes; see builder.update.
var metadata = []value{vOwner, vEpoch, vWork, vArgs, vWorkOptions, vDeadline, vRevision, vToken}

// column is where a table keeps a value. Without a name the table has none.
type column struct {
	name    string // in quotes
	typ     *Type  // nil: the value is kept as it is
	sqlType string // that the engine reports, for a column with a type
	field   string // of the payload, which is a JSON object; empty: a value of the record
}

// table names a table and its columns.
type table struct {
	name        string   // in quotes
	column      []column // by value
	existing    bool     // the table is the caller's: it has any collation, and NULLs
	nativeTimes bool     // times have the engine's own type; otherwise they are microseconds
	key         []value  // of the unique index that the table must have
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
	// noToken is the token of a row that no commit has written: zeros in the store's own
	// table; in an existing table, where such a row has NULL or no bytes, a value that no
	// token equals.
	noToken []byte
	floor   uint64 // >= every number of a key that the tables did not have at the last AfterRestore
}

// own returns the layout of the store's own tables of a version.
func (e *engine) own(prefix string, version int) *layout {
	objects, history := prefix+"objects", prefix+"history"
	l := &layout{
		objects: table{name: e.quoted(objects), column: make([]column, values), key: []value{vMachine, vID}, indexes: map[string][]value{
			objects + "_state":    {vMachine, vState, vID},
			objects + "_age":      {vMachine, vState, vChangedAt},
			objects + "_deadline": {vMachine, vDeadline},
			objects + "_owner":    {vMachine, vOwner, vEpoch, vDeadline, vState, vID},
		}},
		history: table{name: e.quoted(history), column: make([]column, values), key: []value{vMachine, vID, vSequence}, indexes: map[string][]value{
			history + "_at":      {vNow},
			history + "_request": {vMachine, vRequest},
		}},
		noToken: make([]byte, len(lifecycle.Token{})),
	}
	for v, c := range columns {
		if c.objects != "" {
			l.objects.column[v].name = e.quoted(c.objects)
		}
		if c.history != "" {
			l.history.column[v].name = e.quoted(c.history)
		}
	}
	if version < 2 {
		l.objects.column[vFence].name = ""
	}
	return l
}

// col returns the name of the column of a value, or an empty string.
func (t *table) col(v value) string { return t.column[v].name }

// named returns the columns of a list that the table has.
func (t *table) named(list ...value) []value {
	return slices.DeleteFunc(slices.Clone(list), func(v value) bool { return t.col(v) == "" })
}

// all returns the columns of the table.
func (t *table) all() (list []value) {
	for v := range t.column {
		if t.col(value(v)) != "" {
			list = append(list, value(v))
		}
	}
	return list
}

// list returns the names of the columns of a list that the table has.
func (t *table) list(list []value) string { return literals(t.named(list...), t.col) }

// revision returns the revision of a record: the number of commits that have
// written the row, and the token of the last one. The number alone would repeat:
// InnoDB, and PostgreSQL without synchronous_commit, show a commit before it is on
// disk. If such an engine is killed, a record that was read may be lost, and another
// commit then writes a record with the same number.
//
//	revision = number                   the table keeps no token, or no commit has written one
//	         | number "-" token in hex
func (l *layout) revision(number int64, token []byte) lifecycle.Revision {
	text := strconv.FormatInt(number, 10)
	if l.objects.col(vToken) != "" && len(token) > 0 && (l.objects.existing || number != 0 && !bytes.Equal(token, l.noToken)) {
		text += "-" + hex.EncodeToString(token)
	}
	return lifecycle.Revision(text)
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
