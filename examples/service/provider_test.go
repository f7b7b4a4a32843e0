package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// TestProvider: an order names the operation. One that the provider refuses as late is not
// sent again, any other failure is.
func TestProvider(t *testing.T) {
	var orders []order
	var answers []int // to the next orders; none: 200
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var o order
		if json.NewDecoder(r.Body).Decode(&o) != nil || r.URL.Path != "/vms/vm-1" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		orders = append(orders, o)
		if len(answers) > 0 {
			w.WriteHeader(answers[0])
			answers = answers[1:]
		}
	}))
	defer server.Close()
	*cloudURL, *delay = server.URL+"/vms", 0
	defer func() { *cloudURL, *delay = "", time.Second }()

	store := lifecycle.NewMemoryStore()
	owner, err := lifecycle.Join(t.Context(), store, "a", time.Minute)
	require.NoError(t, err)
	vms, err := newManager(store, owner, queue.Must(&queue.Config[lifecycle.Key]{}))
	require.NoError(t, err)
	do := func(event Event, answer ...int) record {
		answers = answer
		work := workOf(event, "debian")
		work.Retries.Delay = time.Millisecond
		operation, err := vms.Do(t.Context(), "vm-1", event, User, work, nil)
		require.NoError(t, err)
		vm, _ := operation.Wait(t.Context()) // the state of the VM shows the error
		last := orders[len(orders)-1]
		require.Equal(t, order{event, operation.Admitted().Operation, operation.Admitted().Admission, "a"}, last)
		return vm
	}
	require.Equal(t, Running, do(Create).State)
	require.Equal(t, Stopped, do(Stop, http.StatusServiceUnavailable).State)
	require.Len(t, orders, 3)
	require.Equal(t, Failed, do(Start, http.StatusConflict).State)
	require.Len(t, orders, 4)
	do(Delete)
	require.Len(t, orders, 5)
}
