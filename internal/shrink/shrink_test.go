package shrink_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/shrink"
)

type number int

func (n number) String() string { return fmt.Sprint("step ", int(n)) }

var errFails = errors.New("3 comes before 11")

func play(steps []number) error {
	three := false
	for _, s := range steps {
		three = three || s == 3
		if three && s == 11 {
			return errFails
		}
	}
	return nil
}

func TestShortenFindsTheShortest(t *testing.T) {
	var steps []number
	for i := range 20 {
		steps = append(steps, number(i))
	}
	short, err := shrink.Shorten(steps, play(steps), play)
	require.Equal(t, errFails, err)
	require.Equal(t, []number{3, 11}, short)
	require.Equal(t, "a random sequence (Seed 7) fails: 3 comes before 11\n  1 step 3\n  2 step 11\n",
		shrink.Report(7, steps, errFails, play))
}
