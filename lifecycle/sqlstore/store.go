package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// Config refines a [Store]. Nil and the zero Config are the defaults.
type Config struct {
	// Prefix begins the names of the tables: letters, digits and _, at most 40 of
	// them, and no digit first. Default: "interlock_".
	Prefix string
	// RetryFor bounds how long a call is retried while other transactions are in the
	// way: deadlocks, serialization failures, a locked database. The caller's context
	// may end it sooner. Default: 10 s; less than 0: no retries.
	RetryFor time.Duration
	// Tables are tables of the caller that keep the records of their machines. Default:
	// none; the store's own tables keep all records.
	Tables []ExistingTable
	// Progress receives how far [Migrate] and [Store.Trim] are: what they do, how much is
	// done, and of how much, 0 if that is unknown. Migrate counts versions of the tables, and
	// Trim the deleted rows of a table. Progress runs in the goroutine of the caller. During
	// Migrate that is inside its transaction: it must return at once, and not use the
	// database. Default: none.
	Progress func(what string, done, total int)
}

const (
	defaultPrefix = "interlock_"
	maxPrefix     = 40 // the names of the indexes stay below 63 bytes
	maxChanges    = 1 << 10
)

func (c *Config) resolved() (Config, error) {
	var r Config
	if c != nil {
		r = *c
	}
	r.Prefix = cmp.Or(r.Prefix, defaultPrefix)
	r.RetryFor = cmp.Or(r.RetryFor, 10*time.Second)
	if r.Progress == nil {
		r.Progress = func(string, int, int) {}
	}
	if err := identifier(r.Prefix); err != nil {
		return r, err
	}
	if len(r.Prefix) > maxPrefix {
		return r, fmt.Errorf("%w: prefix %q has more than %d bytes", lifecycle.ErrInvalid, r.Prefix, maxPrefix)
	}
	return r, nil
}

// Store keeps records in a database. [Open] and [Store.WithTx] make one. It is safe for
// concurrent use; in a transaction of the caller it is as safe as the transaction. A Store must not be copied.
type Store struct {
	*shared
	q  querier // executes the statements: the database, or a connection or transaction
	tx *sql.Tx // the caller's transaction, which is then q; nil: none
}

// querier is a database, a connection or a transaction.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// shared is what a store and its views in transactions have in common.
type shared struct {
	db       *sql.DB
	e        *engine
	config   Config
	has      lifecycle.Capabilities
	own      *layout   // of all machines but those of existing tables
	layouts  []*layout // own, and those of existing tables
	prepared map[*statement]*sql.Stmt
	writer   chan struct{} // full while a commit writes to an engine with one writer

	mu     sync.Mutex // guards closed, and calls.Add against calls.Wait
	closed bool
	calls  sync.WaitGroup
}

var (
	_ lifecycle.Historian = (*Store)(nil)
	_ lifecycle.Outbox    = (*Store)(nil)
	_ lifecycle.Follower  = (*Store)(nil)
	_ lifecycle.Partial   = (*Store)(nil)
)

// Open returns the store in the tables that [Migrate] has made, and in the existing tables
// of the configuration. The database stays the caller's: [Store.Close] does not close it.
//
// The store's own tables may be of an older or newer version, see [Version].
//
// Errors: [ErrSchema] if a table does not exist, lacks columns or indexes, has a column of
// another type, or is not compatible with this version; [lifecycle.ErrInvalid] for the prefix
// and other names, for an [ExistingTable] that contradicts itself or another one, for
// connections that truncate or convert text, and for connections to MySQL without autocommit, or
// with the isolation level READ UNCOMMITTED; the driver's errors.
func Open(ctx context.Context, db *sql.DB, d Dialect, config *Config) (*Store, error) {
	s, err := newStore(db, d, config)
	if err != nil {
		return nil, err
	}
	if err := s.patiently(ctx, func() error { return s.openTables(ctx) }); err != nil {
		return nil, err
	}
	if !d.prepares {
		return s, nil
	}
	for _, l := range s.layouts {
		for _, st := range l.st.prepared() {
			p, err := db.PrepareContext(ctx, st.text)
			if err != nil {
				return nil, errors.Join(failed(ctx, fmt.Errorf("table %s: %w", d.unquoted(l.objects.name), err)), s.Close())
			}
			s.prepared[st] = p
		}
	}
	return s, nil
}

// newStore returns a store that does not know its tables yet.
func newStore(db *sql.DB, d Dialect, config *Config) (*Store, error) {
	c, err := config.resolved()
	if err != nil {
		return nil, err
	}
	if d.engine == nil || db == nil {
		return nil, errors.New("sqlstore: open store: a database and a dialect are required")
	}
	return &Store{q: db, shared: &shared{
		db: db, e: d.engine, config: c,
		has:      lifecycle.Capabilities{Changes: maxChanges, History: true, Messages: true, OwnClock: d.ownClock},
		prepared: make(map[*statement]*sql.Stmt),
		writer:   make(chan struct{}, 1),
	}}, nil
}

