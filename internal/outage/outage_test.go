package outage_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/outage"
	"github.com/interlock-go/interlock/lifecycle"
)

func TestOutlast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		steps := 0
		returning := func(errs ...error) func() error {
			steps = 0
			return func() error {
				steps++
				return errs[min(steps, len(errs))-1]
			}
		}
		other := errors.New("other")
		down := fmt.Errorf("read: %w", lifecycle.ErrUnavailable)
		for _, last := range []error{nil, other} {
			require.Equal(t, last, outage.Outlast(t.Context(), returning(down, lifecycle.ErrUnknownOutcome, down, last)))
			require.Equal(t, 4, steps)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		require.ErrorIs(t, outage.Outlast(ctx, returning(down)), lifecycle.ErrUnavailable)
		require.InDelta(t, 3600/5, steps, 200)
	})
}
