package lifecycle

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// TestDrainMeetsAnotherRetry: the last retry ends and another one begins before Drain
// looks. Drain waits for that one too.
func TestDrainMeetsAnotherRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rs := newRetries()
		require.True(t, rs.begin())
		drained := make(chan error, 1)
		go func() {
			_, err := rs.wait(t.Context())
			drained <- err
		}()
		synctest.Wait()
		rs.mu.Lock() // end and begin, without drain in between
		close(rs.idle)
		rs.idle = make(chan struct{})
		rs.mu.Unlock()
		synctest.Wait()
		require.Empty(t, drained)
		rs.done()
		require.NoError(t, <-drained)
	})
}
