package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/lifecycle"
)

// Adapter keeps the records of one machine in a table of the user's: the
// compare-and-set happens on its columns, beside those that are none of the
// library's business. It is a value; [Adapter.Open] makes a [Store] of it.
//
// Machine, Table and the columns ID and State are required. What a column is
// needed for:
//
//   - Revision is a number that changes with every commit. Without it only the
//     state is compared, and an object that has left a state and come back looks
//     as if it had never left (ABA). Therefore changes with an operation, quiet
//     ones, and those from a state to itself are refused then, and no column below may
//     be named that only operations need.
//   - Sequence counts the commits. Without it the revision does. It is required
//     with History, and with the columns that quiet changes write.
//   - Operation, Owner and Epoch, Work, Args, Steps, Deadline, Payload, Saved and
//     Origin: a change that has something to say there is refused with
//     [errors.ErrUnsupported] if the column is missing. Queries by age, deadline
//     and owner need ChangedAt, Deadline and Owner, and are refused as well.
//   - Target, Actor, Event and Reason are for people, and lost without a column,
//     as ChangedAt is.
//   - Token, or History, tells whether a commit was written whose answer was
//     lost. Without both, [lifecycle.ErrUnknownOutcome] is all that can be said,
//     and a commit that is sent again is a conflict.
//   - Token is also compared beside Revision. Without it a revision may repeat
//     where an engine that is killed loses commits which somebody has read: MySQL
//     shows them before they are on disk, PostgreSQL with synchronous_commit=off.
//     Who has read such a record then overwrites the one that took its number.
//     The same goes for creating an object again whose row was deleted.
//
// Whoever else writes State must write another Revision too, or a trigger must:
// then it is a conflict for everybody who has read the row before. A state that
// was changed without it is a conflict as well, until it is changed back.
//
// ID and State are text, ID is unique, and they, Revision and Sequence are NOT
// NULL; names are compared byte by byte, whatever the collation. Numbers are 64
// bits wide, Args, Steps, Payload, Saved and Token bytes. Columns of a new row
// that are not named here need a default. In MySQL the table is InnoDB's.
// An object cannot be required to be absent here on PostgreSQL and MySQL, where
// a row that is not there cannot be locked.
type Adapter struct {
	Machine string // whose objects have rows here
	Table   string // the name, or schema.name
	Columns Columns
	// Removed is the state of a row whose object was removed. Empty: removing an
	// object deletes its row; this needs History, where its numbers go on.
	Removed string
	// History has every change leave a row, and commits carry messages, in the
	// tables that [Migrate] makes, by [Config.Prefix].
	History bool
	// Micros says that ChangedAt and Deadline are integers, microseconds since
	// 1970, as they always are in SQLite. Otherwise they are timestamptz in
	// PostgreSQL, and datetime(6) in MySQL, in UTC.
	Micros bool
}

// Columns are the names of columns in a user's table. Empty: there is none.
type Columns struct {
	ID, State, Revision, Sequence               string
	Origin, Target, Operation, Owner, Epoch     string
	Work, Args, Steps, Deadline, ChangedAt      string
	Actor, Event, Reason, Payload, Saved, Token string
}

// Open returns the store in a user's table. Of the configuration, NoHistory means
// nothing here.
//
// Errors: [ErrIdentifier] for names, [ErrSchema] for a table that lacks one of
// the columns or takes no text for an id, or if the history lacks its tables,
// [lifecycle.ErrInvalid] for columns that make no sense together; those of the
// driver.
func (a Adapter) Open(ctx context.Context, db *sql.DB, d Dialect, config *Config) (*Store, error) {
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
	s, err := open(ctx, db, d.engine, l, c)
	if err != nil {
		return nil, fmt.Errorf("%w: table %s: %w", ErrSchema, a.Table, failed(ctx, err))
	}
	// An id that nobody has shows whether the columns are of the types they are to be.
	_, err = s.session(db).record(ctx, lifecycle.Key{Machine: a.Machine, ID: "\u0001"}, s.st.get)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: table %s: %w", ErrSchema, a.Table, err), s.Close())
	}
	return s, nil
}

