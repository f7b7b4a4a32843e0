package etcdlock

import (
	"context"
	"encoding/json"
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/lock"
)

// condition is when a claim is written.
type condition uint8

const (
	// ifUnchanged is for a request that must not conflict: only if no request was
	// written since the view on which it was decided. A deletion since then does no
	// harm: what was free is free.
	ifUnchanged condition = iota
	// always is for a request that may wait.
	always
	// noRequest is for what conflicts with nothing more than before.
	noRequest
)

// write writes the claims that change returns for a view. An error is decided again on a view
// that is not older than the call, and so are a write that came too late for its view and a
// result without a write. After an error, left is how the claims are removed that the
// transaction may have written. Write returns when the view shows the claims, if the context
// lets it.
//
// An operator writes without a session.
func (l *Locker) write(
	ctx context.Context, s *session, when condition, change func(*view) ([]*claim, error),
) (revision int64, left removal, err error) {
	if when == ifUnchanged {
		// One at a time: of several in one process, all but one would come too late.
		// The turn is not a mutex: a context and the end of the session end the wait for it.
		select {
		case l.turn <- struct{}{}:
			defer func() { <-l.turn }()
		case <-ctx.Done():
			return 0, keepKey, lock.Ended(ctx)
		case <-s.alive.Done():
			return 0, keepKey, &lock.LostError{Reason: "the session has ended", Err: lock.ErrLost}
		}
	}
	bounded := ctx
	if s != nil {
		var cancel context.CancelFunc
		bounded, cancel = l.within(ctx, s)
		defer cancel()
	}
	v := l.current()
	for fresh := false; ; fresh = true {
		next, err := change(v)
		// Bad schedule without the second condition: the watch hangs, the grant is downgraded,
		// another request gets the lock, and an upgrade back finds nothing to raise.
		if (err != nil || next == nil) && !fresh {
			if v, err = l.read(bounded, l.prefix); err == nil {
				continue
			}
		}
		if err != nil || next == nil {
			return 0, keepKey, err
		}
		var compares []clientv3.Cmp
		var ops []clientv3.Op
		for _, c := range next {
			value, _ := json.Marshal(c.record) // names, numbers and a time: there is no error
			lease := clientv3.WithIgnoreLease()
			if c.modified == 0 {
				lease = clientv3.WithLease(s.lease)
			}
			compares = append(compares, clientv3.Compare(clientv3.ModRevision(c.key), "=", c.modified))
			ops = append(ops, clientv3.OpPut(c.key, string(value), lease))
		}
		if s != nil {
			compares = append(compares, clientv3.Compare(clientv3.ModRevision(s.key), "=", v.sessions[s.key]))
		}
		if when == ifUnchanged {
			compares = append(compares, clientv3.Compare(clientv3.ModRevision(l.prefix+treeKey), "=", v.latest))
		}
		if when != noRequest {
			ops = append(ops, clientv3.OpPut(l.prefix+treeKey, ""))
		}
		r, err := l.client.Txn(bounded).If(compares...).Then(ops...).
			Else(clientv3.OpGet(l.prefix, clientv3.WithPrefix())).Commit()
		switch {
		case err != nil:
			left = deleteLate
			if answered(err) {
				left = deleteKey
			}
			return 0, left, failed(bounded, "write a claim", err)
		case r.Succeeded:
			if when != always { // that one waits for more anyway
				_ = l.seen(bounded, r.Header.Revision)
			}
			return r.Header.Revision, keepKey, nil
		}
		v = newView(l.prefix, r.Header.Revision, r.Responses[0].GetResponseRange().Kvs)
		if s != nil && v.sessions[s.key] == 0 {
			return 0, keepKey, &lock.LostError{Reason: "the session's key was deleted", Err: lock.ErrLost}
		}
	}
}

// answered reports whether etcd has answered a transaction with an error: it is not executed
// later. It may have been executed before only if the error is NOSPACE, which is the answer
// to the transaction that fills the storage, too.
func answered(err error) bool {
	return errors.Is(err, rpctypes.ErrNoSpace) || errors.Is(err, rpctypes.ErrTooManyRequests) ||
		errors.Is(err, rpctypes.ErrRequestTooLarge) || errors.Is(err, rpctypes.ErrPermissionDenied) ||
		errors.Is(err, rpctypes.ErrLeaseNotFound) || errors.Is(err, rpctypes.ErrTooManyOps)
}