// table returns the name of one of the store's own tables.
func (s *shared) table(name string) string { return s.e.quoted(s.config.Prefix + name) }

// of returns the layout of the objects of a machine.
func (s *shared) of(machine string) *layout {
	for _, l := range s.layouts[1:] {
		if l.machine == machine {
			return l
		}
	}
	return s.own
}

// Capabilities implements [lifecycle.Store].
func (s *Store) Capabilities() lifecycle.Capabilities { return s.has }

// Close makes every later call fail with [lifecycle.ErrClosed], also the calls of
// views in transactions. It waits for the calls in progress and frees the prepared
// statements. A second Close does nothing, and so does Close of a view. The database
// stays open.
func (s *Store) Close() error {
	if s.tx != nil {
		return nil
	}
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	s.calls.Wait()
	if closed {
		return nil
	}
	var err error
	for _, p := range s.prepared {
		err = errors.Join(err, p.Close())
	}
	return err
}

// enter begins a call, unless the context has ended or the store is closed. After
// nil the caller must call calls.Done.
func (s *shared) enter(ctx context.Context) error {
	if ctx.Err() != nil {
		return lifecycle.Ended(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return lifecycle.ErrClosed
	}
	s.calls.Add(1)
	return nil
}

// call makes a call that may be repeated: it reads, or has the same effect twice.
// In a transaction of the caller it is made once.
func (s *Store) call(ctx context.Context, run func() error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	for r := (retry{most: s.config.RetryFor}); ; {
		err := run()
		if err == nil {
			return nil
		}
		if s.tx != nil || !r.again(ctx, err) {
			return s.refusal(ctx, err)
		}
	}
}

// on returns the store with its statements executed by a connection or a transaction of its own.
func (s *Store) on(q querier) *Store { return &Store{shared: s.shared, q: q} }

// statement is the text of a statement and its arguments. A param stands for a value; any
// other argument is literal.
type statement struct {
	text string
	args []any
}

// param is a value of a change, or a name.
type param struct {
	v    value
	name any     // a string: the name; nil: it is v
	in   *column // whose type it gets; nil: it stays
}

// vector has the values of one change for every statement.
type vector []any

// ofKey returns the values of a key.
func ofKey(key lifecycle.Key) vector {
	vals := make(vector, values)
	vals[vMachine], vals[vID] = key.Machine, key.ID
	return vals
}

// bind returns the arguments of a statement. It matches [lifecycle.ErrInvalid] if the type
// of a column refuses a value.
func (st *statement) bind(vals vector) (args []any, err error) {
	args = slices.Clone(st.args)
	for i, a := range args {
		p, ok := a.(param)
		switch {
		case !ok:
			continue
		case p.name != nil:
			args[i] = p.name
		default:
			args[i] = vals[p.v]
		}
		if p.in != nil {
			var refused error
			args[i], refused = p.in.write(args[i])
			err = cmp.Or(err, refused)
		}
	}
	return args, err
}

// stmt returns the prepared form of a statement, or nil. A transaction of the caller
// has none: to prepare a statement there may need a second connection.
func (s *Store) stmt(ctx context.Context, st *statement) *sql.Stmt {
	p := s.prepared[st]
	if p == nil || s.tx != nil {
		return nil
	}
	if tx, ok := s.q.(*sql.Tx); ok {
		return tx.StmtContext(ctx, p)
	}
	return p
}

func (s *Store) exec(ctx context.Context, st *statement, vals vector) (sql.Result, error) {
	args, err := st.bind(vals)
	if err != nil {
		return nil, err
	}
	if p := s.stmt(ctx, st); p != nil {
		return p.ExecContext(ctx, args...)
	}
	return s.q.ExecContext(ctx, st.text, args...)
}

// do builds a statement and executes it.
func (s *Store) do(ctx context.Context, l *layout, write func(*builder)) error {
	_, err := s.exec(ctx, s.e.build(l, write), nil)
	return err
}

// into returns the scan of the columns of a row into variables.
func into(dest ...any) func(*sql.Rows) error {
	return func(rows *sql.Rows) error { return rows.Scan(dest...) }
}

// query executes a query and calls scan for every row. An engine may report an error
// after the last row.
func (s *Store) query(ctx context.Context, st *statement, vals vector, scan func(*sql.Rows) error) error {
	args, err := st.bind(vals)
	if err != nil {
		return err
	}
	var rows *sql.Rows
	if p := s.stmt(ctx, st); p != nil {
		rows, err = p.QueryContext(ctx, args...)
	} else {
		rows, err = s.q.QueryContext(ctx, st.text, args...)
	}
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			if ctx.Err() == nil && classify(err) == noAnswer {
				err = fmt.Errorf("%w: %w", errRead, err)
			}
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return rows.Close()
}
