package sqlstore

import (
	"bytes"
	"database/sql"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/interlock-go/interlock/lifecycle"
)

const (
	maxName   = 255           // bytes of a column that is in an index
	maxWord   = 1023          // bytes of the other names
	maxNumber = math.MaxInt64 // of a column on all engines
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
	vDeadline
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
	vTimeout     // microseconds from the commit until the deadline, or NULL

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
	vTimeout:     {"", "", ofNumber, 0, ""},
}

// kind is that of the column of a value, which is no field of the payload.
func (v value) kind() kind { return columns[v].kind }

// isTime reports whether the column of a value is a time, in a record or in the history.
func (v value) isTime() bool { return v == vDeadline || v == vChangedAt || v == vNow }

// required are the columns of a record that are compared, and never NULL.
var required = []value{vID, vState, vRevision, vSequence}

// emptied reports whether the store writes NULL into the column of a record.
func (v value) emptied() bool { return v == vDeadline || v.kind() == ofBytes && v != vToken }

// unnamed are the names that may be empty. In a column with a type, an empty name is NULL.
var unnamed = []value{vTarget, vFromState, vFromOrigin}

// metadata are the columns that a MetadataOnly change writes; see builder.update.
var metadata = []value{vOwner, vEpoch, vWork, vArgs, vWorkOptions, vDeadline, vRevision, vToken}

// row is an object as its tables keep it: its record, and what the history keeps of its last
// change. A query reads into a row, and a statement gets its arguments from one.
type row struct {
	lifecycle.StoredRecord
	number                         uint64 // of the Revision, see layout.revision
	token                          []byte
	from, fromOrigin, to, toOrigin string
	at                             time.Time
	request, fingerprint           sql.NullString
	fields                         []sql.NullString // those of the payload with columns, see table.split

	// What a change requires, and its deadline.
	expect      uint64
	expectToken []byte
	timeout     sql.NullInt64
}

// cells returns where the row has its values.
func (r *row) cells() []any {
	cells := []any{
		vMachine: &r.Machine, vID: &r.ID, vState: &r.State, vOrigin: &r.Origin, vTarget: &r.Target,
		vRevision: &r.number, vSequence: &r.Sequence, vOperation: (*uint64)(&r.Operation),
		vAdmission: &r.Admission, vChangeToken: &r.ChangeToken, vFence: (*uint64)(&r.Fence), vVersion: &r.Version,
		vOwner: &r.Owner, vEpoch: &r.Epoch, vWork: &r.Work, vArgs: &r.Args, vWorkOptions: &r.WorkOptions,
		vDeadline: &r.Deadline, vChangedAt: &r.ChangedAt, vActor: (*string)(&r.Actor), vEvent: &r.Event, vReason: &r.Reason,
		vPayload: &r.Payload, vSaved: &r.Saved, vToken: &r.token,
		vFromState: &r.from, vFromOrigin: &r.fromOrigin, vTo: &r.to, vToOrigin: &r.toOrigin, vNow: &r.at,
		vRequest: &r.request, vFingerprint: &r.fingerprint,
		vExpect: &r.expect, vExpectToken: &r.expectToken, vTimeout: &r.timeout,
	}
	for i := range r.fields {
		cells = append(cells, &r.fields[i])
	}
	return cells
}

// cell is where a query reads a value of a row to. The other fields are what the engine returned.
type cell struct {
	in     any
	text   sql.NullString
	number sql.NullInt64
	data   sql.Null[[]byte]
}

// Scan implements [sql.Scanner]. NULL is as if no commit had written the value.
func (c *cell) Scan(x any) (err error) {
	switch in := c.in.(type) {
	case *string:
		err = c.text.Scan(x)
		*in = c.text.String
	case *uint64:
		err = c.number.Scan(x)
		*in = uint64(max(c.number.Int64, 0)) // another program may have written a negative number
	case *time.Time:
		err = c.number.Scan(x)
		if c.number.Int64 != 0 {
			*in = time.UnixMicro(c.number.Int64).UTC()
		}
	case *[]byte:
		err = c.data.Scan(x)
		*in = c.data.V
	case *lifecycle.Token:
		err = c.data.Scan(x)
		copy(in[:], c.data.V)
	case sql.Scanner:
		err = in.Scan(x)
	}
	return err
}

// revision returns the revision of a record: the number of commits that have
// written the row, and the token of the last one. The number alone would repeat:
// InnoDB, and PostgreSQL without synchronous_commit, show a commit before it is on
// disk. If such an engine is killed, a record that was read may be lost, and another
// commit then writes a record with the same number.
//
//	revision = number                   the table keeps no token, or no commit has written one
//	         | number "-" token in hex
func (l *layout) revision(number uint64, token []byte) lifecycle.Revision {
	text := strconv.FormatUint(number, 10)
	kept := l.objects.col(vToken) != "" && len(token) > 0
	if kept && (l.objects.existing || number != 0 && !bytes.Equal(token, l.noToken)) {
		text += "-" + hex.EncodeToString(token)
	}
	return lifecycle.Revision(text)
}

// parse is the inverse of revision. A revision of another store has the number
// noNumber.
func (l *layout) parse(r lifecycle.Revision) (number uint64, token []byte) {
	digits, rest, _ := strings.Cut(string(r), "-")
	number, err := strconv.ParseUint(digits, 10, 63)
	if err == nil && rest != "" {
		token, err = hex.DecodeString(rest)
	}
	if err != nil || number == maxNumber || l.revision(number, token) != r {
		return noNumber, nil
	}
	return number, token
}

// noNumber is the number of no row: the engines get it as -1.
const noNumber uint64 = math.MaxUint64

// checkName refuses names that the engines would not keep alike.
func checkName(what, name string, most int) error {
	if len(name) > most || strings.IndexByte(name, 0) >= 0 || !utf8.ValidString(name) {
		return fmt.Errorf("%w: %s %.300q is not up to %d bytes of UTF-8 without NUL", lifecycle.ErrInvalid, what, name, most)
	}
	return nil
}

func checkKey(key lifecycle.Key) error {
	if key.Machine == "" || key.ID == "" {
		return fmt.Errorf("%w: key without a machine or an id", lifecycle.ErrInvalid)
	}
	if err := checkName("machine", key.Machine, maxName); err != nil {
		return err
	}
	return checkName("id", key.ID, maxName)
}
