package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

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
	r := *cmp.Or(c, &Config{})
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
// concurrent use; the one of WithTx is for one goroutine at a time. A Store must not be copied.
type Store struct {
	*shared
	q  querier // executes the statements: the database, or a connection or transaction
	tx *sql.Tx // the caller's transaction, which is then q; nil: none

	ended bool // a call has failed: tx may have ended, or has half of a commit
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
	writer   *semaphore.Weighted // held by a commit that writes to an engine with one writer

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
// connections that truncate or convert text, and for connections to MySQL without autocommit, with
// completion_type=CHAIN, or with the isolation level READ UNCOMMITTED; the driver's errors.
func Open(ctx context.Context, db *sql.DB, d Dialect, config *Config) (*Store, error) {
	s, err := newStore(db, d, config)
	if err != nil {
		return nil, err
	}
	if err := s.call(ctx, func() error { return s.openTables(ctx) }); err != nil {
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
		return nil, fmt.Errorf("%w: a database and a dialect are required", lifecycle.ErrInvalid)
	}
	return &Store{q: db, shared: &shared{
		db: db, e: d.engine, config: c,
		has:      lifecycle.Capabilities{Changes: maxChanges, History: true, Messages: true, OwnClock: d.ownClock},
		prepared: make(map[*statement]*sql.Stmt),
		writer:   semaphore.NewWeighted(1),
	}}, nil
}

// WithTx returns the store inside a transaction of the caller: what it commits is
// written when, and only if, the caller's COMMIT succeeds. The caller's own writes
// and the records change together:
//
//	orders := lifecycle.Must(machine, store.WithTx(tx), nil)
//	_, err := orders.Fire(ctx, id, Pay, Customer, nil)
//
// The transaction of an ORM has a *sql.Tx inside: tx.Tx with sqlx and bun, and
// tx.Statement.ConnPool.(*sql.Tx) with gorm.
//
// The store sends neither COMMIT nor ROLLBACK, and retries nothing. A conflict, and any
// other refusal of the request, is reported at once and leaves the transaction as it was:
// every commit has a savepoint. After any other error, roll back: the engine may have ended the
// transaction, and the view then refuses every call with [ErrRollback].
//
// The caller's COMMIT decides whether the commit was written, and the history has its
// token. Reads see what the transaction sees: at isolation levels above READ COMMITTED that
// may be older than the records, and the commit is then the conflict. The owner that writes
// ([lifecycle.Commit.Owner]) must be alive in what the transaction sees. If the transaction
// is SERIALIZABLE, MySQL locks the owner's record until its end, and heartbeats wait.
//
// A [lifecycle.Manager] calls its observer, and wakes callers that wait for a change,
// when the change is in the transaction, before the caller's COMMIT. Messages are
// delivered only after the COMMIT. Do not call Manager.Do with this store: its work
// would start before the COMMIT.
//
// The transaction is for one goroutine at a time while it has views: the statements and
// savepoints of two calls must not mix. The view fails after the end of the transaction, and
// needs no Close.
func (s *Store) WithTx(tx *sql.Tx) *Store { return &Store{shared: s.shared, q: tx, tx: tx} }

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
	s.closed = true
	s.mu.Unlock()
	s.calls.Wait()
	var err error
	for _, p := range s.prepared {
		err = errors.Join(err, p.Close()) // nil if it is closed already
	}
	return err
}

// mostBroken is the number of attempts after errors that time alone does not heal:
// broken connections (a pool may keep connections that ended long ago), and keys of
// another unique index, which may belong to a row that is being removed.
const mostBroken = 3

// call makes a call of the store. It repeats the call until it succeeds, its error is final, the
// time for retries is over or the context ends. In a transaction of the caller every error is
// final.
func (s *Store) call(ctx context.Context, run func() error) error {
	if ctx.Err() != nil {
		return lifecycle.Ended(ctx)
	}
	if s.ended { // MySQL and SQLite would execute a statement after the transaction
		return errEnded
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return lifecycle.ErrClosed
	}
	s.calls.Add(1)
	s.mu.Unlock()
	defer s.calls.Done()
	var until time.Time // the end of retries while other transactions are in the way
	broken := 0
	for attempts := 1; ; attempts++ {
		err := run()
		if err == nil {
			return nil
		}
		c := classify(err)
		if s.tx != nil {
			s.ended = s.ended || !errors.Is(err, errMissed) && (!c.refused() || c == unable)
			return err
		}
		if attempts == 1 {
			until = time.Now().Add(s.config.RetryFor)
		}
		if c != busy {
			broken++
		}
		late := c == busy && !time.Now().Before(until)
		if c.refused() || late || broken > mostBroken || !pause(ctx, attempts) {
			return err
		}
	}
}
