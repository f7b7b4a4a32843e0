package lifecycle_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/interlock-go/interlock/internal/teetest"
	"github.com/interlock-go/interlock/lifecycle"
)

func TestTee(t *testing.T) { teetest.Run(t, lifecycle.Tee) }

func ExampleTee() {
	changes := 0
	count := lifecycle.Observer{Changed: func(context.Context, lifecycle.CommittedChange) { changes++ }}
	log := lifecycle.Observer{Changed: func(_ context.Context, e lifecycle.CommittedChange) { fmt.Println(e.ID, "is", e.To) }}

	m := lifecycle.Must(benchVM, lifecycle.NewMemoryStore(), &lifecycle.Config[event]{Observer: lifecycle.Tee(count, log)})
	_, err := m.Add(context.Background(), "vm-1", "idle", "user", size{}, nil)
	fmt.Println(changes, err)
	// Output:
	// vm-1 is idle
	// 1 <nil>
}
