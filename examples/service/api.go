package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/lifecycle"
)

// api serves the requests of users. A service with accounts derives the actor and the
// permissions of a request from its credentials; here all requests are those of [User].
type api struct{ vms *manager }

// routes returns the handler of all requests. Streams end when ending does.
func (a *api) routes(ending context.Context) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /vms", a.answer(http.StatusAccepted, a.create))
	mux.HandleFunc("GET /vms", a.answer(http.StatusOK, a.list))
	mux.HandleFunc("GET /vms/{name}", a.answer(http.StatusOK, a.get))
	mux.HandleFunc("PATCH /vms/{name}", a.answer(http.StatusOK, a.resize))
	mux.HandleFunc("POST /vms/{name}/start", a.answer(http.StatusAccepted, a.act(Start)))
	mux.HandleFunc("POST /vms/{name}/stop", a.answer(http.StatusAccepted, a.act(Stop)))
	mux.HandleFunc("DELETE /vms/{name}", a.answer(http.StatusAccepted, a.act(Delete)))
	mux.HandleFunc("GET /vms/{name}/explain", a.answer(http.StatusOK, a.explain))
	mux.HandleFunc("GET /vms/{name}/history", a.answer(http.StatusOK, a.history))
	mux.HandleFunc("GET /events", events(ending, a.vms))
	return mux
}

// create begins to create a VM. Its row and its work are in one commit.
func (a *api) create(r *http.Request) (any, error) {
	var wanted struct {
		Name string `json:"name"`
		VM
	}
	change, err := read(r, &wanted)
	if err != nil {
		return nil, err
	}
	if wanted.Name == "" || wanted.Image == "" || wanted.CPUs <= 0 || wanted.Memory < 0 {
		return nil, fmt.Errorf("%w: a VM needs name, image and cpus, and no memory below 0", lifecycle.ErrInvalid)
	}
	if strings.Contains(wanted.Name, "/") || wanted.Name == "." || wanted.Name == ".." {
		return nil, fmt.Errorf("%w: name %q cannot be part of a path: no request could delete the VM", lifecycle.ErrInvalid, wanted.Name)
	}
	change.Edit = func(vm *VM) error {
		vm.Image, vm.CPUs = wanted.Image, wanted.CPUs
		if *v2 {
			vm.Memory = cmp.Or(wanted.Memory, memoryPerCPU*wanted.CPUs)
		}
		return nil
	}
	return a.do(r, wanted.Name, Create, wanted.Image, change)
}

// act returns the function that starts the operation of an event.
func (a *api) act(event Event) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		change, err := read(r, nil)
		if err != nil {
			return nil, err
		}
		return a.do(r, r.PathValue("name"), event, "", change)
	}
}

// do starts an operation. The answer is the VM in the state that the event leads to; the
// work follows.
func (a *api) do(r *http.Request, name string, event Event, args string, change *lifecycle.Change[VM]) (any, error) {
	operation, err := a.vms.Do(r.Context(), name, event, User, workOf(event, args), change)
	if err != nil {
		return nil, err
	}
	return operation.Admitted(), nil
}

// resize changes a stopped VM. It needs no work: the size counts from the next start.
func (a *api) resize(r *http.Request) (any, error) {
	var wanted struct {
		CPUs int `json:"cpus"`
	}
	change, err := read(r, &wanted)
	if err != nil {
		return nil, err
	}
	if wanted.CPUs <= 0 {
		return nil, fmt.Errorf("%w: cpus has to be above 0", lifecycle.ErrInvalid)
	}
	change.Edit = func(vm *VM) error { vm.CPUs = wanted.CPUs; return nil }
	return a.vms.Fire(r.Context(), r.PathValue("name"), Resize, User, change)
}

func (a *api) get(r *http.Request) (any, error) {
	return a.vms.Get(r.Context(), r.PathValue("name"))
}

// list returns a page: ?state=running&limit=100&after=vm-1. Parameter state may be
// repeated, and after is the next of the page before.
func (a *api) list(r *http.Request) (any, error) {
	limit, err := number(r, "limit")
	if err != nil {
		return nil, err
	}
	sel := lifecycle.Select[State]{After: r.FormValue("after"), Limit: int(cmp.Or(limit, 100))}
	for _, state := range r.Form["state"] {
		sel.States = append(sel.States, State(state))
	}
	records, err := a.vms.List(r.Context(), sel)
	if err != nil {
		return nil, err
	}
	page := struct {
		VMs  []view `json:"vms"`
		Next string `json:"next,omitempty"`
	}{VMs: []view{}}
	for _, vm := range records {
		page.VMs = append(page.VMs, viewOf(vm))
	}
	if len(records) == sel.Limit {
		page.Next = records[len(records)-1].ID
	}
	return page, nil
}

// explain returns why a VM does not move, and what each actor can do.
func (a *api) explain(r *http.Request) (any, error) {
	return a.vms.Explain(r.Context(), r.PathValue("name"))
}

// history returns the changes of a VM, also of a deleted one: ?after=3 are those that
// follow the change with this sequence number.
func (a *api) history(r *http.Request) (any, error) {
	after, err := number(r, "after")
	if err != nil {
		return nil, err
	}
	rows, err := a.vms.History(r.Context(), r.PathValue("name"), after, 0)
	return append([]lifecycle.HistoryRow{}, rows...), err
}

// number returns a parameter of the query, and 0 without it.
func number(r *http.Request, name string) (uint64, error) {
	if err := r.ParseForm(); err != nil { // FormValue would ignore it, and the filter with it
		return 0, fmt.Errorf("%w: the query: %w", lifecycle.ErrInvalid, err)
	}
	text := cmp.Or(r.FormValue(name), "0")
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0, fmt.Errorf("%w: %s %q is not a number", lifecycle.ErrInvalid, name, text)
	}
	return n, nil
}

// read decodes the body, unless into is nil. It returns the change with If-Match and the
// request id of the headers. A service with accounts adds the account to the request id.
func read(r *http.Request, into any) (*lifecycle.Change[VM], error) {
	body, err := io.ReadAll(r.Body)
	if err == nil && into != nil {
		err = json.Unmarshal(body, into)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: the body: %w", lifecycle.ErrInvalid, err)
	}
	change := &lifecycle.Change[VM]{IfMatch: strings.Join(r.Header.Values("If-Match"), ",")}
	if key := r.Header.Get("Idempotency-Key"); key != "" {
		hash := sha256.Sum256(fmt.Appendf(nil, "%s\n%s", r.URL.Path, body))
		change.Request = lifecycle.RequestID{ID: key, Hash: hex.EncodeToString(hash[:])}
	}
	return change, nil
}
