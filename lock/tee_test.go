package lock_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/interlock-go/interlock/internal/teetest"
	"github.com/interlock-go/interlock/lock"
)

func TestTee(t *testing.T) { teetest.Run(t, lock.Tee) }

func ExampleTee() {
	grants := 0
	count := lock.Observer{Granted: func(context.Context, lock.Acquisition) { grants++ }}
	log := lock.Observer{Granted: func(_ context.Context, e lock.Acquisition) { fmt.Println("granted:", e.Requests[0]) }}

	tree := lock.Must(&lock.Config{Observer: lock.Tee(count, log)})
	_, err := tree.Try(lock.MustParse("/rack1/host2"), lock.X)
	fmt.Println(grants, err)
	// Output:
	// granted: X at /rack1/host2
	// 1 <nil>
}
