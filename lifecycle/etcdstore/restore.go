package etcdstore

import (
	"cmp"
	"context"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/lifecycle"
)

// AfterRestore makes everything stale that was handed out before etcd lost its newest
// commits: operation ids, revisions, and epochs of owners. Without it the store would hand
// out the same operation ids and epochs again. Call it once after etcd was restored from a
// backup. No process may use the keys meanwhile. The package documentation has the steps
// under "After a restore".
//
// Lost is an upper bound of the revisions that etcd has lost, those of other prefixes
// included; 0 is 1,000,000,000. If the same backup is restored a second time, add the number
// of the first call to it. AfterRestore
//
//   - adds lost to the operation of every record, of removed objects and owners too, and
//     gives the record a new revision;
//   - adds lost to the numbers with which a key begins that etcd does not have, and to the
//     numbers of messages.
//
// Objects, sequence numbers and history stay as they are; the operation ids of later
// history rows follow after a gap. Each object is a transaction. After an error some
// objects are not changed: call AfterRestore again before a process uses the keys. A second
// call does no harm.
//
// Errors: [lifecycle.ErrInvalid] if lost is above 2^40, and those of a read.
func (s *Store) AfterRestore(ctx context.Context, lost uint64) error {
	if lost > 1<<40 {
		return fmt.Errorf("%w: %d lost revisions", lifecycle.ErrInvalid, lost)
	}
	return s.call(ctx, func() error {
		for _, kind := range []string{versions, records, removed} {
			start := s.key(kind)
			for kv, err := range s.each(ctx, start, end(start), perRequest) {
				if err == nil {
					err = s.raise(ctx, kv, cmp.Or(lost, 1_000_000_000))
				}
				if err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// raise adds to the numbers in the value of a key. A transaction that is executed late has no
// effect: the key has changed.
func (s *Store) raise(ctx context.Context, kv *mvccpb.KeyValue, lost uint64) error {
	p, key := &plan{Store: s}, string(kv.Key)
	if key == s.key(versions) {
		n, err := floor(string(kv.Value))
		if err != nil {
			return err
		}
		p.write = []clientv3.Op{clientv3.OpPut(key, fmt.Sprintf("%s-%d", layout, n+lost))}
	} else {
		r, err := decodeRecord(kv)
		if err != nil {
			return err
		}
		before := lifecycle.StoredChange{Expect: r.Revision, From: r.State}
		r.Operation += lifecycle.OpID(lost)
		f := factsOf(&r, lifecycle.NewToken())
		r.Revision = f.revision()
		p.index(&before, &r, &f)
		if err := p.put(key, record(r)); err != nil {
			return err
		}
	}
	same := clientv3.Compare(clientv3.ModRevision(key), "=", kv.ModRevision)
	_, err := s.read(ctx, clientv3.OpTxn([]clientv3.Cmp{same}, p.write, nil))
	return err
}
