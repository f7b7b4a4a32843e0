package etcdstore

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/lifecycle"
)

// leastKept is the least number of newest rows that [Store.Trim] keeps of every object. The
// store needs them to find a commit by its token.
const leastKept = 8

// Trim deletes history rows that are older than age by the clock of this process, and
// their requests. It keeps the newest rows of every object: keep of them, or eight
// if that is more. The rows of an object are deleted from the oldest on, without a gap.
// Trim reads the whole history. It returns the number of deleted rows, after an error too.
// Two processes that trim at the same time may count the same row.
//
// Errors: [lifecycle.ErrInvalid] for an age that is not above 0, and those of a read.
func (s *Store) Trim(ctx context.Context, age time.Duration, keep int) (deleted int, err error) {
	if age <= 0 {
		return 0, fmt.Errorf("%w: trim history: age %v is not above 0", lifecycle.ErrInvalid, age)
	}
	t := &trim{Store: s, before: s.config.Clock().Add(-age), keep: max(keep, leastKept)}
	start := s.key(histories)
	err = s.call(ctx, func() error {
		for kv, err := range s.each(ctx, start, end(start), perRequest) {
			if err != nil {
				return err
			}
			row, err := decode[lifecycle.HistoryRow](kv)
			if err != nil {
				return err
			}
			t.add(oldRow{row, string(kv.Value)})
			if len(t.old) == s.config.MaxTxnOps/2-1 { // etcd counts the nested operations, too
				err = t.delete(ctx)
			}
			if err != nil {
				return err
			}
		}
		return t.delete(ctx)
	})
	return t.deleted, err
}

// trim is one call of Trim. It gets the rows of an object in order.
type trim struct {
	*Store
	before  time.Time
	keep    int
	newest  []oldRow // of an object, at most keep
	done    bool     // no further row of the object is deleted
	old     []oldRow // to delete
	deleted int
}

type oldRow struct {
	lifecycle.HistoryRow
	value string // of its key, and of the key of its request
}

// add adds a row. The row of the same object that is keep rows older may be deleted.
func (t *trim) add(row oldRow) {
	if len(t.newest) > 0 && t.newest[0].Key != row.Key {
		t.newest, t.done = nil, false
	}
	if t.newest = append(t.newest, row); len(t.newest) <= t.keep {
		return
	}
	oldest := t.newest[0]
	t.newest = t.newest[1:]
	if t.done = t.done || !oldest.At.Before(t.before); !t.done {
		t.old = append(t.old, oldest)
	}
}

// delete deletes the old rows, oldest first, each with its request.
func (t *trim) delete(ctx context.Context) error {
	if len(t.old) == 0 {
		return nil
	}
	var deletes []clientv3.Op
	for _, row := range t.old {
		deletes = append(deletes, clientv3.OpDelete(t.key(histories, row.Machine, row.ID, hex(row.Sequence))))
		if row.Request != "" {
			// Bad schedule without the comparison: another process trims the row, a
			// commit makes the request again, and its key is deleted here.
			request := t.key(requests, row.Machine, row.Request)
			same := clientv3.Compare(clientv3.Value(request), "=", row.value)
			deletes = append(deletes, clientv3.OpTxn([]clientv3.Cmp{same}, []clientv3.Op{clientv3.OpDelete(request)}, nil))
		}
	}
	if _, err := t.read(ctx, deletes...); err != nil {
		return err
	}
	t.deleted += len(t.old)
	t.old = nil
	return nil
}
