package store

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/internal/etcdtest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/etcdstore"
	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/lock/etcdlock"
)

func TestOpenRefuses(t *testing.T) {
	server := etcdtest.Start(t, nil)
	client := server.Client(t)
	for key, layout := range map[string]string{"earlier/version": "1-1000", "later/version": "3"} {
		_, err := client.Put(t.Context(), key, layout)
		require.NoError(t, err)
	}
	for name, c := range map[string]struct {
		client *clientv3.Client
		config etcdstore.Config
		want   error
	}{
		"no client":           {nil, etcdstore.Config{}, lifecycle.ErrInvalid},
		"too few operations":  {client, etcdstore.Config{MaxTxnOps: 31}, lifecycle.ErrInvalid},
		"a negative time-out": {client, etcdstore.Config{Timeout: -1}, lifecycle.ErrInvalid},
		"an earlier layout":   {client, etcdstore.Config{Prefix: "earlier/"}, etcdstore.ErrLayout},
		"a later layout":      {client, etcdstore.Config{Prefix: "later/"}, etcdstore.ErrLayout},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := etcdstore.Open(t.Context(), c.client, &c.config)
			require.ErrorIs(t, err, c.want)
		})
	}
	for range 2 {
		store, err := etcdstore.Open(t.Context(), client, nil)
		require.NoError(t, err)
		require.NoError(t, store.Close())
	}
	cause := errors.New("cause")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	_, err := etcdstore.Open(ctx, client, nil)
	require.ErrorIs(t, err, cause)
}

// A commit that does not fit into one transaction of etcd writes nothing, and its error
// shows that a later attempt would not either.
func TestTooLarge(t *testing.T) {
	p := newPlace(etcdtest.Start(t, nil))
	store := p.open(t)
	r := put(t, store, key("a"), "Idle")
	ch := change(r, "Moving")
	ch.To.Payload = make([]byte, 1200<<10)
	err := store.Commit(t.Context(), commitOf(ch))
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	ch.To.Payload = make([]byte, 4<<20) // more than the client sends
	err = store.Commit(t.Context(), commitOf(ch))
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	ch.To.Payload = nil
	c := commitOf(ch)
	c.Messages = make([]lifecycle.Message, 128)
	require.ErrorIs(t, store.Commit(t.Context(), c), errors.ErrUnsupported)
	wide, err := etcdstore.Open(t.Context(), p.server.Client(t), &etcdstore.Config{Prefix: p.prefix, MaxTxnOps: 256})
	require.NoError(t, err)
	err = wide.Commit(t.Context(), c)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorContains(t, err, "see Config.MaxTxnOps", "the server takes fewer operations than the configuration has")
	c.Messages = make([]lifecycle.Message, 129)
	require.ErrorIs(t, wide.Commit(t.Context(), c), errors.ErrUnsupported)
	now := get(t, store, r.Key)
	require.Equal(t, r, now)

	// The largest commit that the capabilities declare, with 16 messages.
	c = commitOf()
	for i := range store.Capabilities().Changes {
		o := lifecycle.OwnerRef{Name: string(rune('a' + i)), Epoch: 1}.Key()
		before := put(t, store, o, "alive")
		full := change(before, "dead")
		full.To.Owner, full.To.Epoch, full.Timeout, full.Request = "one", 1, time.Hour, o.ID
		require.NoError(t, store.Commit(t.Context(), commitOf(full)))
		before = get(t, store, o)
		next := change(before, "alive")
		next.To.Owner, next.To.Epoch, next.Timeout, next.Request = "two", 2, time.Hour, "again "+o.ID
		c.Changes = append(c.Changes, next)
	}
	c.Messages = make([]lifecycle.Message, 16)
	require.NoError(t, store.Commit(t.Context(), c))
	p.audit(t)
}

// guard is the driver of a grant that is held while a key exists.
type guard struct {
	lock.GrantDriver
	key string
}

func (guard) Token() lock.Token { return 7 }

func (g guard) GuardCompare() clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(g.key), ">", 0)
}

// A commit under a grant of the same etcd is written only while the grant is held.
func TestGrant(t *testing.T) {
	p := newPlace(etcdtest.Start(t, nil))
	store, client := p.open(t), p.server.Client(t)
	r, other := put(t, store, key("a"), "Idle"), put(t, store, key("b"), "Idle")
	under := func(requires ...lifecycle.Precondition) error {
		c := commitOf(change(r, "Moving"))
		for _, k := range []string{"locks/1", "locks/2"} {
			grant, _ := lock.NewGrant(guard{key: k})
			c.Require = append(c.Require, lifecycle.Precondition{Grant: grant})
		}
		c.Require = append(c.Require, requires...)
		err := store.Commit(t.Context(), c)
		if err == nil {
			r = c.Changes[0].To
		}
		return err
	}
	for _, k := range []string{"locks/1", "locks/2"} {
		err := under()
		require.ErrorIs(t, err, lifecycle.ErrPrecondition)
		require.ErrorIs(t, err, lock.ErrLost)
		_, err = client.Put(t.Context(), k, "")
		require.NoError(t, err)
	}
	require.NoError(t, under())
	require.NoError(t, under(lifecycle.Precondition{Key: other.Key, States: []string{"Moving", "Idle"}}))
	_, err := client.Delete(t.Context(), "locks/2")
	require.NoError(t, err)
	require.ErrorIs(t, under(), lock.ErrLost)
	now := get(t, store, r.Key)
	require.Equal(t, r, now)
}

// A commit under a real lock of the same etcd is refused as soon as the lease of its holder
// is gone, whatever the holder knows.
func TestGrantOfEtcdlock(t *testing.T) {
	p := newPlace(etcdtest.Start(t, nil))
	store, client := p.open(t), p.server.Client(t)
	locker, err := etcdlock.Open(t.Context(), client, "locks/cranes", nil)
	require.NoError(t, err)
	defer locker.Close()
	r := put(t, store, key("a"), "Idle")
	grant, err := locker.Lock(t.Context(), lock.Request{Path: lock.MustParse("/a"), Mode: lock.X}, nil)
	require.NoError(t, err)
	c := commitOf(change(r, "Moving"))
	c.Require = []lifecycle.Precondition{{Grant: grant}}
	require.NoError(t, store.Commit(t.Context(), c))
	r = c.Changes[0].To

	leases, err := client.Leases(t.Context())
	require.NoError(t, err)
	for _, l := range leases.Leases {
		_, err := client.Revoke(t.Context(), l.ID)
		require.NoError(t, err)
	}
	c = commitOf(change(r, "Idle"))
	c.Require = []lifecycle.Precondition{{Grant: grant}}
	require.ErrorIs(t, store.Commit(t.Context(), c), lock.ErrLost)
	now := get(t, store, r.Key)
	require.Equal(t, r, now)
	<-grant.Lost()
	require.ErrorIs(t, grant.Check(), lock.ErrLost)
}
