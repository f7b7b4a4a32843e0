package sqlstore

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/lifecycle"
)

// ExistingTable describes a table of the caller that keeps the records of one machine,
// for [Config.Tables]. The store compares and sets its columns, and never touches a column
// that is not named here. Owners, messages, the records of all other machines and the
// history are in the store's own tables in the same database, and change in the same
// commits. ExistingTable is a value, and its zero value is not usable.
//
// Machine, Table and the columns ID, State, Revision and Sequence are required. The other
// columns:
//
//   - Version, Origin, Operation, Owner and Epoch, Work, Args, WorkOptions, Deadline, Fence,
//     Payload and Saved: a change that sets such a field is refused with [errors.ErrUnsupported] if
//     the column is missing, and [lifecycle.New] refuses a machine and a configuration that
//     need it. No record then has a deadline or an owner, and queries by them select
//     nothing. [lifecycle.Manager.Override] and [lifecycle.Adopt] set Operation, and are
//     refused without it. A query by age needs ChangedAt and is refused without it.
//   - Transitional states need Origin and Operation. Rows with a timeout need Deadline. In
//     [lifecycle.Config], Owner needs Owner and Epoch, WorkerActor needs WorkOptions,
//     Handlers needs Work and Args, Undo needs Saved, and Version or Older need Version.
//   - Target, Actor, Event, Reason and ChangedAt are lost without a column. The history has
//     actors, events and reasons.
//   - Admission is read as the zero token without a column. Operations are then compared
//     by their numbers only; see [lifecycle.StoredRecord]. ChangeToken is read so too:
//     ETags then have the sequence number only.
//   - Token is compared beside Revision. Without it a revision may repeat where
//     an engine that is killed loses commits that were read: MySQL shows commits before
//     they are on disk, and so does PostgreSQL with synchronous_commit=off. A caller that
//     has read such a record then overwrites the record that took its number.
//
// The removal of an object deletes its row, and its numbers continue in the history, but for
// the fencing token. On
// PostgreSQL and MySQL the creation of an object leaves a row without a state in the
// store's own tables. A commit that requires the absence of the object locks that row.
//
// Another program that writes to these columns must write another Revision too, or a
// trigger must: the old one plus 1, which is what the store writes and reports. Every change
// that was decided on the row before is then a conflict. If only State is written, a change
// is a conflict until State is changed back. If only Payload is written, it may be
// overwritten. With a transitional State the program also writes Origin, which is the last state
// at rest, and the next Operation, so that late reports about the operation before are stale. In
// a state at rest Origin has no effect. A program that inserts a row while a commit
// requires the object to be absent does not wait for that commit.
//
// Another program may insert rows of new objects: the numbers of a new row are 0, and it is
// an object at once. If the id has a history, because an object was removed or its row
// deleted, the row continues the numbers: Sequence and Operation are the greatest ones of
// the history, and Revision is above all of them. With a smaller Sequence every change is
// refused with [ErrHistory].
//
// ID and State are text, ID is unique, and ID, State, Revision and Sequence are NOT NULL. Names
// are compared byte by byte in any collation. Numbers have 64 bits. Args, WorkOptions, Payload,
// Saved, Admission, ChangeToken and Token are bytes. All of these but Token, and Deadline, may be
// NULL. Other columns of a new row need a default. Types names columns of other types, and Fields
// the columns of fields of the payload. In MySQL the table is an InnoDB table, and the
// connections have the character set utf8mb4 and a strict mode. Open verifies what the engine
// reports, and returns a [TableError]; of a view it reports little.
//
// Names of tables and columns are up to 63 ASCII letters, digits and _, with no digit first, and
// keep their case. A view on PostgreSQL or MySQL gives a table with other names such names. The
// id is one column, also if the key of the table has several.
//
// A CHECK, a foreign key or another unique index that refuses a row refuses the commit. The
// error has that of the engine, and matches [lifecycle.ErrInvalid], or
// [lifecycle.ErrPrecondition] if another row is the reason. A guard refuses such a request
// with a reason that a client can read.
type ExistingTable struct {
	Machine string // the machine of all objects in the table, not one of the library ("interlock.")
	// Table is the name, or schema.name, which SQLite does not have. No other machine has it.
	// Two tables of one name in different schemas are both named with the schema.
	Table   string
	Columns ColumnMap
	// ExistingHistory is a table of the caller where every change leaves a row. Zero: the
	// history is in the store's own tables.
	ExistingHistory ExistingHistory
	// Micros: ChangedAt, Deadline and ExistingHistory.At are integers, microseconds since
	// 1970, as always in SQLite. False: they are timestamptz in PostgreSQL, and
	// datetime(6) in UTC in MySQL.
	Micros bool
	// Fields are columns of the caller's own that keep fields of the payload, which is a
	// JSON object. The keys are the names of fields as in JSON, the values are the names of
	// columns. Guards see the values in the columns, and commits write all of them; Payload
	// keeps the other fields. NULL is a field that is missing, and the other way round: a
	// nullable column wants a pointer in Go, or omitempty. Default: none.
	Fields map[string]string
	// Types are the types of columns that are not text, or not bytes: of ID, State, Origin,
	// Target, Payload and Saved, of ID and the states in ExistingHistory, and of Fields, by
	// the name of the column. Default: a name is text, a payload is bytes, and a field is a
	// [Text]. The type of a state in ExistingHistory also maps the name of the absent state.
	// An empty Target, and From and FromOrigin of a creation, are NULL in a column with a type.
	// [lifecycle.New] refuses a machine with a state that the types of State and
	// ExistingHistory.To do not map. The other columns of states need types that map the same
	// states: a commit of another one is refused with [lifecycle.ErrInvalid].
	Types map[string]Type
}

