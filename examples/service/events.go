package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/interlock-go/interlock/lifecycle"
)

// change is a row of a VM's history as users see it.
type change struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Event  string `json:"event"`
	Actor  string `json:"actor"`
	Reason string `json:"reason,omitempty"`
}

// events streams the changes of a VM as server-sent events, from the first one or from the
// one after Last-Event-ID. The id of an event is its sequence number: a client that
// connects again, also to another replica, misses none and gets none twice. The stream
// ends when the VM is deleted, and when the service shuts down.
func (a *api) events(w http.ResponseWriter, r *http.Request) {
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	go func() { // ends with the request
		select {
		case <-a.stopping:
			stop()
		case <-ctx.Done():
		}
	}()
	var last uint64
	if text := r.Header.Get("Last-Event-ID"); text != "" {
		var err error
		if last, err = strconv.ParseUint(text, 10, 64); err != nil {
			fail(w, fmt.Errorf("%w: Last-Event-ID %q is not a number", lifecycle.ErrInvalid, text))
			return
		}
	}
	name := r.PathValue("name")
	vm, err := a.vms.Get(ctx, name)
	if err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w).Flush
	for {
		rows, err := a.vms.History(ctx, name, last, 0)
		if err != nil {
			return
		}
		for _, row := range rows {
			data, _ := json.Marshal(change{row.From, row.To, row.Event, string(row.Actor), row.Reason})
			fmt.Fprintf(w, "id: %d\ndata: %s\n\n", row.Sequence, data)
			last = row.Sequence
		}
		if flush() != nil || len(rows) == 0 && vm.Sequence == 0 {
			return
		}
		// Changes of other replicas are seen within a second.
		vm, err = a.vms.Await(ctx, name, func(vm record) bool { return vm.Sequence > last || vm.Sequence == 0 })
		if err != nil {
			return
		}
	}
}
