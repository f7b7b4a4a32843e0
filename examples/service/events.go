package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/interlock-go/interlock/lifecycle"
)

// events streams all VMs as server-sent events: each VM first, and then each one that
// changes. A VM may come twice without a change, and several changes may come as one: its
// history has all of them. A client that connects again, also to another replica, gets all
// VMs again. The stream ends when the service shuts down.
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
	changes := a.vms.Watch(ctx) // before the list, so that no change is missed in between
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w).Flush
	if flush() != nil { // the stream begins, also without VMs
		return
	}
	write := func(vm record) error {
		data, err := json.Marshal(viewOf(vm))
		_, failed := fmt.Fprintf(w, "data: %s\n\n", data)
		return errors.Join(err, failed, flush())
	}
	for vm, err := range a.vms.All(ctx, lifecycle.Select[State]{}) {
		if err != nil && vm.ID == "" || write(vm) != nil {
			return
		}
	}
	for changed, err := range changes {
		if err != nil {
			return // the client connects again
		}
		vm, err := a.vms.Get(ctx, changed.ID)
		switch {
		case errors.Is(err, lifecycle.ErrNotFound):
			vm, err = removed(changed.ID), nil
		case errors.Is(err, lifecycle.ErrForeign): // as in the list
			vm, err = record{ID: changed.ID, Err: err}, nil
		}
		if err != nil || write(vm) != nil {
			return
		}
	}
}

// change is a row of a VM's history as users see it.
type change struct {
	Sequence uint64 `json:"sequence"`
	From     string `json:"from"`
	To       string `json:"to"`
	Event    string `json:"event"`
	Actor    string `json:"actor"`
	Reason   string `json:"reason,omitempty"`
}

// history answers the changes of a VM, also of a deleted one: ?after=3 are those that
// follow the change with this sequence number.
func (a *api) history(w http.ResponseWriter, r *http.Request) {
	var after uint64
	var err error
	if text := r.URL.Query().Get("after"); text != "" {
		if after, err = strconv.ParseUint(text, 10, 64); err != nil {
			fail(w, fmt.Errorf("%w: after %q is not a sequence number", lifecycle.ErrInvalid, text))
			return
		}
	}
	rows, err := a.vms.History(r.Context(), r.PathValue("name"), after, 0)
	if err != nil {
		fail(w, err)
		return
	}
	changes := []change{}
	for _, row := range rows {
		changes = append(changes, change{row.Sequence, row.From, row.To, row.Event, string(row.Actor), row.Reason})
	}
	writeJSON(w, http.StatusOK, changes)
}
