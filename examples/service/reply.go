package main

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

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

// reply writes a VM. Its ETag is what If-Match compares.
func reply(w http.ResponseWriter, status int, vm record) {
	if vm.ETag != "" {
		w.Header().Set("ETag", vm.ETag)
	}
	writeJSON(w, status, viewOf(vm))
}

// repeated writes an error. For a request that was accepted before, it writes the VM as it
// is now instead, with the status code of the first answer.
func (a *api) repeated(w http.ResponseWriter, status int, err error) {
	again, ok := errors.AsType[*lifecycle.RepeatedError](err)
	if !ok {
		fail(w, err)
		return
	}
	vm, exists := a.vms.Current(err)
	if !exists {
		vm = removed(again.Row.ID)
	}
	vm.Operation = again.Row.Operation
	w.Header().Set("Idempotent-Replayed", "true")
	reply(w, status, vm)
}

// fail writes an error as the problem details of RFC 9457.
func fail(w http.ResponseWriter, err error) {
	problem := lifecycle.Problem(err)
	if problem.Status >= 500 {
		slog.Error("request failed", "error", err) // the client does not get the whole error
	}
	w.Header().Del("Location")
	w.Header().Set("Content-Type", lifecycle.ProblemContentType)
	writeJSON(w, problem.Status, problem)
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		slog.Error("the answer was not written", "error", err)
	}
}
