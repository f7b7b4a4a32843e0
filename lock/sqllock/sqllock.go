package sqllock

import (
	"cmp"
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/interlock-go/interlock/lock"
)

// ErrClosed reports an acquisition after [Locker.Close].
var ErrClosed = errors.New("sqllock: the locker is closed")

// errSession is the error of an acquisition or a release whose session ends first. The locker
// begins another session as soon as the engine answers.
var errSession = fmt.Errorf("sqllock: %w: the session has ended", lock.ErrLost)

// Config has the settings of a [Locker]. Nil and the zero Config mean the defaults.
type Config struct {
	// TTL is how long the engine keeps the locks of a process from which it receives no
	// renewal. The locker renews every third of it. A grant is lost after nine tenths of it.
	// Default: 10 s. The minimum is 1 s, the maximum a day.
	TTL time.Duration
	// MaxWaiters and MaxHolders are those of [lock.Config]. The waiters of all processes count.
	MaxWaiters int
	MaxHolders int
}

func (c *Config) resolved() (r Config, err error) {
	r = *cmp.Or(c, new(Config))
	r.TTL = cmp.Or(r.TTL, 10*time.Second)
	r.MaxHolders = cmp.Or(r.MaxHolders, 16)
	invalid := func(what string, value any, reason string) {
		err = &lock.InvalidError{What: what, Value: fmt.Sprint(value), Reason: reason}
	}
	switch {
	case r.TTL < time.Second || r.TTL > 24*time.Hour:
		invalid("TTL", r.TTL, "is below 1s or above 24h")
	case r.MaxWaiters < 0 || r.MaxWaiters > math.MaxInt32:
		invalid("MaxWaiters", r.MaxWaiters, "is negative or above 1<<31 - 1")
	case r.MaxHolders < 0 || r.MaxHolders >= math.MaxInt32:
		invalid("MaxHolders", r.MaxHolders, "is negative or above 1<<31 - 2")
	}
	return r, err
}

//go:embed schema.sql
var schema string

// Migrate makes the tables and functions, or replaces the functions, in one transaction. It
// may be called again, and by several processes at once. The role owns them from then on.
// The others need USAGE and SELECT of the sequence, and SELECT, INSERT, UPDATE and DELETE of
// the tables. The errors are the driver's.
func Migrate(ctx context.Context, db *sql.DB) error {
	// The engine executes a text of several statements as one transaction.
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return fmt.Errorf("sqllock: migrate: %w", err)
	}
	return nil
}

const maxTree = 200

// Open returns the locker of a tree, and begins its session. Lockers of one tree in one
// database exclude each other, whatever their processes. The database is opened with pgx and
// stays the caller's. The locker listens on a connection of its own, made with this
// configuration. The caller calls [Locker.Close].
//
// Errors: [lock.ErrInvalid] for the configuration and for a name of a tree that is empty,
// longer than 200 bytes, or no text; the driver's, also if [Migrate] did not run;
// [context.DeadlineExceeded] if the session does not begin within a third of the TTL.
func Open(ctx context.Context, db *sql.DB, listen *pgx.ConnConfig, tree string, config *Config) (*Locker, error) {
	c, err := config.resolved()
	if err != nil {
		return nil, err
	}
	if tree == "" || len(tree) > maxTree || (&lock.Options{ID: tree}).Validate() != nil {
		return nil, &lock.InvalidError{What: "tree", Value: tree, Reason: fmt.Sprintf("is not a text of 1 to %d bytes", maxTree)}
	}
	l := &Locker{
		db: db, listen: listen.Copy(), tree: tree, config: c, generation: 1,
		claims: map[int64]*claim{}, ids: map[string]*claim{}, ended: make(chan struct{}),
	}
	l.session, err = l.begin(ctx, 0)
	var state interface{ SQLState() string } // of pgx
	if errors.As(err, &state) && state.SQLState() == undefinedFunction {
		return nil, fmt.Errorf("%w: call Migrate first", err)
	}
	if err != nil {
		return nil, err
	}
	// The session outlives the call, and Close ends it.
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop = stop
	go l.run(running, l.session)
	return l, nil
}

const undefinedFunction = "42883" // SQLSTATE

const closeWithin = 5 * time.Second

// Close ends the session: all grants are lost, calls that wait return [lock.ErrLost], and
// other processes are granted what they wait for. Later acquisitions, and a Lock that waits
// for a session, return [ErrClosed]. A second Close does nothing. The error is the driver's.
// The session then ends after its TTL.
func (l *Locker) Close() error {
	l.mu.Lock()
	closed := l.closed
	l.closed = true
	l.mu.Unlock()
	if closed {
		return nil
	}
	l.stop()
	<-l.ended
	s := l.session // run, which changes it, has returned
	l.end(s, "the locker is closed")
	l.releases.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	var removed bool
	return l.query(ctx, "sweep", []any{l.tree, s.id}, &removed)
}
