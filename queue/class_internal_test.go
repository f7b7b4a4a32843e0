package queue

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// A class that was made for a pattern is freed with its last action, and a refused
// action makes none. Classes of the configuration stay.
func TestIdleClassesAreFreed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := Must(&Config[int]{Classes: map[string]Limit{"aws/*": {MaxRunning: 1}, "aws/tokyo": {}}})
		end := make(chan struct{})
		refused := errors.New("refused")
		for i := range 100 {
			act := &Action{Class: fmt.Sprint("aws/", i/2), Run: func(context.Context) error { <-end; return nil }}
			_, err := q.Submit(t.Context(), i, act)
			require.NoError(t, err)
			act = &Action{Class: fmt.Sprint("aws/no", i), Run: act.Run, Admit: func(context.Context) error { return refused }}
			_, err = q.Submit(t.Context(), i, act)
			require.ErrorIs(t, err, refused)
		}
		require.Len(t, q.classes, 3+50)
		close(end)
		synctest.Wait()
		require.Len(t, q.classes, 3, "aws, aws/* and aws/tokyo")
		require.Len(t, q.classes["aws"].children, 1)
		require.NoError(t, q.Terminate(t.Context()))
	})
}
