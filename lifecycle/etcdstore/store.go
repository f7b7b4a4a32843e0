package etcdstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/connectivity"

	"github.com/interlock-go/interlock/lifecycle"
)

// Config refines a [Store]. Nil and the zero Config are the defaults.
type Config struct {
	// Prefix begins all keys of the store. Two stores must not have prefixes of which one
	// begins with the other. Default: "interlock/".
	Prefix string
	// MaxTxnOps is the --max-txn-ops of the etcd servers, at least 32. It bounds
	// [lifecycle.Capabilities].Changes. Default: 128, which is the default of etcd.
	MaxTxnOps int
	// Timeout bounds how long one request waits for etcd. A request without an answer after
	// this time is [lifecycle.ErrUnavailable]; a commit may be [lifecycle.ErrUnknownOutcome].
	// Default: 5 s.
	Timeout time.Duration
	// Clock returns the time for ChangedAt and deadlines, and the present time of queries.
	// Default: [time.Now]. Tests move it.
	Clock func() time.Time
}

const (
	leastTxnOps  = 32
	opsPerChange = 14 // at most: see plan.add
	sparedOps    = 16 // for messages
)

// layout is the version of the keys and values that this package reads and writes. In
// version 1, the keys of messages had other parts.
const layout = "2"

// ErrLayout: the keys below the prefix are of another version of this package.
var ErrLayout = errors.New("etcdstore: unsuitable layout of keys")

// Store keeps records in etcd. [Open] makes one. It is safe for concurrent use and must
// not be copied.
type Store struct {
	client *clientv3.Client
	config Config

	mu     sync.Mutex // guards closed, and calls.Add against calls.Wait
	closed bool
	calls  sync.WaitGroup
}

var (
	_ lifecycle.Historian = (*Store)(nil)
	_ lifecycle.Outbox    = (*Store)(nil)
	_ lifecycle.Follower  = (*Store)(nil)
)

