package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/lifecycle"
)

// ExistingTable describes a table of the user's that keeps the records of one
// machine. The compare-and-set uses its columns; the library does not touch columns
// that are not named here. It is a value; [ExistingTable.Open] makes a [Store] of it.
//
// Machine, Table and the columns ID and State are required. What a column is
// needed for:
//
//   - Revision is a number that changes with every commit. Without it only the
//     state is compared, and an object that has left a state and come back looks
//     as if it had never left (ABA). Therefore the store then refuses changes with
//     an operation, MetadataOnly changes, and changes from a state to itself, and no
//     column below may be named that only operations need.
//   - Sequence counts the changes. Without it the revision counts them. It is
//     required with History or ExistingHistory, and with the columns that
//     MetadataOnly changes write.
//   - Operation, Owner and Epoch, Work, Args, WorkOptions, Deadline, Payload, Saved and
//     Origin: a change that has something to say there is refused with
//     [errors.ErrUnsupported] if the column is missing. Therefore no record has a
//     deadline or an owner without the column, and queries by them are answered so.
//     Queries by age need ChangedAt, and are refused without it.
//   - Target, Actor, Event and Reason are for people, and lost without a column,
//     as ChangedAt is.
//   - Token, History or ExistingHistory shows whether a commit was written whose answer was
//     lost. Without any, [lifecycle.ErrUnknownOutcome] is all that can be said,
//     and a commit that is sent again is a conflict.
//   - Token is also compared beside Revision. Without it a revision may repeat
//     where an engine that is killed loses commits which somebody has read: MySQL
//     shows them before they are on disk, PostgreSQL with synchronous_commit=off.
//     Who has read such a record then overwrites the one that took its number.
//     The same goes for creating an object again whose row was deleted.
//
// A program that writes to these columns past the library must write another
// Revision too, or a trigger must. Every change that was decided on the row before
// is then a conflict. A State that is written without another Revision is a conflict
// until it is changed back. A Payload that is written without another Revision may
// be overwritten.
//
// ID and State are text, ID is unique, and they, Revision and Sequence are NOT
// NULL; names are compared byte by byte, whatever the collation. Numbers are 64
// bits wide, Args, Steps, Payload, Saved and Token bytes. Columns of a new row
// that are not named here need a default. In MySQL the table is InnoDB's, and the
// connections are of character set utf8mb4 and a strict mode. What of this can be
// looked up is, when the store is opened; of a view it cannot.
//
// That an object is absent can be required of a commit: nobody makes it before the
// commit through a store like this one, while a row that is inserted past the
// library is not seen. PostgreSQL has advisory locks for it, which whoever makes an
// object takes too; MySQL the gaps in the unique index, at REPEATABLE READ. Inside
// of a transaction of the user's it is refused with [errors.ErrUnsupported] on
// MySQL, and on PostgreSQL but at READ COMMITTED: what such a transaction sees may
// be older than its locks.
type ExistingTable struct {
	Machine string // whose objects have rows here
	Table   string // the name, or schema.name
	Columns ColumnMap
	// Removed is the state of a row whose object was removed. Empty: removing an
	// object deletes its row; this needs History or ExistingHistory, where its numbers go on.
	Removed string
	// History has every change leave a row, and commits carry messages, in the
	// tables that [Migrate] makes, by [Config.Prefix]. With ExistingHistory, only the
	// messages are there.
	History bool
	// ExistingHistory is a table of the user's in which every change leaves a row.
	// Zero: there is none.
	ExistingHistory ExistingHistory
	// Micros: ChangedAt, Deadline and ExistingHistory.At are integers, microseconds
	// since 1970, as they always are in SQLite. Otherwise they are timestamptz in
	// PostgreSQL, and datetime(6) in MySQL, in UTC.
	Micros bool
}

// ExistingHistory describes a table of the user's that keeps the history: one row
// for each change that is not MetadataOnly. Rows are added and never changed. The
// zero ExistingHistory is none.
//
// Table, ID, Sequence, Token, To and At are required: by them a commit whose
// answer was lost is known, and told as it was. A unique index on ID and Sequence
// (and Machine) is demanded; through a view it is the user's to see to it.
// What is lost without the other columns:
//
//   - Machine: the table is for the objects of this adapter alone.
//   - Revision: rows are read without one. An adapter without Removed, which
//     deletes the row of a removed object, needs it, for its numbers go on here;
//     and with Columns.Operation it needs Operation.
//   - From, FromOrigin, Origin, Event, Actor, Reason and Operation are read as
//     nothing; FromOrigin as From, and Origin as To. Tables of another time
//     cannot be checked against a history without them.
//
// ID, Sequence and Token are NOT NULL. Types are as in [ExistingTable].
type ExistingHistory struct {
	Table                                string // the name, or schema.name
	Machine, ID                          string // columns
	Sequence, Revision, Token, Operation string
	From, FromOrigin, To, Origin         string
	Event, Actor, Reason, At             string
}

