package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// silent is a store that does not answer.
type silent struct{ *lifecycle.MemoryStore }

func (silent) Get(ctx context.Context, _ lifecycle.Key) (lifecycle.StoredRecord, error) {
	<-ctx.Done()
	return lifecycle.StoredRecord{}, lifecycle.Ended(ctx)
}

// TestSilentDatabase: a request ends also if the database does not answer.
func TestSilentDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vms := lifecycle.Must(vmTable, silent{lifecycle.NewMemoryStore()}, nil)
		for _, request := range []*http.Request{
			httptest.NewRequest("GET", "/vms/vm-1", nil), httptest.NewRequest("PATCH", "/vms/vm-1", strings.NewReader(`{"cpus": 2}`)),
		} {
			begin, w := time.Now(), httptest.NewRecorder()
			(&api{vms}).routes(t.Context()).ServeHTTP(w, request)
			require.Equal(t, http.StatusServiceUnavailable, w.Code, request.Method)
			require.Equal(t, requestTime, time.Since(begin))
		}
	})
}
