package sqlstore

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A duration is rounded up to microseconds. The longest one does not overflow.
func TestMicros(t *testing.T) {
	for d, want := range map[time.Duration]int64{
		0: 0, 1: 1, 999: 1, 1000: 1, 1001: 2, time.Hour: 3_600_000_000, math.MaxInt64: math.MaxInt64/1000 + 1,
	} {
		t.Run(d.String(), func(t *testing.T) { require.Equal(t, want, micros(d)) })
	}
}
