package storetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/lifecycle"
)

// network makes the store of the test one whose connections can be cut.
func (t *tester) network() Network {
	t.needsConfig("Network", t.config.Network != nil)
	store, network := t.config.Network(t.TB)
	t.use(store, true)
	return network
}

// Wherever the connection is cut during a call, a read returns what is there, or an error. A commit
// returns what is true, or ErrUnknownOutcome, but no conflict. The next call uses another connection.
func callsAreCut(t *tester) {
	network := t.network()
	for at := BeforeRequest; at <= InAnswer; at++ {
		t.readsDuring(t.cut(network, at))
	}
	t.commitsDuring(4, t.cut(network, BeforeRequest), t.cut(network, InRequest), t.cut(network, AfterRequest), t.cut(network, InAnswer))
}

// cut is the disturbance that the connection is cut at a place of the n-th request.
func (t *tester) cut(network Network, at Place) disturbance {
	return func(n int) (context.Context, func() bool) {
		struck := network.Cut(at, n)
		return t.Context(), func() bool {
			cut := struck()
			network.Cut(at, 0)
			return cut
		}
	}
}

// A commit whose context ends while a request or an answer is held up returns before
// that continues. What it returns stays true when the request arrives late.
func contextEndsAtEveryRequest(t *tester) {
	network := t.network()
	t.commitsDuring(1, t.hold(network, BeforeRequest), t.hold(network, AfterRequest))
}

// hold is the disturbance that the context ends at a place of the n-th request, which is held up
// until the call has returned.
func (t *tester) hold(network Network, at Place) disturbance {
	return func(n int) (context.Context, func() bool) {
		ctx, cancel := context.WithCancelCause(t.Context())
		returned := make(chan struct{})
		var late atomic.Bool
		settled := network.Hold(at, n, func() {
			cancel(errCause)
			select {
			case <-returned:
			case <-time.After(min(patience, 20*time.Second)):
				late.Store(true)
			}
		})
		return ctx, func() bool {
			close(returned)
			struck := settled()
			network.Cut(at, 0)
			cancel(nil)
			require.False(t, late.Load(), "a call waits for its request %d although its context has ended", n)
			return struck
		}
	}
}

// A commit with an owner does not wait for a commit that changes the owner's record,
// wherever that is held up.
func ownerIsReadWithoutWaiting(t *tester) {
	network := t.network()
	t.needsConfig("Second", !t.config.Exclusive)
	t.needsTwoChanges()
	other, o := t.opened(t.config.Second(t.TB, t.stores[0])), owner("process", 1)
	joined, a, b := t.join(o, alive), t.put("a", idle), t.put("b", idle)
	for n, reached := 1, true; reached; n++ {
		require.Less(t, n, mostPlaces, "requests of one commit")
		var err error
		settled := network.Hold(BeforeRequest, n, func() {
			ctx, cancel := context.WithTimeout(t.Context(), min(patience, 20*time.Second))
			defer cancel()
			c := commitOf(change(a, moving))
			c.Owner = o
			err = send(ctx, other, c)
			a = c.Changes[0].To
		})
		c := commitOf(takeOver(joined, "", 0), change(b, moving)) // one change may be one request
		held := t.send(c)
		reached = settled()
		require.NoError(t, err, "a commit with an owner, while request %d of a heartbeat is held up", n)
		require.NoError(t, held, "a heartbeat")
		joined, b = c.Changes[0].To, c.Changes[1].To
	}
}

// While there is no connection, every call fails with ErrUnavailable, a commit perhaps with
// ErrUnknownOutcome, and a call whose context ends with the error of the context. When there is a
// connection again, the same store continues.
func storeRecovers(t *tester) {
	network := t.network()
	r := t.put("a", idle)
	network.SetDown(true)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	errs := t.calls(ctx, r, all, 1)
	delete(errs, "History after the last number") // a store may answer it without its engine
	network.SetDown(false)
	for call, err := range errs {
		require.Error(t, err, call)
		require.NotErrorIs(t, err, lifecycle.ErrClosed, call)
		require.NotErrorIs(t, err, lifecycle.ErrConflict, call)
		if !errors.Is(err, lifecycle.ErrUnknownOutcome) && !errors.Is(err, context.DeadlineExceeded) {
			require.ErrorIs(t, err, lifecycle.ErrUnavailable, call)
		}
	}
	t.recovers(16)
	t.unchanged("the connection was restored", r)
	t.move(r, moving)
}

// recovers waits until the store has a connection for each of some simultaneous calls.
func (t *tester) recovers(simultaneous int) {
	t.eventually("Get", func() error {
		var calls errgroup.Group
		for range simultaneous {
			calls.Go(func() error {
				_, err := t.store().Get(t.Context(), key("a"))
				return err
			})
		}
		return calls.Wait()
	})
}

// A commit that is under way while its store is closed was written if it returns nil, and not if it
// returns another error than ErrUnknownOutcome.
func closeDuringCommits(t *tester) {
	t.network()
	t.needsConfig("Second", !t.config.Exclusive)
	store, other := t.stores[0], t.opened(t.config.Second(t.TB, t.stores[0]))
	closer, ok := store.(io.Closer)
	t.needs(ok, "the store is not an io.Closer")
	var records []lifecycle.StoredRecord
	for i := range 16 {
		records = append(records, t.put(fmt.Sprint("object ", i), idle))
	}
	var closed atomic.Bool
	t.together(len(records), func(t *tester, i int) {
		r := records[i]
		for {
			late := closed.Load()
			c := commitOf(change(r, idle))
			err := send(t.Context(), store, c)
			if errors.Is(err, lifecycle.ErrUnknownOutcome) {
				return
			}
			if err != nil {
				now, failed := other.Get(t.Context(), r.Key)
				require.NoError(t, failed)
				equal(t, r, now, fmt.Sprintf("a record after Commit during Close has returned %v, so that nothing was written,", err))
				return
			}
			require.False(t, late, "Commit after Close has returned nil")
			r = c.Changes[0].To
		}
	}, func(t *tester) {
		time.Sleep(10 * time.Millisecond) // most commits are under way then
		defer closed.Store(true)
		if err := closer.Close(); err != nil {
			require.ErrorIs(t, err, lifecycle.ErrClosed)
		}
	})
}

// What was acknowledged is there after the engine was killed and started again, and
// the same store continues.
func restartKeepsEverything(t *tester) {
	t.needsConfig("Restart", t.config.Restart != nil)
	t.keepsEverything("the engine was restarted", func() {
		t.config.Restart(t.TB, t.stores[0])
		t.recovers(16)
	})
}