// ColumnMap has the names of columns in a user's table. Empty: there is none.
type ColumnMap struct {
	ID, State, Revision, Sequence                string
	Origin, Target, Operation, Owner, Epoch      string
	Work, Args, WorkOptions, Deadline, ChangedAt string
	Actor, Event, Reason, Payload, Saved, Token  string
}

// Open returns the store in a user's table. Of the configuration, NoHistory means
// nothing here.
//
// Errors: [ErrIdentifier] for names, [ErrSchema] for a table that lacks a column
// or a unique index, or has one of another type, or if the history lacks its tables,
// [lifecycle.ErrInvalid] for columns that make no sense together, and for
// connections that cut or change text; those of the driver.
func (a ExistingTable) Open(ctx context.Context, db *sql.DB, d Dialect, config *Config) (*Store, error) {
	c, err := config.resolved()
	if err != nil {
		return nil, err
	}
	if err := d.check(db); err != nil {
		return nil, err
	}
	l, err := a.layout(d.engine, c.Prefix)
	if err != nil {
		return nil, err
	}
	if a.History {
		if err := current(ctx, db, d.engine, c.Prefix); err != nil {
			return nil, fmt.Errorf("%w, for the history of %s", err, a.Table)
		}
	}
	if err := d.complete(ctx, db, l); err != nil {
		return nil, err
	}
	if err := d.honest(ctx, db); err != nil {
		return nil, err
	}
	s, err := open(ctx, db, d.engine, l, c)
	if err != nil {
		return nil, fmt.Errorf("%w: table %s: %w", ErrSchema, a.Table, failed(ctx, err))
	}
	// An id that nobody has shows whether the columns are of the types they are to be.
	nobody := lifecycle.Key{Machine: a.Machine, ID: "\u0001"}
	_, err = s.session(db).record(ctx, nobody, s.st.get)
	if err == nil && s.has.History {
		_, err = s.session(db).history(ctx, nobody, 0, 1)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: table %s: %w", ErrSchema, a.Table, err), s.Close())
	}
	return s, nil
}

// names are the columns in the order of the values.
func (a *ExistingTable) names() [columns]string {
	c := &a.Columns
	return [columns]string{
		vID: c.ID, vState: c.State, vOrigin: c.Origin, vTarget: c.Target, vRevision: c.Revision, vSequence: c.Sequence,
		vOperation: c.Operation, vOwner: c.Owner, vEpoch: c.Epoch, vWork: c.Work, vArgs: c.Args, vWorkOptions: c.WorkOptions,
		vDeadline: c.Deadline, vChangedAt: c.ChangedAt, vActor: c.Actor, vEvent: c.Event, vReason: c.Reason,
		vPayload: c.Payload, vSaved: c.Saved, vToken: c.Token,
	}
}

func (a *ExistingTable) layout(e *engine, prefix string) (l *layout, err error) {
	if err := a.sound(); err != nil {
		return nil, err
	}
	l = &layout{machine: a.Machine, native: !a.Micros && e != SQLite.engine, removed: a.Removed, deletes: a.Removed == "", foreign: true}
	if l.table, err = e.table(a.Table); err != nil {
		return nil, err
	}
	names := a.names()
	if err := e.quoteAll(l.column[:], names[:]); err != nil {
		return nil, err
	}
	if a.History {
		l.messages = e.quoted(prefix + "messages")
	}
	switch {
	case a.ExistingHistory != ExistingHistory{}:
		l.foreignHistory = true
		if l.history, err = e.table(a.ExistingHistory.Table); err != nil {
			return nil, err
		}
		names := a.ExistingHistory.names()
		return l, e.quoteAll(l.historyColumn[:], names[:])
	case a.History:
		l.ownHistory(e, prefix)
	}
	return l, nil
}

// table is the name of a user's table, for a statement.
func (e *engine) table(name string) (string, error) {
	parts := strings.Split(name, ".")
	if len(parts) > 2 {
		return "", fmt.Errorf("%w: %q", ErrIdentifier, name)
	}
	for i, part := range parts {
		if err := identifier(part); err != nil {
			return "", err
		}
		parts[i] = e.quoted(part)
	}
	return strings.Join(parts, "."), nil
}