// names are the columns in the order of the values.
func (a *Adapter) names() [columns]string {
	c := &a.Columns
	return [columns]string{
		vID: c.ID, vState: c.State, vOrigin: c.Origin, vTarget: c.Target, vRevision: c.Revision, vSequence: c.Sequence,
		vOperation: c.Operation, vOwner: c.Owner, vEpoch: c.Epoch, vWork: c.Work, vArgs: c.Args, vSteps: c.Steps,
		vDeadline: c.Deadline, vChangedAt: c.ChangedAt, vActor: c.Actor, vEvent: c.Event, vReason: c.Reason,
		vPayload: c.Payload, vSaved: c.Saved, vToken: c.Token,
	}
}

func (a *Adapter) layout(e *engine, prefix string) (*layout, error) {
	if err := a.sound(); err != nil {
		return nil, err
	}
	l := &layout{machine: a.Machine, native: !a.Micros && e != SQLite.engine, removed: a.Removed, deletes: a.Removed == "", foreign: true}
	parts := strings.Split(a.Table, ".")
	if len(parts) > 2 {
		return nil, fmt.Errorf("%w: %q", ErrIdentifier, a.Table)
	}
	for i, part := range parts {
		if err := identifier(part); err != nil {
			return nil, err
		}
		parts[i] = e.quoted(part)
	}
	l.table = strings.Join(parts, ".")
	used := make(map[string]bool)
	for v, name := range a.names() {
		if name == "" {
			continue
		}
		if err := identifier(name); err != nil {
			return nil, err
		}
		if low := strings.ToLower(name); used[low] {
			return nil, fmt.Errorf("%w: column %s is to be two things", lifecycle.ErrInvalid, name)
		} else {
			used[low] = true
		}
		l.column[v] = e.quoted(name)
	}
	if a.History {
		l.history, l.messages = e.quoted(prefix+"history"), e.quoted(prefix+"messages")
	}
	return l, nil
}

// sound refuses columns that make no sense together.
func (a *Adapter) sound() error {
	c := &a.Columns
	quiet := c.Owner != "" || c.Epoch != "" || c.Deadline != ""
	operations := quiet || c.Operation != "" || c.Work != "" || c.Args != "" || c.Steps != "" || c.Saved != "" || c.Token != ""
	bad := ""
	switch {
	case a.Machine == "" || a.Table == "" || c.ID == "" || c.State == "":
		bad = "machine, table, and columns for id and state are required"
	case c.Revision == "" && (operations || c.Sequence != "" || a.History):
		bad = "without a revision there are no operations and no history"
	case c.Sequence == "" && (quiet || a.History):
		bad = "owner, epoch, deadline and history need a sequence number"
	case (c.Owner == "") != (c.Epoch == ""):
		bad = "owner and epoch go together"
	default:
		return name("removed state", a.Removed, maxName)
	}
	return fmt.Errorf("%w: adapter of table %q: %s", lifecycle.ErrInvalid, a.Table, bad)
}

// takes refuses a change that says what the table has no column for, if to lose
// it would be unsound.
func (l *layout) takes(ch *lifecycle.StoredChange) error {
	if !l.foreign {
		return nil
	}
	to := &ch.To
	said := map[value]bool{
		vOperation: to.Operation != 0, vOwner: to.Owner != "", vEpoch: to.Epoch != 0, vWork: to.Work != "",
		vArgs: len(to.Args) > 0, vSteps: len(to.Steps) > 0, vDeadline: ch.Within > 0,
		vOrigin: to.Origin != "" && to.Origin != to.State,
	}
	if !ch.Remove {
		payload, err := bytesOf(to.Payload)
		if err != nil {
			return err
		}
		said[vPayload], said[vSaved] = len(payload) > 0, to.Saved != nil
	}
	for v := range columns {
		if said[v] && l.column[v] == "" {
			return fmt.Errorf("%w: the table has no column for what %q has as its %s", errors.ErrUnsupported, to.ID, columnNames[v])
		}
	}
	switch {
	case ch.Remove && l.deletes && l.history == "":
		return fmt.Errorf("%w: %q cannot be removed without a history where its numbers go on", errors.ErrUnsupported, to.ID)
	case l.column[vRevision] == "" && ch.Quiet:
		return fmt.Errorf("%w: without a revision nothing but the state of %q can be changed", errors.ErrUnsupported, to.ID)
	case l.column[vRevision] == "" && ch.From == to.State:
		return fmt.Errorf("%w: without a revision a change of %q from %s to itself would have no winner", errors.ErrUnsupported, to.ID, ch.From)
	}
	return nil
}
