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

// The number of a message is the revision of etcd with which its commit was written, plus the
// floor then, and the place of the message in the commit: no other message ever has it.
const (
	placeBits    = 7
	mostMessages = 1 << placeBits // of a commit
)

// numberOf returns the number of the message in a key.
func (s *Store) numberOf(kv *mvccpb.KeyValue) (uint64, error) {
	if parts := strings.Split(strings.TrimPrefix(string(kv.Key), s.key(messages)), separator); len(parts) == 4 {
		n, bad := strconv.ParseUint(parts[1], 16, 64)
		place, wrong := strconv.ParseUint(parts[3], 16, placeBits)
		if bad == nil && wrong == nil {
			return (uint64(kv.CreateRevision)+n)<<placeBits | place, nil
		}
	}
	return 0, fmt.Errorf("%w: key %.300q", ErrLayout, kv.Key)
}

// Messages implements [lifecycle.Outbox]. The messages come in the order in which their
// commits began.
func (s *Store) Messages(ctx context.Context, limit int) ([]lifecycle.OutboxMessage, error) {
	all := s.key(messages)
	return collect(ctx, s, func(kv *mvccpb.KeyValue) (lifecycle.OutboxMessage, error) {
		number, err := s.numberOf(kv)
		if err != nil {
			return lifecycle.OutboxMessage{}, err
		}
		m, err := decode[message](kv)
		return lifecycle.OutboxMessage{Number: number, Message: lifecycle.Message(m)}, err
	}, page(all, end(all), limit))
}

// Discard implements [lifecycle.Outbox]. It reads the keys of the messages from the oldest to
// the last of those with the numbers. After an error some messages may be discarded.
func (s *Store) Discard(ctx context.Context, numbers ...uint64) error {
	return s.call(ctx, func() error {
		if len(numbers) == 0 {
			return nil
		}
		left := map[uint64]bool{}
		for _, number := range numbers {
			left[number] = true
		}
		var deletes []clientv3.Op
		// A commit is written after it began.
		last := s.key(messages, hex(slices.Max(numbers)>>placeBits))
		for kv, err := range s.each(ctx, s.key(messages), last, perRequest, clientv3.WithKeysOnly()) {
			if err != nil {
				return err
			}
			number, err := s.numberOf(kv)
			if err != nil {
				return err
			}
			if left[number] {
				delete(left, number)
				deletes = append(deletes, clientv3.OpDelete(string(kv.Key)))
			}
			if len(left) == 0 {
				break
			}
		}
		for list := range slices.Chunk(deletes, s.config.MaxTxnOps) {
			if _, err := s.read(ctx, list...); err != nil {
				return err
			}
		}
		return nil
	})
}
