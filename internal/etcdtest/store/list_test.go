package store

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/internal/etcdtest"
	"github.com/interlock-go/interlock/lifecycle"
)

// counted returns a client that counts the keys that the server sends.
func counted(t testing.TB, server *etcdtest.Server) (client *clientv3.Client, keys *atomic.Int64) {
	keys = new(atomic.Int64)
	client = server.Client(t, etcdtest.Through(func(_ context.Context, _, reply any, send func() error) error {
		err := send()
		if resp, ok := reply.(*etcdserverpb.TxnResponse); ok {
			for _, r := range resp.Responses {
				keys.Add(int64(len(r.GetResponseRange().GetKvs())))
			}
		}
		return err
	}))
	return client, keys
}

// The queries of sweeps and of users read what they select, and little more, among many
// objects at rest and many operations in progress.
func TestQueriesReadWhatTheySelect(t *testing.T) {
	p := newPlace(etcdtest.Start(t, nil))
	client, keys := counted(t, p.server)
	store := p.over(t, client)
	const rest, running, special = 300, 200, 5
	n := 0
	create := func(count int, state, owner string, timeout time.Duration) {
		for range count {
			r := get(t, store, key(fmt.Sprintf("%04d", n*7919%10000)))
			ch := change(r, state)
			ch.Timeout, ch.To.Owner = timeout, owner
			if owner != "" {
				ch.To.Epoch = 1
			}
			require.NoError(t, store.Commit(t.Context(), commitOf(ch)))
			n++
		}
	}
	create(rest, "Idle", "", 0)
	create(special, "Broken", "", 0)
	create(special, "Moving", "", time.Minute) // overdue
	create(special, "Moving", "dead", 10*time.Hour)
	p.ahead.Store(int64(time.Hour))
	create(running, "Moving", "alive", time.Hour)
	create(special, "Moving", "", 0)
	alive := []lifecycle.OwnerRef{{Name: "alive", Epoch: 1}, {Name: "another", Epoch: 7}}
	for name, q := range map[string]struct {
		lifecycle.Query
		entries int64 // that it may read besides the records
	}{
		"a state":                    {lifecycle.Query{States: []string{"Broken"}}, special},
		"overdue":                    {lifecycle.Query{Overdue: true}, special},
		"of a dead owner":            {lifecycle.Query{NotOwnedBy: alive}, special},
		"neither owner nor deadline": {lifecycle.Query{States: []string{"Moving"}, Unowned: true, NoDeadline: true}, running + 3*special},
		"old":                        {lifecycle.Query{States: []string{"Broken", "Unused"}, UnchangedFor: time.Minute}, special},
	} {
		t.Run(name, func(t *testing.T) {
			q.Machine, q.Limit = "crane", 1000
			keys.Store(0)
			page, err := store.List(t.Context(), q.Query)
			require.NoError(t, err)
			require.Len(t, page, special)
			require.LessOrEqual(t, keys.Load(), q.entries+special)
			t.Logf("%d of %d objects, %d keys read", len(page), n, keys.Load())
		})
	}
}

// A query may name more states than a transaction of etcd reads.
func TestQueryOfManyStates(t *testing.T) {
	store := newPlace(etcdtest.Start(t, nil)).open(t)
	put(t, store, key("a"), "Idle")
	put(t, store, key("b"), "Broken")
	states := []string{"Idle"}
	for i := range 200 {
		states = append(states, fmt.Sprint("state ", i))
	}
	page, err := store.List(t.Context(), lifecycle.Query{Machine: "crane", States: states, Limit: 10})
	require.NoError(t, err)
	require.Len(t, page, 1)
	require.Equal(t, key("a"), page[0].Key)
}
