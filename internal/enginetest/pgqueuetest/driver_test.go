package pgqueuetest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/queue"
	"github.com/interlock-go/interlock/queue/pgqueue"
)

// wrapped opens connections of pgx that hide their type, as those of a tracing driver do.
type wrapped struct{ driver.Connector }

// hidden has the methods of a connection that database/sql calls.
type hidden struct {
	driver.Conn
	driver.ConnBeginTx
	driver.QueryerContext
	driver.ExecerContext
	driver.NamedValueChecker
}

func (w wrapped) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := w.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	of := c.(*stdlib.Conn)
	return hidden{of, of, of, of, of}, nil
}

// A pool whose connections are not those of pgx has no notifications. The worker reports that,
// and polls.
func TestHiddenDriver(t *testing.T) {
	dsn, db := database(t)
	config, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	pool := sql.OpenDB(wrapped{stdlib.GetConnector(*config)})
	t.Cleanup(func() { require.NoError(t, pool.Close()) })
	errs, performed := make(chan error, 10_000), make(chan struct{}, 1)
	work := handler(func(context.Context, *pgqueue.Task) error { performed <- struct{}{}; return nil })
	run(t, pool, work, &pgqueue.Config{Observer: pgqueue.Observer{Error: func(_ context.Context, err error) { errs <- err }}})
	reported := next(t, errs)
	require.ErrorIs(t, reported, queue.ErrInvalid)
	require.ErrorContains(t, reported, "a driver other than pgx: pgqueuetest.hidden")
	enqueue(t, db, pgqueue.Action{Keys: []string{"a"}})
	next(t, performed)
}
