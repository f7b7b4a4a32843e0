package locktest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lock"
)

// The demands of this file make calls that a script cannot state.

func deadlines(e *env) {
	g := e.take("holder", at(lock.X, "/a"))
	const short = 20 * time.Millisecond // outside a bubble it may end before the wait begins
	ctx, cancel := context.WithTimeout(e.Context(), short)
	defer cancel()
	c := e.begin(ctx, "Lock with a deadline", func(ctx context.Context) (*lock.Grant, error) {
		return e.l.Lock(ctx, at(lock.X, "/a/b"), by("waiting"))
	})
	time.Sleep(short)
	require.NoError(e, e.wait(c), "after the deadline")
	require.ErrorIs(e, c.err, context.DeadlineExceeded, "after the deadline")
	if refused, ok := errors.AsType[*lock.ConflictError](c.err); e.bubble && (!ok || len(refused.Holders) != 1) {
		e.Fatalf("the error does not list the holder: %v", c.err)
	}
	e.unlock(g)
	e.idle()
}

func badInput(e *env) {
	free, taken := at(lock.X, "/free"), at(lock.X, "/a")
	steps := []step{{text: "the holder", client: "holder", op: "try", requests: []lock.Request{taken}}}
	for what, bad := range map[string]step{
		"mode 6":                      {requests: []lock.Request{{Path: free.Path, Mode: lock.X + 1}}},
		"mode 9":                      {requests: []lock.Request{{Path: free.Path, Mode: 8 + lock.IS}}},
		"a list that is too long":     {requests: slices.Repeat([]lock.Request{free}, lock.MaxRequests+1)},
		"an id that is too long":      {requests: []lock.Request{free}, options: lock.Options{ID: strings.Repeat("x", lock.MaxText+1)}},
		"an owner with a NUL":         {requests: []lock.Request{free}, options: lock.Options{Owner: "a\x00b"}},
		"a reason that is not a text": {requests: []lock.Request{free}, options: lock.Options{Reason: "\xff"}},
		"a bad id and a holder":       {requests: []lock.Request{taken}, options: lock.Options{ID: "\x00"}},
	} {
		for _, op := range []string{"try", "lock"} {
			bad.text, bad.op, bad.want = op+" of "+what, op, "invalid"
			steps = append(steps, bad)
		}
	}
	require.NoError(e, e.play(steps))
	for _, scope := range []lock.Scope{0, 8, 15} {
		_, err := e.l.Holders(e.Context(), free.Path, scope)
		require.ErrorIs(e, err, lock.ErrInvalid, "%d", scope)
	}
	_, err := e.l.Holders(e.Context(), lock.Path{}, lock.At)
	require.ErrorIs(e, err, lock.ErrInvalid, "Holders at the zero path")
}