// ExistingHistory describes a table of the caller that keeps the history: one row for
// each change that is not MetadataOnly. The store adds rows and never updates them.
// The zero ExistingHistory is none.
//
// Table, ID, Sequence, Revision, Token, To and At are required: the store finds a commit whose
// answer was lost by them, and the numbers of removed objects continue here. A unique index on ID
// and Sequence (and Machine) is required; in a view the store cannot verify it. The other
// columns:
//
//   - Machine: without it the table is for the objects of one ExistingTable.
//   - Operation is required with ColumnMap.Operation, because the numbers of removed objects
//     continue here.
//   - From, FromOrigin, Origin, Event, Actor, Reason, Version and Operation are empty when they
//     are read without a column; FromOrigin is then From, and Origin is To. Without them
//     a history cannot be checked against the table of its time.
//
// ID, Sequence and Token are NOT NULL. The types are those of [ExistingTable]. Rows from before
// the library may stay, with 0 and -1 and so on in Sequence, from the newest of each object, and
// any Token.
type ExistingHistory struct {
	Table                                string // the name, or schema.name, which SQLite does not have
	Machine, ID                          string // columns
	Sequence, Revision, Token, Operation string
	From, FromOrigin, To, Origin         string
	Event, Actor, Reason, At, Version    string
}

// ColumnMap has the names of columns in an [ExistingTable]. Empty: none.
type ColumnMap struct {
	ID, State, Revision, Sequence                string
	Origin, Target, Operation, Owner, Epoch      string
	Admission, ChangeToken, Fence, Version       string
	Work, Args, WorkOptions, Deadline, ChangedAt string
	Actor, Event, Reason, Payload, Saved, Token  string
}

// layout returns the layout of the table. The floor is that of the store's own tables.
func (t *ExistingTable) layout(e *engine, own *layout) (l *layout, err error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	c, h := &t.Columns, &t.ExistingHistory
	l = &layout{history: own.history, machine: t.Machine, noToken: []byte{0}, floor: own.floor}
	l.objects, err = t.table(e, t.Table, []value{vID}, [values]string{
		vID: c.ID, vState: c.State, vOrigin: c.Origin, vTarget: c.Target, vRevision: c.Revision, vSequence: c.Sequence,
		vOperation: c.Operation, vAdmission: c.Admission, vChangeToken: c.ChangeToken, vFence: c.Fence, vVersion: c.Version,
		vOwner: c.Owner, vEpoch: c.Epoch, vWork: c.Work, vArgs: c.Args, vWorkOptions: c.WorkOptions,
		vDeadline: c.Deadline, vChangedAt: c.ChangedAt, vActor: c.Actor, vEvent: c.Event, vReason: c.Reason,
		vPayload: c.Payload, vSaved: c.Saved, vToken: c.Token,
	}, t.Fields)
	if err == nil && *h != (ExistingHistory{}) {
		l.history, err = t.table(e, h.Table, []value{vMachine, vID, vSequence}, [values]string{
			vMachine: h.Machine, vID: h.ID, vSequence: h.Sequence, vRevision: h.Revision, vToken: h.Token, vOperation: h.Operation,
			vFromState: h.From, vFromOrigin: h.FromOrigin, vTo: h.To, vToOrigin: h.Origin,
			vEvent: h.Event, vActor: h.Actor, vReason: h.Reason, vNow: h.At, vVersion: h.Version,
		}, nil)
	}
	if err != nil {
		return nil, err
	}
	all := slices.Concat(l.objects.column, l.history.column)
	for _, name := range slices.Sorted(maps.Keys(t.Types)) {
		typ := t.Types[name]
		typed := slices.ContainsFunc(all, func(c column) bool { return c.typ != nil && c.name == e.quoted(name) })
		if !typed || typ.Write == nil || typ.Read == nil {
			return nil, fmt.Errorf("%w: existing table %q: type of column %q: no column of that name can have a type, or a function is missing",
				lifecycle.ErrInvalid, t.Table, name)
		}
	}
	return l, nil
}

