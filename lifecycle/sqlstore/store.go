package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
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
	tx *sql.Tx // the caller's transaction; nil: none
}

// shared is what a store and its views in transactions have in common.
type shared struct {
	db       *sql.DB
	e        *engine
	own      *layout   // of all machines but those of existing tables
	layouts  []*layout // own, and those of existing tables
	messages string    // the name of the table
	config   Config
	has      lifecycle.Capabilities
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
// connections that truncate or convert text, and for connections to MySQL with the isolation
// level READ UNCOMMITTED; the driver's errors.
func Open(ctx context.Context, db *sql.DB, d Dialect, config *Config) (*Store, error) {
	c, err := config.resolved()
	if err != nil {
		return nil, err
	}
	if err := d.check(db); err != nil {
		return nil, err
	}
	layouts, err := d.verified(ctx, db, &c)
	if err != nil {
		return nil, err
	}
	s := &Store{shared: &shared{
		db: db, e: d.engine, own: layouts[0], layouts: layouts, messages: d.quoted(c.Prefix + "messages"), config: c,
		has:      lifecycle.Capabilities{Changes: maxChanges, History: true, Messages: true, OwnClock: d.ownClock},
		prepared: make(map[*statement]*sql.Stmt),
		writer:   make(chan struct{}, 1),
	}}
	for _, l := range layouts {
		l.st = d.compile(l)
		if !d.prepares {
			continue
		}
		for _, st := range l.st.prepared() {
			if s.prepared[st], err = db.PrepareContext(ctx, st.text); err != nil {
				delete(s.prepared, st)
				return nil, errors.Join(fmt.Errorf("sqlstore: table %s: %w", d.unquoted(l.objects.name), err), s.Close())
			}
		}
	}
	return s, nil
}

func (d Dialect) check(db *sql.DB) error {
	if d.engine == nil || db == nil {
		return errors.New("sqlstore: open store: a database and a dialect are required")
	}
	return nil
}

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
func (s *Store) call(ctx context.Context, run func(*session) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	if s.tx != nil {
		return failed(ctx, run(s.on(s.tx)))
	}
	for r := (retry{most: s.config.RetryFor}); ; {
		err := run(s.on(s.db))
		if err == nil {
			return nil
		}
		if !r.again(ctx, err) {
			return s.refusal(ctx, err)
		}
	}
}

// querier is a database, a connection or a transaction.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// session executes statements in one place.
type session struct {
	*shared
	q      querier
	callTx bool // q is a transaction of the caller
}

// on returns a session for the store's own calls, or for those in its transaction.
func (s *Store) on(q querier) *session { return &session{s.shared, q, s.tx != nil} }

// stmt returns the prepared form of a statement, or nil. A transaction of the caller
// has none: to prepare a statement there may need a second connection.
func (s *session) stmt(ctx context.Context, st *statement) *sql.Stmt {
	p := s.prepared[st]
	if p == nil || s.callTx {
		return nil
	}
	if tx, ok := s.q.(*sql.Tx); ok {
		return tx.StmtContext(ctx, p)
	}
	return p
}

// session returns a session without a store, for queries about tables.
func (e *engine) session(q querier) *session { return &session{shared: &shared{e: e}, q: q} }

func (s *session) exec(ctx context.Context, st *statement, vals vector) (sql.Result, error) {
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
func (s *session) do(ctx context.Context, l *layout, vals vector, write func(*builder)) error {
	b := &builder{e: s.e, l: l}
	write(b)
	_, err := s.exec(ctx, b.statement(), vals)
	return err
}

// query executes a query and calls scan for every row. An engine may report an error
// after the last row.
func (s *session) query(ctx context.Context, st *statement, vals vector, scan func(*sql.Rows) error) error {
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
