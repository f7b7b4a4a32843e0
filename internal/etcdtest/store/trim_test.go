package store

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/interlock-go/interlock/internal/etcdtest"
	"github.com/interlock-go/interlock/lifecycle"
)

const leastKept = 8 // rows of every object that Trim keeps at least

// Trim deletes old rows with their requests, and keeps the newest of every object. The
// others are without a gap.
func TestTrim(t *testing.T) {
	p := newPlace(etcdtest.Start(t, nil))
	store := p.open(t)
	move := func(id string, n int) {
		for range n {
			r := get(t, store, key(id))
			ch := change(r, "Idle")
			ch.Request = fmt.Sprint(id, " ", ch.To.Sequence)
			require.NoError(t, store.Commit(t.Context(), commitOf(ch)))
		}
	}
	const many = 150 // more rows than one transaction deletes
	move("a", many)
	move("a ", 3)
	move("b", leastKept+5)
	p.ahead.Store(int64(time.Hour))
	move("b", 4)
	first := func(id string) uint64 {
		rows, err := store.History(t.Context(), key(id), 0, 1000)
		require.NoError(t, err)
		for i, row := range rows {
			require.Equal(t, rows[0].Sequence+uint64(i), row.Sequence)
			found, err := store.Requested(t.Context(), "crane", row.Request)
			require.NoError(t, err)
			require.Equal(t, row, found)
		}
		return rows[0].Sequence
	}
	for _, c := range []struct {
		age     time.Duration
		keep    int
		deleted int
		a, b    uint64
	}{
		{2 * time.Hour, 0, 0, 1, 1},
		{time.Minute, 1000, 0, 1, 1},
		{time.Minute, 100, many - 100, many - 99, 1},
		{time.Minute, 0, 100 - leastKept + 9, many - 7, 10},
		{time.Minute, 0, 0, many - 7, 10},
	} {
		deleted, err := store.Trim(t.Context(), c.age, c.keep)
		require.NoError(t, err)
		require.Equal(t, c.deleted, deleted, "%+v", c)
		require.Equal(t, []uint64{c.a, 1, c.b}, []uint64{first("a"), first("a "), first("b")}, "%+v", c)
	}
	gone, err := store.Requested(t.Context(), "crane", "a 1")
	require.NoError(t, err)
	require.Empty(t, gone, "the request of a row that was deleted")
	_, err = store.Trim(t.Context(), 0, 1)
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
}

// Two processes trim at the same time. A request that is made again between the two stays.
func TestTrimByTwoProcesses(t *testing.T) {
	p := newPlace(etcdtest.Start(t, nil))
	sent, deliver := make(chan struct{}), make(chan struct{})
	var armed atomic.Bool
	client := p.server.Client(t, etcdtest.Through(func(_ context.Context, req, _ any, send func() error) error {
		txn, _ := req.(*etcdserverpb.TxnRequest)
		if txn != nil && txn.Success[0].GetRequestDeleteRange() != nil && armed.CompareAndSwap(true, false) {
			close(sent)
			<-deliver
		}
		return send()
	}))
	slow, fast := p.over(t, client), p.open(t)
	move := func(request string) {
		r := get(t, fast, key("a"))
		ch := change(r, "Idle")
		ch.Request = request
		require.NoError(t, fast.Commit(t.Context(), commitOf(ch)))
	}
	move("again")
	for range leastKept {
		move("")
	}
	p.ahead.Store(int64(time.Hour))
	armed.Store(true)
	trimmed := make(chan error)
	go func() {
		_, err := slow.Trim(t.Context(), time.Minute, 0)
		trimmed <- err
	}()
	<-sent
	deleted, err := fast.Trim(t.Context(), time.Minute, 0)
	require.NoError(t, err)
	require.Equal(t, 1, deleted)
	move("again")
	close(deliver)
	require.NoError(t, <-trimmed)
	row, err := fast.Requested(t.Context(), "crane", "again")
	require.NoError(t, err)
	require.EqualValues(t, leastKept+2, row.Sequence)
}
