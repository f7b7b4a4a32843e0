package queue_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/interlock-go/interlock/internal/teetest"
	"github.com/interlock-go/interlock/queue"
)

func TestTee(t *testing.T) { teetest.Run(t, queue.Tee[string]) }

func ExampleTee() {
	ended := 0
	count := queue.Observer[string]{Finished: func(context.Context, queue.Finished[string]) { ended++ }}
	log := queue.Observer[string]{Finished: func(_ context.Context, e queue.Finished[string]) { fmt.Println(e.Name, e.Outcome) }}

	q := queue.Must(&queue.Config[string]{Observer: queue.Tee(count, log)})
	boot := &queue.Action{Name: "boot", Run: func(context.Context) error { return nil }}
	_, err := q.Submit(context.Background(), "vm-1", boot)
	fmt.Println(err)
	_ = q.Terminate(context.Background())
	fmt.Println(ended)
	// Output:
	// <nil>
	// boot ok
	// 1
}
