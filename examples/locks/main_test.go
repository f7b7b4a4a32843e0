package main

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/lock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func Example() {
	if err := run(context.Background(), os.Stdout); err != nil {
		panic(err)
	}
	// Output:
	// two deploys of one system at disjoint paths, and one of another system
	// a deploy below deploy-1, and a deploy of the whole shop
	//   deploy-4 is refused X at /shop/api/db: deploy-1 (version 12) holds X at /shop/api
	//   deploy-5 is refused X at /shop: deploy-1 (version 12) holds X at /shop/api
	//   deploy-5 is refused X at /shop: deploy-2 (version 7) holds X at /shop/web
	// the process restarts and takes the locks of all actions in progress again
	// deploy-2 repeats its request with the same id
	//   granted, with a token greater than all earlier tokens: true
	// a teardown of the shop waits for two deploys
	// a deploy at a free path does not overtake it
	//   deploy-6 is refused X at /shop/jobs: teardown-1 (end of season) waits for X at /shop
	// deploy-1 ends, then deploy-2: the teardown is granted
	//   deploy-7 is refused X at /shop/web: teardown-1 (end of season) holds X at /shop
	// the teardown ends, and the path is free
	//
	// left: 0 held, 0 waiting, 0 nodes
	//
	// deploy-1   X at /shop/api  |█████████        |
	// deploy-2   X at /shop/web  | █████████       |
	// deploy-3   X at /blog      |  ██████████████ |
	// teardown-1 X at /shop      |       ···███    |
	// deploy-6   X at /shop/jobs |              █  |
	//                             █ holds  · waits
}

// The program is a test of the lock tree only if verify detects faults.
func TestVerifyDetectsAnOverlap(t *testing.T) {
	l := newTimeLine()
	l.spans = []*span{
		{"a", []lock.Request{at("/x")}, -1, 0, 3},
		{"b", []lock.Request{at("/y")}, -1, 1, 3},
		{"c", []lock.Request{at("/x/z")}, 1, 3, 4},
	}
	require.NoError(t, l.verify())
	l.spans[2].holds = 2
	require.ErrorContains(t, l.verify(), "a and c held at once")
}
