package fsm

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every move adds one to the count in the object's word: there are as many
// moves as winners, self transitions included, by whichever way they won.
func TestWinnersAreAsManyAsMoves(t *testing.T) {
	m := light(t)
	for name, fire := range map[string]func(*Instance[string, string, int], string) error{
		"Fire": func(in *Instance[string, string, int], e string) error {
			_, err := in.Fire(t.Context(), e, "anybody", nil)
			return err
		},
		"FireForced": func(in *Instance[string, string, int], e string) error {
			_, err := in.FireForced(t.Context(), e, "anybody", nil)
			return err
		},
		"CompareAndSwap": func(in *Instance[string, string, int], e string) error {
			move, err := in.Next(t.Context(), e, "anybody", nil)
			if err == nil {
				_, err = in.CompareAndSwap(move)
			}
			return err
		},
	} {
		in := m.Instance()
		before := in.word.Load() / countOne
		var won atomic.Uint64
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				for i := range 2000 {
					if fire(&in, []string{"touch", "push", "touch"}[(i+g)%3]) == nil {
						won.Add(1)
					}
				}
			})
		}
		wg.Wait()
		require.Equal(t, before+won.Load(), in.word.Load()/countOne, name)
	}
}
