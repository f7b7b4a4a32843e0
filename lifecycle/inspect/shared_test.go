package inspect_test

import (
	"context"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/inspect"
)

// slowList is a store whose lists of VMs wait.
type slowList struct {
	*lifecycle.MemoryStore
	end chan struct{}
}

func (s slowList) List(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
	if q.Machine == "vm" {
		<-s.end
	}
	return s.MemoryStore.List(ctx, q)
}

// TestLeaveSharedReading: a client that leaves does not wait for the reading of another one.
func TestLeaveSharedReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := slowList{lifecycle.NewMemoryStore(), make(chan struct{})}
		page, err := inspect.New(&inspect.Config{Machines: []inspect.Machine{inspect.Of(vms(store, lifecycle.Config[string]{}), nil)}})
		require.NoError(t, err)
		first := make(chan int)
		go func() { first <- ask(page, "GET", "/", "Accept", "application/json").StatusCode }()
		synctest.Wait()
		ctx, leave := context.WithCancel(t.Context())
		second := make(chan struct{})
		go func() {
			page.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/?format=json", nil).WithContext(ctx))
			close(second)
		}()
		synctest.Wait()
		leave()
		<-second
		close(store.end)
		require.Equal(t, 200, <-first)
	})
}
