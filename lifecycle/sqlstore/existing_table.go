package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/lifecycle"
)

// ExistingTable describes a table of the caller that keeps the records of one
// machine. The store compares and sets its columns, and never touches a column that
// is not named here. ExistingTable is a value, and its zero value is not usable;
// [ExistingTable.Open] makes a [Store] of it.
//
// Machine, Table and the columns ID, State and Revision are required. The other
// columns:
//
//   - Sequence counts the changes. Without it the revision counts them. It is required
//     with a history, and with Owner, Epoch and Deadline.
//   - Version, Operation, Owner and Epoch, Work, Args, WorkOptions, Deadline, Payload, Saved and
//     Origin: a change that sets such a field is refused with [errors.ErrUnsupported] if
//     the column is missing. No record then has a deadline or an owner, and queries by
//     them select nothing. A query by age needs ChangedAt and is refused without it.
//   - Target, Actor, Event, Reason and ChangedAt are lost without a column.
//   - Admission is read as the zero token without a column. Operations are then compared
//     by their numbers only; see [lifecycle.StoredRecord]. ChangeToken is read so too:
//     ETags then have the sequence number only.
//   - Token, History or ExistingHistory shows whether a commit was written whose
//     answer was lost. Without all three the error is [lifecycle.ErrUnknownOutcome],
//     and a commit that is sent again is a conflict.
//   - Token is also compared, beside Revision. Without it a revision may repeat where
//     an engine that is killed loses commits that were read: MySQL shows commits before
//     they are on disk, and so does PostgreSQL with synchronous_commit=off. A caller that
//     has read such a record then overwrites the record that took its number. The same
//     holds for an object that is created again after its row was deleted.
//
// Another program that writes to these columns must write another Revision too, or a
// trigger must. Every change that was decided on the row before is then a conflict. If
// only State is written, a change is a conflict until State is changed back. If only
// Payload is written, it may be overwritten.
//
// ID and State are text, ID is unique, and ID, State, Revision and Sequence are NOT
// NULL. Names are compared byte by byte in any collation. Numbers have 64 bits. Args,
// WorkOptions, Payload, Saved, Admission, ChangeToken and Token are bytes. Other columns of a new row need a
// default. In MySQL the table is an InnoDB table, and the connections have the character
// set utf8mb4 and a strict mode. Open verifies what the engine reports; of a view it
// reports little.
//
// A commit can require that an object is absent: no store creates it before the commit.
// The store does not see a row that another program inserts meanwhile. On PostgreSQL it
// uses advisory locks, on MySQL gap locks at REPEATABLE READ. In a transaction of the
// caller the requirement is refused with [errors.ErrUnsupported] on MySQL, and on
// PostgreSQL above READ COMMITTED: the transaction may see less than its locks protect.
type ExistingTable struct {
	Machine string // the machine of all objects in the table
	Table   string // the name, or schema.name
	Columns ColumnMap
	// Removed is the state of the row of a removed object. Empty: the removal of an
	// object deletes its row; this needs a history, where its numbers continue.
	Removed string
	// History: every change leaves a history row, and commits carry messages, in the
	// tables that [Migrate] makes with [Config.Prefix]. Together with ExistingHistory
	// only the messages are there.
	History bool
	// ExistingHistory is a table of the caller where every change leaves a row.
	// Zero: none.
	ExistingHistory ExistingHistory
	// Micros: ChangedAt, Deadline and ExistingHistory.At are integers, microseconds since
	// 1970, as always in SQLite. False: they are timestamptz in PostgreSQL, and
	// datetime(6) in UTC in MySQL.
	Micros bool
}

// ExistingHistory describes a table of the caller that keeps the history: one row for
// each change that is not MetadataOnly. The store adds rows and never updates them.
// The zero ExistingHistory is none.
//
// Table, ID, Sequence, Token, To and At are required: the store finds a commit whose
// answer was lost by them. A unique index on ID and Sequence (and Machine) is required;
// in a view the store cannot verify it. The other columns:
//
//   - Machine: without it the table is for the objects of one ExistingTable.
//   - Revision: without it rows are read without a revision. It is required if removed
//     objects have no row, because their numbers continue here; and with
//     ColumnMap.Operation so is Operation.
//   - From, FromOrigin, Origin, Event, Actor, Reason, Version and Operation are empty when they
//     are read without a column; FromOrigin is then From, and Origin is To. Without them
//     a history cannot be checked against the table of its time.
//
// ID, Sequence and Token are NOT NULL. The types are those of [ExistingTable].
type ExistingHistory struct {
	Table                                string // the name, or schema.name
	Machine, ID                          string // columns
	Sequence, Revision, Token, Operation string
	From, FromOrigin, To, Origin         string
	Event, Actor, Reason, At, Version    string
}

// ColumnMap has the names of columns in an [ExistingTable]. Empty: none.
type ColumnMap struct {
	ID, State, Revision, Sequence                string
	Origin, Target, Operation, Owner, Epoch      string
	Admission, ChangeToken, Version              string
	Work, Args, WorkOptions, Deadline, ChangedAt string
	Actor, Event, Reason, Payload, Saved, Token  string
}

