package fsm_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/teetest"
)

func TestTee(t *testing.T) { teetest.Run(t, fsm.Tee) }

func ExampleTee() {
	moves := 0
	count := fsm.Observer{Moved: func(context.Context, fsm.Moved) { moves++ }}
	log := fsm.Observer{Moved: func(_ context.Context, m fsm.Moved) { fmt.Println(m.Event, "to", m.To) }}

	light := lamp.Observe(fsm.Tee(count, log)).Instance()
	_, err := light.Fire(context.Background(), "press", "user", nil)
	fmt.Println(moves, err)
	// Output:
	// press to on
	// 1 <nil>
}

var lamp = fsm.Must[struct{}](fsm.Spec[string, string]{
	Name: "lamp", Initial: "off", Actors: []fsm.Actor{"user"},
	States: []fsm.State[string]{{Name: "off"}, {Name: "on"}},
	Rows:   fsm.Rows(fsm.Move("off", "press", "on").By("user"), fsm.Move("on", "press", "off").By("user")),
})