// typedValues are the values whose columns may have a type.
var typedValues = []value{vID, vState, vOrigin, vTarget, vPayload, vSaved, vFromState, vFromOrigin, vTo, vToOrigin}

// table returns a table with these columns, and those of the fields in their order. It refuses
// invalid names, and a column that is named twice.
func (t *ExistingTable) table(e *engine, name string, key []value, names [values]string, fields map[string]string) (in table, err error) {
	in = table{existing: true, nativeTimes: !t.Micros && e.timeType != "", key: key}
	if in.name, err = e.quotedTable(name); err != nil {
		return in, err
	}
	for _, name := range names {
		in.column = append(in.column, column{name: name})
	}
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		in.column = append(in.column, column{name: fields[field], typ: &Text, field: field})
	}
	used := make(map[string]bool)
	for v := range in.column {
		c := &in.column[v]
		if c.name == "" && v < int(values) {
			continue
		}
		if err := identifier(c.name); err != nil {
			return in, err
		}
		lower := strings.ToLower(c.name)
		if used[lower] {
			return in, fmt.Errorf("%w: column %q is named twice", lifecycle.ErrInvalid, c.name)
		}
		used[lower] = true
		if typ, ok := t.Types[c.name]; ok && (v >= int(values) || slices.Contains(typedValues, value(v))) {
			c.typ = typ.on(e)
		}
		c.name = e.quoted(c.name)
	}
	return in, nil
}

// check refuses columns that contradict each other.
func (t *ExistingTable) check() error {
	c, h := &t.Columns, &t.ExistingHistory
	existing := *h != ExistingHistory{}
	for _, rule := range []struct {
		broken bool
		text   string
	}{
		{
			t.Machine == "" || t.Table == "" || c.ID == "" || c.State == "" || c.Revision == "" || c.Sequence == "",
			"machine, table, and the columns ID, State, Revision and Sequence are required",
		},
		{strings.HasPrefix(t.Machine, "interlock."), "owners and turns are kept in the store's own tables"},
		{(c.Owner == "") != (c.Epoch == ""), "owner requires epoch, and epoch requires owner"},
		{
			existing && (h.Table == "" || h.ID == "" || h.Sequence == "" || h.Revision == "" || h.Token == "" || h.To == "" || h.At == ""),
			"an existing history requires a table, and columns for id, sequence, revision, token, to and at",
		},
		{existing && strings.EqualFold(h.Table, t.Table), "an existing history requires a table of its own"},
		{
			existing && h.Operation == "" && c.Operation != "",
			"the operations of removed objects continue in the history, which requires an operation",
		},
	} {
		if rule.broken {
			return fmt.Errorf("%w: existing table %q: %s", lifecycle.ErrInvalid, t.Table, rule.text)
		}
	}
	return nil
}

// Lacks implements [lifecycle.Partial]: an existing table may have no column for a field.
func (s *shared) Lacks(machine string) (fields []string) {
	o := &s.of(machine).objects
	for v, c := range columns {
		if o.existing && c.field != "" && o.col(value(v)) == "" && (value(v) != vPayload || len(o.column) == int(values)) {
			fields = append(fields, c.field)
		}
	}
	return fields
}

// CheckState implements [lifecycle.Partial]: the type of a column may lack a state.
func (s *shared) CheckState(machine, state string, absent bool) error {
	l := s.of(machine)
	if !absent {
		if _, err := l.objects.column[vState].write(state); err != nil {
			return err
		}
	}
	_, err := l.history.column[vTo].write(state)
	return err
}
