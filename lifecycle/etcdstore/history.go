package etcdstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/lifecycle"
)

// History implements [lifecycle.Historian].
func (s *Store) History(ctx context.Context, key lifecycle.Key, after uint64, limit int) (rows []lifecycle.HistoryRow, err error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	all := s.key(histories, key.Machine, key.ID, "")
	return collect(ctx, s, decode[lifecycle.HistoryRow], page(all+hex(after)+separator, end(all), limit))
}

// Requested implements [lifecycle.Historian].
func (s *Store) Requested(ctx context.Context, machine, request string) (row lifecycle.HistoryRow, err error) {
	if err := checkNames(machine, request); err != nil {
		return row, err
	}
	rows, err := collect(ctx, s, decode[lifecycle.HistoryRow], clientv3.OpGet(s.key(requests, machine, request)))
	if len(rows) > 0 {
		row = rows[0]
	}
	return row, err
}

// Recent implements [lifecycle.Follower]. The age is the difference between the clock of
// this process and the clock of the process that wrote the change, so Recent does not find a
// change of a process whose clock is too far behind; see the limits of the package.
func (s *Store) Recent(
	ctx context.Context, machine string, within time.Duration, after string, limit int,
) ([]lifecycle.ChangedObject, error) {
	if err := checkNames(machine); err != nil {
		return nil, err
	}
	all := s.key(times, machine, "")
	since := all + hex(uint64(max(0, s.config.Clock().Add(-within).UnixMicro())))
	list, err := collect(ctx, s, func(kv *mvccpb.KeyValue) (o lifecycle.ChangedObject, err error) {
		if o.Sequence, err = strconv.ParseUint(string(kv.Value), 10, 64); err != nil {
			err = fmt.Errorf("%w: value of key %.300q", ErrLayout, kv.Key)
		}
		o.ID = idOf(kv)
		return o, err
	}, clientv3.OpGet(since, clientv3.WithRange(end(all))))
	list = slices.DeleteFunc(list, func(o lifecycle.ChangedObject) bool { return o.ID <= after })
	slices.SortFunc(list, func(a, b lifecycle.ChangedObject) int { return cmp.Compare(a.ID, b.ID) })
	return list[:min(len(list), max(limit, 0))], err
}
