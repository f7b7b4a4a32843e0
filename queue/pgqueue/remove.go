package pgqueue

import (
	"context"
	"slices"
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
			e.removed <- slices.Contains(removed, e.Token)
		}
	}
}

// removeBatch removes actions and returns the tokens of those that were removed.
func (w *Worker) removeBatch(ctx context.Context, batch []end) (removed []int64, err error) {
	ctx, stop := context.WithTimeout(ctx, w.config.Lease)
	defer stop()
	var ids, held []int64
	for _, e := range batch {
		ids, held = append(ids, e.ID), append(held, e.Token)
	}
	return tokens(ctx, w.db, leaveAll, ids, held)
}
