package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// events returns the handler of the stream of all VMs, as server-sent events: each VM first,
// and then each one that changes. A VM may come twice without a change, and several changes
// may come as one: its history has all of them. A client that connects again, also to another
// replica, gets all VMs again. The stream ends when ending does.
func events(ending context.Context, vms *manager) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, stop := context.WithCancel(r.Context())
		defer stop()
		defer context.AfterFunc(ending, stop)()
		changes := lifecycle.Watch(ctx, vms) // before the list, so that no change is missed in between
		w.Header().Set("Content-Type", "text/event-stream")
		if r.Method == http.MethodHead { // the pattern of GET has it too
			return
		}
		answer := http.NewResponseController(w)
		send := func(text string) error { // to a client that reads: another one would hold up a shutdown
			_ = answer.SetWriteDeadline(time.Now().Add(grace / 3))
			_, err := io.WriteString(w, text)
			return errors.Join(err, answer.Flush())
		}
		defer answer.SetWriteDeadline(time.Time{}) // for the next request of the connection
		if send("") != nil {                       // the stream begins, also without VMs
			return
		}
		write := func(vm record) error {
			data, err := json.Marshal(viewOf(vm))
			return errors.Join(err, send("data: "+string(data)+"\n\n"))
		}
		for vm, err := range vms.All(ctx, lifecycle.Select[State]{}) {
			if err != nil && vm.ID == "" || write(vm) != nil {
				return
			}
		}
		for changed, err := range changes {
			if err != nil {
				return // the client connects again
			}
			vm, err := vms.Get(ctx, changed.ID)
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
}