// quoteAll makes names of columns those for statements, and refuses what are none,
// and one that is to be two things.
func (e *engine) quoteAll(into, names []string) error {
	used := make(map[string]bool)
	for i, name := range names {
		if name == "" {
			continue
		}
		if err := identifier(name); err != nil {
			return err
		}
		low := strings.ToLower(name)
		if used[low] {
			return fmt.Errorf("%w: column %s is to be two things", lifecycle.ErrInvalid, name)
		}
		used[low] = true
		into[i] = e.quoted(name)
	}
	return nil
}

// names are the columns in their order.
func (p *ExistingHistory) names() [historyColumns]string {
	return [historyColumns]string{
		hMachine: p.Machine, hID: p.ID, hSequence: p.Sequence, hRevision: p.Revision, hToken: p.Token, hOperation: p.Operation,
		hFrom: p.From, hFromOrigin: p.FromOrigin, hTo: p.To, hOrigin: p.Origin,
		hEvent: p.Event, hActor: p.Actor, hReason: p.Reason, hAt: p.At,
	}
}

// sound refuses columns that make no sense together.
func (a *ExistingTable) sound() error {
	c := &a.Columns
	metadata := c.Owner != "" || c.Epoch != "" || c.Deadline != ""
	operations := metadata || c.Operation != "" || c.Work != "" || c.Args != "" || c.WorkOptions != "" || c.Saved != "" || c.Token != ""
	p := &a.ExistingHistory
	existing := *p != ExistingHistory{}
	history := a.History || existing
	bad := ""
	switch {
	case a.Machine == "" || a.Table == "" || c.ID == "" || c.State == "":
		bad = "machine, table, and columns for id and state are required"
	case c.Revision == "" && (operations || c.Sequence != "" || history):
		bad = "without a revision there are no operations and no history"
	case c.Sequence == "" && (metadata || history):
		bad = "owner, epoch, deadline and history need a sequence number"
	case (c.Owner == "") != (c.Epoch == ""):
		bad = "owner and epoch go together"
	case existing && (p.Table == "" || p.ID == "" || p.Sequence == "" || p.Token == "" || p.To == "" || p.At == ""):
		bad = "an existing history needs a table, and columns for id, sequence, token, to and at"
	case existing && strings.EqualFold(p.Table, a.Table):
		bad = "an existing history is a table of its own"
	case existing && a.Removed == "" && p.Revision == "":
		bad = "the numbers of removed objects go on in a history with a revision"
	case existing && a.Removed == "" && p.Operation == "" && c.Operation != "":
		bad = "the operations of removed objects go on in a history with an operation"
	default:
		return name("removed state", a.Removed, maxName)
	}
	return fmt.Errorf("%w: existing table %q: %s", lifecycle.ErrInvalid, a.Table, bad)
}

// takes refuses a change that sets a field for which the table has no column, if
// losing the field would be unsound.
func (l *layout) takes(ch *lifecycle.StoredChange) error {
	if !l.foreign {
		return nil
	}
	to := &ch.To
	said := map[value]bool{
		vOperation: to.Operation != 0, vOwner: to.Owner != "", vEpoch: to.Epoch != 0, vWork: to.Work != "",
		vArgs: len(to.Args) > 0, vWorkOptions: len(to.WorkOptions) > 0, vDeadline: ch.Timeout > 0,
		vOrigin: to.Origin != "" && to.Origin != to.State,
	}
	if !ch.Remove {
		said[vPayload], said[vSaved] = len(to.Payload) > 0, to.Saved != nil
	}
	for v := range columns {
		if said[v] && l.column[v] == "" {
			return fmt.Errorf("%w: the table has no column for what %q has as its %s", errors.ErrUnsupported, to.ID, columnNames[v])
		}
	}
	switch {
	case ch.Remove && l.deletes && l.history == "":
		return fmt.Errorf("%w: %q cannot be removed without a history where its numbers go on", errors.ErrUnsupported, to.ID)
	case l.column[vRevision] == "" && ch.MetadataOnly:
		return fmt.Errorf("%w: without a revision nothing but the state of %q can be changed", errors.ErrUnsupported, to.ID)
	case l.column[vRevision] == "" && ch.From == to.State:
		return fmt.Errorf("%w: without a revision a change of %q from %s to itself would have no winner", errors.ErrUnsupported, to.ID, ch.From)
	}
	return nil
}
