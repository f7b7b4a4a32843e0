package etcdstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"

	"github.com/interlock-go/interlock/lifecycle"
)

// Pauses of [Store.Listen] before it watches again.
const (
	firstPause   = 50 * time.Millisecond
	longestPause = 5 * time.Second
)

// Listen calls wake after every commit with a history row, by any process, until ctx
// ends; it then returns the context's error. The key is that of an object that may have
// changed; an empty ID means any object of the machine, an empty Machine any object. As a
// rule, wake calls [lifecycle.Wake]; it must not wait. If the watch ends, because etcd has compacted
// what it has not sent yet or has no leader, Listen watches again, after pauses of 50
// milliseconds that double up to 5 seconds, and wakes for all objects. A Watch that is woken
// finds changes by [Store.Recent], and misses those of a clock that is more than about 20
// seconds behind; see the limits of the package.
//
// If etcd refuses the user of the client, its password, its token or its right to read the
// prefix, Listen returns the error of the client, because no further attempt can mend that.
func (s *Store) Listen(ctx context.Context, wake func(lifecycle.Key)) error {
	pause := firstPause
	for ctx.Err() == nil {
		if s.watch(ctx, wake) {
			pause = firstPause
		} else {
			// The client does not return the reason why etcd refuses a watch as an error with a
			// code, but it returns that of a read so.
			_, err := s.read(ctx, clientv3.OpGet(s.key(histories), clientv3.WithPrefix(), clientv3.WithLimit(1), clientv3.WithKeysOnly()))
			if slices.Contains(denials, codeOf(err)) {
				return err
			}
		}
		select {
		case <-time.After(pause):
			pause = min(2*pause, longestPause)
		case <-ctx.Done():
		}
	}
	return fmt.Errorf("etcdstore: listen: %w", lifecycle.Ended(ctx))
}

// denials are the codes with which etcd refuses the user of the client, its password
// (InvalidArgument), or its token. The client has replaced an old token before.
var denials = []codes.Code{codes.PermissionDenied, codes.InvalidArgument, codes.Unauthenticated}

// watch wakes until the watch ends. It reports whether there was one. The client watches
// again at the same revision after it has lost a connection. The reason why a watch ends
// does not matter: the next one wakes for all objects.
func (s *Store) watch(ctx context.Context, wake func(lifecycle.Key)) (watched bool) {
	ctx, stop := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer stop() // ends the watch
	all := s.key(histories)
	changes := s.client.Watch(ctx, all, clientv3.WithPrefix(), clientv3.WithFilterDelete(), clientv3.WithCreatedNotify())
	for resp := range changes {
		if resp.Err() != nil {
			return watched
		}
		if resp.Created {
			watched = true
			wake(lifecycle.Key{})
		}
		for _, event := range resp.Events {
			parts := strings.Split(strings.TrimPrefix(string(event.Kv.Key), all), separator)
			if len(parts) == 3 { // otherwise another program has written the key
				wake(lifecycle.Key{Machine: parts[0], ID: parts[1]})
			}
		}
	}
	return watched
}