// Open returns the store in an existing table.
//
// Errors: [ErrIdentifier] for names; [ErrSchema] for a table that lacks a column or a
// unique index, or has a column of another type, or if the tables of the history are
// missing; [lifecycle.ErrInvalid] for columns that contradict each other, and for
// connections that truncate or convert text; the driver's errors.
func (t ExistingTable) Open(ctx context.Context, db *sql.DB, d Dialect, config *Config) (*Store, error) {
	c, err := config.resolved()
	if err != nil {
		return nil, err
	}
	if err := d.check(db); err != nil {
		return nil, err
	}
	probe := d.session(db)
	var about schema
	if t.History {
		if about, err = probe.schema(ctx, c.Prefix); err != nil {
			return nil, fmt.Errorf("%w, for the history of %s", err, t.Table)
		}
	}
	l, err := t.layout(d.engine, c.Prefix, &about)
	if err != nil {
		return nil, err
	}
	if err := probe.verify(ctx, l); err != nil {
		return nil, err
	}
	if err := probe.verifySession(ctx); err != nil {
		return nil, err
	}
	s, err := d.open(ctx, db, l, c)
	if err != nil {
		return nil, fmt.Errorf("%w: table %s: %w", ErrSchema, t.Table, err)
	}
	// Reads of an unused id show whether the columns have the right types.
	unused := lifecycle.Key{Machine: t.Machine, ID: "\u0001"}
	_, err = s.Get(ctx, unused)
	if err == nil && s.has.History {
		_, err = s.History(ctx, unused, 0, 1)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: table %s: %w", ErrSchema, t.Table, err), s.Close())
	}
	return s, nil
}

// layout returns the layout of the table. The version and floor are those of the store's
// own tables, where the history may be.
func (t *ExistingTable) layout(e *engine, prefix string, about *schema) (l *layout, err error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	native := !t.Micros && e.timeType != ""
	l = &layout{
		objects: table{existing: true, nativeTimes: native, key: []value{vID}},
		machine: t.Machine, removed: t.Removed, deletes: t.Removed == "", noToken: []byte{0},
		version: about.version, floor: about.floor,
	}
	if l.objects.name, err = e.quotedTable(t.Table); err != nil {
		return nil, err
	}
	c := &t.Columns
	if err := e.quoteColumns(&l.objects, &[values]string{
		vID: c.ID, vState: c.State, vOrigin: c.Origin, vTarget: c.Target, vRevision: c.Revision, vSequence: c.Sequence,
		vOperation: c.Operation, vAdmission: c.Admission, vChangeToken: c.ChangeToken, vVersion: c.Version, vOwner: c.Owner, vEpoch: c.Epoch, vWork: c.Work, vArgs: c.Args, vWorkOptions: c.WorkOptions,
		vDeadline: c.Deadline, vChangedAt: c.ChangedAt, vActor: c.Actor, vEvent: c.Event, vReason: c.Reason,
		vPayload: c.Payload, vSaved: c.Saved, vToken: c.Token,
	}); err != nil {
		return nil, err
	}
	if t.History {
		l.messages = e.quoted(prefix + "messages")
	}
	h := &t.ExistingHistory
	if *h == (ExistingHistory{}) {
		if t.History {
			l.history = e.ownHistory(prefix, about.version)
		}
		return l, nil
	}
	l.history = table{existing: true, nativeTimes: native, key: []value{vMachine, vID, vSequence}}
	if l.history.name, err = e.quotedTable(h.Table); err != nil {
		return nil, err
	}
	return l, e.quoteColumns(&l.history, &[values]string{
		vMachine: h.Machine, vID: h.ID, vSequence: h.Sequence, vRevision: h.Revision, vToken: h.Token, vOperation: h.Operation,
		vFromState: h.From, vFromOrigin: h.FromOrigin, vTo: h.To, vToOrigin: h.Origin,
		vEvent: h.Event, vActor: h.Actor, vReason: h.Reason, vNow: h.At, vVersion: h.Version,
	})
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
			t.Machine == "" || t.Table == "" || c.ID == "" || c.State == "" || c.Revision == "",
			"machine, table, and the columns ID, State and Revision are required",
		},
		{
			c.Sequence == "" && (c.Owner != "" || c.Epoch != "" || c.Deadline != "" || t.History || existing),
			"owner, epoch, deadline and history require a sequence number",
		},
		{(c.Owner == "") != (c.Epoch == ""), "owner requires epoch, and epoch requires owner"},
		{
			existing && (h.Table == "" || h.ID == "" || h.Sequence == "" || h.Token == "" || h.To == "" || h.At == ""),
			"an existing history requires a table, and columns for id, sequence, token, to and at",
		},
		{existing && strings.EqualFold(h.Table, t.Table), "an existing history requires a table of its own"},
		{
			existing && t.Removed == "" && h.Revision == "",
			"the numbers of removed objects continue in the history, which requires a revision",
		},
		{
			existing && t.Removed == "" && h.Operation == "" && c.Operation != "",
			"the operations of removed objects continue in the history, which requires an operation",
		},
	} {
		if rule.broken {
			return fmt.Errorf("%w: existing table %q: %s", lifecycle.ErrInvalid, t.Table, rule.text)
		}
	}
	return checkName("removed state", t.Removed, maxName)
}
