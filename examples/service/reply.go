package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// view is a VM as users see it.
type view struct {
	Name      string         `json:"name"`
	State     State          `json:"state"`
	Operation lifecycle.OpID `json:"operation,omitempty"`
	Reason    string         `json:"reason,omitempty"` // of the last change, such as why the VM has failed
	VM
	Error string `json:"error,omitempty"` // the row cannot be read; only in lists and streams
}

func viewOf(r record) view {
	v := view{Name: r.ID, State: r.State, Operation: r.Operation, Reason: r.Reason, VM: r.Payload}
	if r.Err != nil {
		v.Error = lifecycle.Problem(r.Err).Detail
	}
	return v
}

// removed returns the record of a VM that is gone.
func removed(name string) record {
	vm := record{ID: name}
	vm.State = Absent
	return vm
}

// requestTime is the time limit of a request.
const requestTime = 10 * time.Second

// answer returns a handler that writes what serve returns, with the status code. For a
// request that was accepted before, it writes the VM as it is now. The ETag of a VM is what
// If-Match compares. If the database does not answer within requestTime, the answer
// is an error.
func (a *api) answer(status int, serve func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, stop := context.WithTimeout(r.Context(), requestTime)
		defer stop()
		r.Body = http.MaxBytesReader(w, r.Body, 1<<16)
		body, err := serve(r.WithContext(ctx))
		if again, ok := errors.AsType[*lifecycle.RepeatedError](err); ok {
			w.Header().Set("Idempotent-Replayed", "true")
			body, err = a.repeated(again), nil
		}
		if err != nil {
			fail(w, err)
			return
		}
		if vm, ok := body.(record); ok {
			if vm.ETag != "" {
				w.Header().Set("ETag", vm.ETag)
			}
			body = viewOf(vm)
		}
		writeJSON(w, status, "application/json", body)
	}
}

// repeated returns the VM of a request that was accepted before, with the operation of then.
func (a *api) repeated(err *lifecycle.RepeatedError) record {
	vm, exists := lifecycle.Current(a.vms, err)
	if !exists {
		vm = removed(err.Row.ID)
	}
	vm.Operation = err.Row.Operation
	return vm
}

// fail writes an error as the problem details of RFC 9457.
func fail(w http.ResponseWriter, err error) {
	problem := lifecycle.Problem(err)
	if problem.Status >= 500 {
		slog.Error("request failed", "error", err) // the client does not get the whole error
	}
	writeJSON(w, problem.Status, lifecycle.ProblemContentType, problem)
}

func writeJSON(w http.ResponseWriter, status int, contentType string, body any) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		slog.Error("the answer was not written", "error", err)
	}
}
