package etcdstore

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/lifecycle"
)

// Messages implements [lifecycle.Outbox]. The messages come in order of their numbers.
func (s *Store) Messages(ctx context.Context, limit int) (list []lifecycle.OutboxMessage, err error) {
	all := s.key(messages)
	err = s.each(ctx, func(kv *mvccpb.KeyValue) error {
		number, err := strconv.ParseUint(strings.TrimPrefix(string(kv.Key), all), 16, 64)
		if err != nil {
			return fmt.Errorf("%w: key %.300q", ErrLayout, kv.Key)
		}
		var m message
		err = decode(kv, &m)
		list = append(list, lifecycle.OutboxMessage{Number: number, Message: lifecycle.Message(m)})
		return err
	}, page(all, clientv3.GetPrefixRangeEnd(all), limit))
	return list, err
}

// Discard implements [lifecycle.Outbox]. After an error some messages may be discarded.
func (s *Store) Discard(ctx context.Context, numbers ...uint64) error {
	if len(numbers) == 0 {
		return s.each(ctx, nil)
	}
	for list := range slices.Chunk(numbers, s.config.MaxTxnOps) {
		deletes := make([]clientv3.Op, len(list))
		for i, number := range list {
			deletes[i] = clientv3.OpDelete(s.key(messages, hex(number)))
		}
		if err := s.each(ctx, nil, deletes...); err != nil {
			return err
		}
	}
	return nil
}
