package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/interlock-go/interlock/lifecycle"
)

// countdown is a context that ends when it is looked at for the n-th time: a
// caller who goes at exactly that moment.
type countdown struct {
	context.Context
	left   atomic.Int64
	cancel func()
}

func newCountdown(parent context.Context, n int, cause error) *countdown {
	ctx, cancel := context.WithCancelCause(parent)
	c := &countdown{Context: ctx, cancel: func() { cancel(cause) }}
	c.left.Store(int64(n))
	return c
}

func (c *countdown) look() {
	if c.left.Add(-1) == 0 {
		c.cancel()
	}
}

// Done and Err implement [context.Context], and count.
func (c *countdown) Done() <-chan struct{} {
	c.look()
	return c.Context.Done()
}

func (c *countdown) Err() error {
	c.look()
	return c.Context.Err()
}

// ended reports whether it was looked at often enough.
func (c *countdown) ended() bool { return c.left.Load() <= 0 }

// mostLooks is at how many looks a context is ended in turn. What looks more
// often looks in a loop.
const mostLooks = 100

func endingAtAnyLook(t *trial) {
	cause := errors.New("storetest: the caller has gone")
	were := t.pairs()
	var said []lifecycle.Message
	for n, ended := 1, true; ended && n < mostLooks; n++ {
		ended = false
		for kind := range 4 {
			ctx := newCountdown(t.Context(), n, cause)
			c := t.pair(kind, were)
			err := send(ctx, t.store, c)
			ended = ended || ctx.ended()
			ctx.cancel()
			t.goneOr(err, ctx, cause, "Commit")
			now, wrote := t.judge(c, err, were)
			if were = now; wrote {
				said = append(said, c.Messages...)
			}
		}
	}
	t.toldAll(said)

	r := t.put(key("c"), idle)
	for n := 1; n < mostLooks; n++ {
		ctx := newCountdown(t.Context(), n, cause)
		got, err := t.store.Get(ctx, r.Key)
		ended := ctx.ended()
		ctx.cancel()
		t.goneOr(err, ctx, cause, "Get")
		if err == nil {
			same(t, fmt.Sprintf("what Get returns whose context ends at look %d", n), got, r)
		}
		ctx = newCountdown(t.Context(), n, cause)
		found, err := t.store.List(ctx, lifecycle.Query{Machine: machine, After: "b", Limit: all})
		ended = ended || ctx.ended()
		ctx.cancel()
		t.goneOr(err, ctx, cause, "List")
		if d := listDifferences(found, []lifecycle.StoredRecord{r}); err == nil && d != "" {
			t.Errorf("List whose context ends at look %d gives %s", n, d)
		}
		if !ended {
			break
		}
	}
}

// goneOr demands that an error is that of a context that has ended, or says that
// the outcome is unknown.
func (t *trial) goneOr(err error, ctx context.Context, cause error, what string) {
	t.Helper()
	if err == nil || errors.Is(err, lifecycle.ErrUnknownOutcome) {
		return
	}
	if !errors.Is(err, cause) || !errors.Is(err, ctx.Err()) {
		t.Errorf("%s with a context that ends meanwhile is to return an error that matches %q and its cause, it returns: %v", what, ctx.Err(), err)
	}
}
