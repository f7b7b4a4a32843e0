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
	// Prefix begins the names of the tables: letters, digits and _, at most
	// 40 of them, not a digit first. Default: "interlock_".
	Prefix string
	// NoHistory leaves out the history: one statement writes a change, and the
	// token of an object's last change alone says whether a commit was written.
	// The store then declares no History. Default: every change leaves a row.
	NoHistory bool
	// RetryFor bounds how long one commit is tried again because others are in
	// the way: deadlocks, serialization failures, a database that is locked. The
	// caller's context may end it sooner. Default: 10 s; less than 0: not at all.
	RetryFor time.Duration
	// SettleFor bounds how long the history is asked whether a commit was
	// written whose answer was lost. The end of the caller's context does not
	// shorten it. Default: 1 s.
	SettleFor time.Duration
}

// DefaultPrefix begins the names of the tables.
const DefaultPrefix = "interlock_"

const maxPrefix = 40 // the names of the indexes stay below 63

func (c *Config) resolved() (Config, error) {
	var r Config
	if c != nil {
		r = *c
	}
	r.Prefix = cmp.Or(r.Prefix, DefaultPrefix)
	r.RetryFor = cmp.Or(r.RetryFor, 10*time.Second)
	r.SettleFor = cmp.Or(r.SettleFor, time.Second)
	if err := identifier(r.Prefix); err != nil {
		return r, err
	}
	if len(r.Prefix) > maxPrefix {
		return r, fmt.Errorf("%w: prefix %q is longer than %d", ErrIdentifier, r.Prefix, maxPrefix)
	}
	return r, nil
}

// Store keeps records in a database. [Open] and [ExistingTable.Open] make one. It is
// safe for concurrent use and must not be copied.
type Store struct {
	*keeper
	db       *sql.DB
	prepared map[*statement]*sql.Stmt
	// turn is taken by whoever writes to an engine with one writer. Nil elsewhere.
	// It is held during a transaction, and a wait for it ends with the caller's
	// context.
	turn *turn

	mu     sync.Mutex // guards closed, and Add against Wait
	closed bool
	calls  sync.WaitGroup
}

// keeper is what a store has in common with its views inside transactions.
type keeper struct {
	e      *engine
	l      *layout
	config Config
	st     *statements
	has    lifecycle.Capabilities
	whole  bool // a change is one statement
}

var (
	_ lifecycle.Historian = (*Store)(nil)
	_ lifecycle.Outbox    = (*Store)(nil)
)

const maxChanges = 1 << 10

// Open returns the store in the tables of a database that [Migrate] has made.
// The database stays the caller's: [Store.Close] does not close it.
//
// Errors: [ErrSchema] if the tables are not there, lack columns, or are of
// another version;
// [ErrIdentifier] for the prefix; those of the driver.
func Open(ctx context.Context, db *sql.DB, d Dialect, config *Config) (*Store, error) {
	c, err := config.resolved()
	if err != nil {
		return nil, err
	}
	if err := d.check(db); err != nil {
		return nil, err
	}
	if err := current(ctx, db, d.engine, c.Prefix); err != nil {
		return nil, err
	}
	l := d.own(c.Prefix, !c.NoHistory)
	if err := d.complete(ctx, db, l); err != nil {
		return nil, err
	}
	return open(ctx, db, d.engine, l, c)
}

// current refuses tables of another version.
func current(ctx context.Context, db *sql.DB, e *engine, prefix string) error {
	v, err := version(ctx, db, e, prefix)
	if err == nil && v != Version {
		err = fmt.Errorf("%w: the tables %s* are of version %d, this is for version %d", ErrSchema, prefix, v, Version)
	}
	return err
}

func (d Dialect) check(db *sql.DB) error {
	if d.engine == nil || db == nil {
		return errors.New("sqlstore: a store needs a database and a dialect")
	}
	return nil
}

func open(ctx context.Context, db *sql.DB, e *engine, l *layout, c Config) (*Store, error) {
	s := &Store{
		keeper: &keeper{
			e: e, l: l, config: c, st: e.compile(l),
			has: lifecycle.Capabilities{
				Changes: maxChanges, History: l.history != "", Messages: l.messages != "", OwnClock: e.ownClock,
			},
			whole: l.one() && (e.returning || l.history == ""),
		},
		db: db,
	}
	if e.oneWriter {
		s.turn = new(turn)
	}
	if !e.prepares {
		return s, nil
	}
	s.prepared = make(map[*statement]*sql.Stmt)
	for _, st := range s.st.all() {
		p, err := db.PrepareContext(ctx, st.text)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("sqlstore: %w", err), s.Close())
		}
		s.prepared[st] = p
	}
	return s, nil
}

// Capabilities implements [lifecycle.Store].
func (s *keeper) Capabilities() lifecycle.Capabilities { return s.has }

// Close makes every later call fail with [lifecycle.ErrClosed], waits for those
// that are under way, and frees the prepared statements. It may be called twice.
// The database stays open.
func (s *Store) Close() error {
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

// enter begins a call, unless the context has ended or the store is closed.
// After nil, leave must be called.
func (s *Store) enter(ctx context.Context) error {
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

func (s *Store) leave() { s.calls.Done() }

// querier is a database, or a transaction.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// session is where statements run.
type session struct {
	*keeper
	q        querier
	prepared map[*statement]*sql.Stmt // nil in a transaction of the user's, whose connection may be the only one
	foreign  bool                     // the transaction is the user's
}

func (s *Store) session(q querier) *session {
	return &session{keeper: s.keeper, q: q, prepared: s.prepared}
}

func (s *session) exec(ctx context.Context, st *statement, args []any) (sql.Result, error) {
	if p := s.prepared[st]; p != nil {
		if tx, ok := s.q.(*sql.Tx); ok {
			p = tx.StmtContext(ctx, p)
		}
		return p.ExecContext(ctx, args...)
	}
	return s.q.ExecContext(ctx, st.text, args...)
}

func (s *session) query(ctx context.Context, st *statement, args []any) (*sql.Rows, error) {
	if p := s.prepared[st]; p != nil {
		if tx, ok := s.q.(*sql.Tx); ok {
			p = tx.StmtContext(ctx, p)
		}
		return p.QueryContext(ctx, args...)
	}
	return s.q.QueryContext(ctx, st.text, args...)
}

// each calls scan for every row, and closes the rows. What an engine says only
// after the last row is an error too.
func each(rows *sql.Rows, err error, scan func(*sql.Rows) error) error {
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return rows.Close()
}

// failed is the error of a call that has read or, surely, not written.
func failed(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return lifecycle.Ended(ctx)
	}
	return wrapped(err)
}

func wrapped(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("sqlstore: %w", err)
}
