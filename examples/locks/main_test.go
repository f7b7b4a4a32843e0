package main

import (
	"context"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func Example() {
	if err := run(context.Background(), os.Stdout); err != nil {
		panic(err)
	}
	// Output:
	// three deploys at disjoint paths run at once
	//   deploy-1 is granted X at /shop/api
	//   deploy-2 is granted X at /shop/web
	//   deploy-3 is granted X at /blog
	//   deploy-4 is refused X at /shop/api/db: deploy-1 (version 12) holds X at /shop/api
	//   deploy-5 is refused X at /shop: deploy-1 (version 12) holds X at /shop/api
	//   deploy-5 is refused X at /shop: deploy-2 (version 7) holds X at /shop/web
	// the process restarts and acquires the locks of all actions in progress
	//   deploy-1 is granted X at /shop/api
	//   deploy-2 is granted X at /shop/web
	//   deploy-3 is granted X at /blog
	//   all tokens are greater than the tokens before the restart
	// a teardown waits for two deploys
	//   deploy-6 is refused X at /shop/jobs: teardown-1 (end of season) waits for X at /shop
	//   deploy-1 releases X at /shop/api
	//   deploy-2 releases X at /shop/web
	//   teardown-1 is granted X at /shop
	// the teardown ends, and its path is free
	//   teardown-1 releases X at /shop
	//   deploy-6 is granted X at /shop/jobs
	//   deploy-6 releases X at /shop/jobs
	//   deploy-3 releases X at /blog
	// end: 0 held, 0 waiting, 0 nodes
}

// The program is a test of the lock tree only if the monitor detects faults.
func TestMonitorDetectsConflicts(t *testing.T) {
	m := &monitor{out: io.Discard}
	m.restarted()
	m.granted("a", at("/x"))
	m.granted("b", at("/y"))
	m.released("a")
	m.granted("c", at("/x/z"))
	require.NoError(t, m.verify())
	m.granted("d", at("/x"))
	require.EqualError(t, m.verify(), "d is granted X at /x while c holds X at /x/z")
}

func TestRefusedDetectsGrants(t *testing.T) {
	s := &service{out: io.Discard, monitor: &monitor{out: io.Discard}}
	s.start(1)
	require.ErrorContains(t, s.refused(t.Context(), "/x", "a"), "a at /x was not refused")
}

func TestCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, run(ctx, io.Discard), context.Canceled)
	s := &service{out: io.Discard, monitor: &monitor{out: io.Discard}}
	s.start(1)
	require.ErrorIs(t, s.teardown(ctx), context.Canceled)
}
