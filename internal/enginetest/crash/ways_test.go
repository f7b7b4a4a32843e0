package crash

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/crashtest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
)

// The other ways to use a store: in an existing table, in transactions of the caller, with
// a hook before every commit, and while the history is trimmed.

const leastKept = 8 // rows of every object that Trim keeps at least

// TestLifeInAnExistingTable: the disks are in a table of the user's, and the owners in the
// library's tables.
func TestLifeInAnExistingTable(t *testing.T) { testLife(t, true) }

// TestHandoverInAnExistingTable: the same for a process that takes over from another.
func TestHandoverInAnExistingTable(t *testing.T) { testHandover(t, true) }

// booked is a store every commit of which is in a transaction of the caller, with a row of
// the caller's own.
type booked struct{ *aged }

func (s booked) Commit(ctx context.Context, c *lifecycle.Commit) error {
	for {
		err := s.book(ctx, c)
		if !errors.Is(err, sqlstore.ErrRollback) {
			return err
		}
	}
}

func (s booked) book(ctx context.Context, c *lifecycle.Commit) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	err = s.WithTx(tx).Commit(ctx, c)
	if err == nil && !c.Changes[0].MetadataOnly {
		// A commit that is sent again may have its row.
		token := "'" + c.Token.String() + "'"
		_, err = tx.ExecContext(ctx, "INSERT INTO book SELECT t FROM (SELECT "+token+" AS t) x WHERE NOT EXISTS (SELECT 1 FROM book WHERE token = "+token+")")
	}
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// TestLifeInTransactions: the rows of the caller and the history are the same commits.
func TestLifeInTransactions(t *testing.T) {
	points(t, func(t *testing.T, e engine) (crashtest.Harness, crashtest.Scenario[disks]) {
		h := e.harness(t)
		fresh, now := h.New, booked{}
		h.New = func(t testing.TB) lifecycle.Store {
			now = booked{fresh(t).(*aged)}
			now.exec(t, "DROP TABLE IF EXISTS book", "CREATE TABLE book (token varchar(32))")
			return now
		}
		if age := h.Age; age != nil {
			h.Age = func(t testing.TB, store lifecycle.Store, d time.Duration) { age(t, store.(booked).aged, d) }
		}
		return h, crashtest.Scenario[disks]{
			Start: start, Script: life, Ends: lifeEnds,
			Check: func(ctx context.Context, _ disks) error { return now.compare(ctx) },
		}
	}, shortKinds...)
}

// compare reports commits of disks that are in the book or the history, but not in both.
func (s booked) compare(ctx context.Context) error {
	book := map[string]bool{}
	rows, err := s.db.QueryContext(ctx, "SELECT token FROM book")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var token string
		if err := rows.Scan(&token); err != nil {
			return err
		}
		if book[token] {
			return fmt.Errorf("commit %s is in the book twice", token)
		}
		book[token] = true
	}
	if err := rows.Err(); err != nil {
		return err
	}
	found := 0
	for _, id := range []string{"a", "b"} {
		history, err := s.History(ctx, key(id), 0, 1000)
		if err != nil {
			return err
		}
		for _, row := range history {
			if !book[row.Token.String()] {
				return fmt.Errorf("not in the book: %v", row)
			}
			found++
		}
	}
	if found == 0 {
		return errors.New("the history is empty")
	}
	return nil
}

// counter counts the changes of a disk.
var counter = fsm.Must[int](fsm.Spec[state, event]{
	Name: "counter", Initial: "none", Actors: []fsm.Actor{worker},
	States: []fsm.State[state]{{Name: "none", Kind: fsm.Absent}, {Name: "on"}},
	Rows: fsm.Rows(
		fsm.Move[state, event]("none", "start", "on").By(worker),
		fsm.Move[state, event]("on", "count", "on").By(worker),
		fsm.Move[state, event]("on", "stop", "none").By(worker),
	),
})

// TestLifeWithAHook: a hook changes another object in the commit of each change.
func TestLifeWithAHook(t *testing.T) {
	points(t, func(t *testing.T, e engine) (crashtest.Harness, crashtest.Scenario[disks]) {
		h := e.harness(t)
		fresh := h.New
		var store lifecycle.Store
		h.New = func(t testing.TB) lifecycle.Store {
			store = fresh(t)
			return store
		}
		start := func(ctx context.Context, p *crashtest.Process) (disks, error) {
			if err := p.Join(ctx, lifecycle.DefaultTTL); err != nil {
				return nil, err
			}
			counters := lifecycle.Must(counter, p.Store(), nil)
			c := config(p.Effect, 13*time.Second)
			c.BeforeCommit = func(ctx context.Context, ch *lifecycle.StoredChange) (*lifecycle.Tx, error) {
				tx := &lifecycle.Tx{}
				now, err := counters.Get(ctx, ch.To.ID)
				switch {
				case errors.Is(err, lifecycle.ErrNotFound):
					counters.In(tx).Create(ch.To.ID, "start", worker, 1, nil)
				case err != nil:
					return nil, err
				default:
					counters.In(tx).Fire(ch.To.ID, "count", worker, &lifecycle.Change[int]{
						Expect: now.Revision, Edit: func(n *int) error { *n++; return nil },
					})
				}
				return tx, nil
			}
			return crashtest.Manage(p, disk, c), nil
		}
		return h, crashtest.Scenario[disks]{
			Start: start, Script: life, Ends: lifeEnds,
			Check: func(ctx context.Context, _ disks) error {
				for _, id := range []string{"a", "b"} {
					r, err := store.Get(ctx, key(id))
					if err != nil {
						return err
					}
					n, err := lifecycle.Must(counter, store, nil).Get(ctx, id)
					if err != nil {
						return err
					}
					if uint64(n.Payload) != r.Sequence {
						return fmt.Errorf("%d changes of %s are counted, it has %d", n.Payload, id, r.Sequence)
					}
				}
				return nil
			},
		}
	}, shortKinds...)
}

// TestLifeWithTrim: the history is trimmed at every tick.
func TestLifeWithTrim(t *testing.T) {
	points(t, func(t *testing.T, e engine) (crashtest.Harness, crashtest.Scenario[disks]) {
		h := e.harness(t)
		fresh, deleted := h.New, 0
		var now *aged
		h.New = func(t testing.TB) lifecycle.Store {
			now = fresh(t).(*aged)
			return now
		}
		trim := func(ctx context.Context) error {
			n, err := now.Trim(ctx, time.Second, 0)
			deleted += n
			return err
		}
		return h, crashtest.Scenario[disks]{
			Start: func(ctx context.Context, p *crashtest.Process) (disks, error) {
				p.Every(trim)
				return start(ctx, p)
			},
			Script: life, Ends: lifeEnds,
			Check: func(ctx context.Context, _ disks) error {
				before := deleted
				if err := trim(ctx); err != nil {
					return err
				}
				rows, err := now.History(ctx, key("a"), 0, 100)
				if err == nil && (deleted == 0 || len(rows) > leastKept && before == deleted) {
					err = fmt.Errorf("%d rows are left, %d were deleted", len(rows), deleted)
				}
				return err
			},
		}
	}, shortKinds...)
}
