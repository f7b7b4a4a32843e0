package pgqueue

import (
	"context"
	"database/sql"
)

// end is an action that is to be removed. removed gets one value.
type end struct {
	*lease
	removed chan<- bool
}

// remove removes an action together with others that end at the same time. If it returns
// false, the action has lost its token, another transaction is in the way, or it is not known
// whether the action was removed.
func (w *Worker) remove(ctx context.Context, l *lease) bool {
	removed := make(chan bool, 1)
	select {
	case w.ends <- end{l, removed}:
		return <-removed // removeAll always sends it
	case <-ctx.Done():
		return false
	}
}

// removeAll removes the actions of w.ends until ctx ends. While a statement runs, the actions
// for the next one gather: a commit for each action would cost more than its removal.
func (w *Worker) removeAll(ctx context.Context) {
	for {
		var batch []end
		select {
		case e := <-w.ends:
			batch = append(batch, e)
		case <-ctx.Done():
			return
		}
		for more := true; more; {
			select {
			case e := <-w.ends:
				batch = append(batch, e)
			default:
				more = false
			}
		}
		removed, err := w.removeBatch(ctx, batch)
		if err != nil {
			w.failed(ctx, err)
		}
		for _, e := range batch {
			e.removed <- removed[e.Token]
		}
	}
}

// removeBatch removes actions and returns the tokens of those that were removed.
func (w *Worker) removeBatch(ctx context.Context, batch []end) (removed map[int64]bool, err error) {
	ctx, stop := context.WithTimeout(ctx, w.config.Lease)
	defer stop()
	var ids, tokens []int64
	for _, e := range batch {
		ids, tokens = append(ids, e.ID), append(tokens, e.Token)
	}
	removed = map[int64]bool{}
	err = query(ctx, w.db, leaveAll, []any{ids, tokens}, func(rows *sql.Rows) error {
		var token int64
		err := rows.Scan(&token)
		removed[token] = true
		return err
	})
	if err != nil {
		return nil, err // the rows may belong to a transaction that was not committed
	}
	return removed, nil
}
