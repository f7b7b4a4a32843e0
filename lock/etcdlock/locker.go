package etcdlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/lock"
)

// ErrClosed reports that the [Locker] is closed. Open another one.
var ErrClosed = errors.New("etcdlock: the locker is closed")

// Config has the settings of a [Locker]. Nil and the zero Config mean the defaults.
type Config struct {
	// TTL is how long the grants of a process block others after the process has
	// stopped. Its own grants are lost 10 % earlier. It is rounded up to seconds; etcd
	// raises it to its minimum, about two seconds. It may differ between processes.
	// Default, 0: 15 seconds. The maximum is a day.
	TTL time.Duration
	// MaxWaiters is how many acquisitions of the tree, of all processes, may wait
	// before this Locker refuses another one with [lock.ErrQueueFull]. Default, 0: no
	// limit.
	MaxWaiters int
	// MaxHolders is how many holders a [lock.ConflictError] lists. Default, 0: 16.
	MaxHolders int
}

const (
	retryPause = 200 * time.Millisecond
	// grace is how long a call whose context has ended waits for etcd to remove its
	// claim. The removal goes on without the call.
	grace = time.Second / 2
)

// Locker is one process's access to a lock tree in etcd. It is a [lock.Locker], and
// safe for concurrent use. [Open] makes it; the zero Locker is not usable. It must not
// be copied.
type Locker struct {
	client *clientv3.Client
	prefix string // of all keys, with its slash
	config Config
	turn   chan struct{} // full while a conditional write is under way
	stop   context.CancelFunc
	work   sync.WaitGroup // all goroutines of the Locker but those of sessions, for which run waits

	// mu is never held across a call of etcd, a wait, or a call of user code.
	mu      sync.Mutex
	closed  bool
	view    *view
	session *session                // nil while there is none
	own     map[string]*acquisition // by key: those that enter, wait or are held
	ids     map[string]*acquisition // those of them with an id
	changed chan struct{}           // closed and replaced after every change but those of acquisitions
}

var _ lock.Locker = (*Locker)(nil)

// Open returns a Locker of the tree whose keys begin with prefix and a slash. Lockers
// with the same prefix share the tree; no prefix may lie below that of another tree. Open
// begins a session; the context bounds only this call. [Locker.Close] ends the session. The
// client must live longer.
//
// Errors: [lock.ErrInvalid] for a negative setting and for a TTL above a day, the errors of
// etcd, and the error of the context.
func Open(ctx context.Context, client *clientv3.Client, prefix string, config *Config) (*Locker, error) {
	config = cmp.Or(config, new(Config))
	switch {
	case config.TTL < 0, config.MaxWaiters < 0, config.MaxHolders < 0:
		return nil, &lock.InvalidError{What: "config", Value: fmt.Sprintf("%+v", *config), Reason: "has a negative setting"}
	case config.TTL > 24*time.Hour:
		return nil, &lock.InvalidError{What: "TTL", Value: config.TTL.String(), Reason: "is above 24h"}
	}
	l := &Locker{
		client: client, prefix: prefix + "/", config: *config, turn: make(chan struct{}, 1), view: new(view),
		own: map[string]*acquisition{}, ids: map[string]*acquisition{}, changed: make(chan struct{}),
	}
	l.config.TTL = (cmp.Or(config.TTL, 15*time.Second) + time.Second - 1).Truncate(time.Second)
	l.config.MaxHolders = cmp.Or(config.MaxHolders, 16)
	running, stop := context.WithCancel(context.Background())
	l.stop = stop
	l.work.Go(func() { l.follow(running) })
	s, err := l.begin(ctx)
	if err != nil {
		l.Close()
		return nil, failed(ctx, "open", err)
	}
	l.work.Go(func() { l.run(running, s) })
	return l, nil
}

// Close ends the session and all goroutines of the Locker, and returns when they have
// ended, after a TTL at most. Grants are lost, and calls that wait return
// [lock.ErrLost]. Later acquisitions, Revoke and Break, and a Lock that waits for a session,
// return [ErrClosed]. Close may be called again.
func (l *Locker) Close() {
	l.mu.Lock()
	l.closed = true
	if l.session != nil {
		l.end(l.session, "the locker was closed")
	}
	l.wake()
	l.mu.Unlock()
	l.stop()
	l.work.Wait()
}

// wake ends the waits for l.changed. It needs mu.
func (l *Locker) wake() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// until waits until the condition holds, which is called with mu held. It also returns the
// channel that is closed when that may have changed.
func (l *Locker) until(ctx context.Context, holds func() (bool, <-chan struct{})) error {
	for {
		l.mu.Lock()
		done, changed := holds()
		closed := l.closed
		l.mu.Unlock()
		switch {
		case done:
			return nil
		case closed:
			return ErrClosed
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ended(ctx)
		}
	}
}

// seen waits until the view has all changes up to a revision.
func (l *Locker) seen(ctx context.Context, revision int64) error {
	return l.until(ctx, func() (bool, <-chan struct{}) { return l.view.revision >= revision, l.changed })
}

func (l *Locker) current() *view {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.view
}

// read returns a view of the keys with a prefix that is not older than the call.
func (l *Locker) read(ctx context.Context, prefix string) (*view, error) {
	got, err := l.client.Get(ctx, prefix, clientv3.WithPrefix())
	if err != nil {
		return nil, failed(ctx, "read the tree", err)
	}
	return newView(l.prefix, got.Header.Revision, got.Kvs), nil
}

// failed returns the error of a call of etcd.
func failed(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return ended(ctx)
	}
	return fmt.Errorf("etcdlock: %s: %w", what, err)
}

// follow keeps the view up to date until ctx ends. Why a watch fails does not matter: a
// compaction, a member without a leader, a lost right. The next one loads everything.
func (l *Locker) follow(ctx context.Context) {
	for ctx.Err() == nil {
		l.watch(ctx)
		sleep(ctx, retryPause)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// watch loads the view and applies the events of the tree until the watch fails.
//
// It watches from the present: etcd serves a watch from a past revision only ten times
// a second. It loads the view after the watch has begun, so that it misses no event.
func (l *Locker) watch(ctx context.Context) {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	responses := l.client.Watch(ctx, l.prefix, clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	if first := <-responses; !first.Created || first.Err() != nil {
		return
	}
	v, err := l.read(ctx, l.prefix)
	if err != nil {
		return
	}
	l.show(v)
	for r := range responses {
		if r.Err() != nil {
			return
		}
		v = v.after(r.Events) // all events of a revision are in one response
		l.show(v)
	}
}

// show makes a view the current one. The acquisitions of this process follow it.
func (l *Locker) show(v *view) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.view = v
	missing := maps.Clone(l.own)
	for _, c := range v.claims {
		if a := l.own[c.key]; a != nil {
			delete(missing, c.key)
			a.apply(v, c)
		}
	}
	for _, a := range missing {
		if a.written != 0 && a.written <= v.revision {
			a.end(a.lost("its key was deleted"), keepKey)
		}
	}
	if s := l.session; s != nil && v.sessions[s.key] == 0 {
		l.end(s, "the session's key was deleted")
	}
	l.wake()
}