// Open returns the store below the prefix of the configuration, which may be empty. The
// client stays the caller's: [Store.Close] does not close it.
//
// Errors: [lifecycle.ErrInvalid] for the configuration, [ErrLayout], and
// [lifecycle.ErrUnavailable] if etcd does not answer.
func Open(ctx context.Context, client *clientv3.Client, config *Config) (*Store, error) {
	s := &Store{client: client, config: *cmp.Or(config, new(Config))}
	s.config.Prefix = cmp.Or(s.config.Prefix, "interlock/")
	s.config.MaxTxnOps = cmp.Or(s.config.MaxTxnOps, 128)
	s.config.Timeout = cmp.Or(s.config.Timeout, 5*time.Second)
	if s.config.Clock == nil {
		s.config.Clock = time.Now
	}
	switch {
	case client == nil:
		return nil, fmt.Errorf("%w: open store: a client is required", lifecycle.ErrInvalid)
	case s.config.MaxTxnOps < leastTxnOps:
		return nil, fmt.Errorf("%w: open store: MaxTxnOps %d is below %d", lifecycle.ErrInvalid, s.config.MaxTxnOps, leastTxnOps)
	case s.config.Timeout < 0:
		return nil, fmt.Errorf("%w: open store: Timeout %v is below 0", lifecycle.ErrInvalid, s.config.Timeout)
	}
	if err := s.checkLayout(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// checkLayout compares the version of the keys, and writes it below an empty prefix.
func (s *Store) checkLayout(ctx context.Context) error {
	key := s.key(versions)
	write := clientv3.OpTxn([]clientv3.Cmp{missing(key)}, []clientv3.Op{clientv3.OpPut(key, layout)}, nil)
	kvs, err := s.keys(ctx, write, clientv3.OpGet(key))
	if err != nil {
		return err
	}
	version, _, _ := strings.Cut(string(kvs[0].Value), "-")
	if version != layout {
		return fmt.Errorf("%w: version %.20q below %q, not %q", ErrLayout, version, s.config.Prefix, layout)
	}
	return nil
}

// Capabilities implements [lifecycle.Store]. So many changes, with 16 messages, always fit
// into one transaction of etcd. The clock is that of the process: etcd has none.
func (s *Store) Capabilities() lifecycle.Capabilities {
	return lifecycle.Capabilities{Changes: (s.config.MaxTxnOps - sparedOps) / opsPerChange, History: true, Messages: true}
}

// Close makes every later call fail with [lifecycle.ErrClosed], and waits for the calls in
// progress. [Store.Listen] is no such call: only its context ends it. A second Close does
// nothing. The client stays open.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.calls.Wait()
	return nil
}

// call makes a call, unless the context has ended or the store is closed.
func (s *Store) call(ctx context.Context, run func() error) error {
	if ctx.Err() != nil {
		return lifecycle.Ended(ctx)
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return lifecycle.ErrClosed
	}
	s.calls.Add(1)
	s.mu.Unlock()
	defer s.calls.Done()
	return run()
}

// Get implements [lifecycle.Store].
func (s *Store) Get(ctx context.Context, key lifecycle.Key) (r lifecycle.StoredRecord, err error) {
	r.Key = key
	if err := checkKey(key); err != nil {
		return r, err
	}
	err = s.call(ctx, func() error {
		resp, err := s.read(ctx, append(s.gets(key), clientv3.OpGet(s.key(versions)))...)
		if err == nil {
			r, err = s.current(found(resp), key)
		}
		return err
	})
	return r, err
}

// ready waits until the client has a connection. Without one, a request was not sent, and
// the error of the client would not show that.
func (s *Store) ready(ctx context.Context) error {
	conn := s.client.ActiveConnection()
	for {
		state := conn.GetState()
		switch state {
		case connectivity.Ready:
			return nil
		case connectivity.TransientFailure, connectivity.Shutdown:
			return errNoConnection
		case connectivity.Idle:
			conn.Connect()
		}
		if !conn.WaitForStateChange(ctx, state) {
			return ctx.Err()
		}
	}
}

// read executes operations in one transaction, linearizably. They are gets, or writes that
// may be executed twice: they are sent again if the connection breaks.
func (s *Store) read(ctx context.Context, ops ...clientv3.Op) (resp *clientv3.TxnResponse, err error) {
	within, stop := context.WithTimeout(ctx, s.config.Timeout)
	defer stop()
	for range mostLost {
		if err = s.ready(within); err == nil {
			resp, err = s.client.Txn(within).Then(ops...).Commit()
		}
		if err == nil || within.Err() != nil || refused(err) {
			break
		}
	}
	return resp, failed(ctx, err)
}

// keys returns the keys that gets find; see read.
func (s *Store) keys(ctx context.Context, gets ...clientv3.Op) (list []*mvccpb.KeyValue, err error) {
	resp, err := s.read(ctx, gets...)
	if err != nil {
		return nil, err
	}
	for _, r := range resp.Responses {
		list = append(list, r.GetResponseRange().GetKvs()...)
	}
	return list, nil
}

// each yields the keys of a range, and reads some at a time. After an error it ends.
func (s *Store) each(ctx context.Context, start, end string, size int, options ...clientv3.OpOption) iter.Seq2[*mvccpb.KeyValue, error] {
	return func(yield func(*mvccpb.KeyValue, error) bool) {
		for more := true; more; {
			list, err := s.keys(ctx, clientv3.OpGet(start, append(options, clientv3.WithRange(end), clientv3.WithLimit(int64(size)))...))
			if err != nil {
				yield(nil, err)
				return
			}
			for _, kv := range list {
				if !yield(kv, nil) {
					return
				}
				start = string(kv.Key) + separator
			}
			more = len(list) == size
		}
	}
}

// page reads the first keys of a range. For etcd, a limit of 0 is none.
func page(start, end string, limit int) clientv3.Op {
	if limit <= 0 {
		end = start // an empty range
	}
	return clientv3.OpGet(start, clientv3.WithRange(end), clientv3.WithLimit(int64(limit)))
}

// collect returns what a function makes of the keys that a get finds.
func collect[T any](ctx context.Context, s *Store, of func(*mvccpb.KeyValue) (T, error), get clientv3.Op) (list []T, err error) {
	err = s.call(ctx, func() error {
		kvs, err := s.keys(ctx, get)
		for _, kv := range kvs {
			x, err := of(kv)
			if err != nil {
				return err
			}
			list = append(list, x)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}
