package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/lifecycle"
)

// api serves the requests of users. A service with accounts derives the actor and the
// permissions of a request from its credentials; here all requests are those of [User].
type api struct {
	vms      *manager
	memory   bool          // VMs have memory, since version 2
	stopping chan struct{} // closed when the service shuts down
}

func (a *api) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /vms", a.create)
	mux.HandleFunc("GET /vms", a.list)
	mux.HandleFunc("GET /vms/{name}", a.get)
	mux.HandleFunc("PATCH /vms/{name}", a.resize)
	mux.HandleFunc("POST /vms/{name}/start", a.act(Start))
	mux.HandleFunc("POST /vms/{name}/stop", a.act(Stop))
	mux.HandleFunc("DELETE /vms/{name}", a.act(Delete))
	mux.HandleFunc("GET /vms/{name}/explain", a.explain)
	mux.HandleFunc("GET /vms/{name}/history", a.history)
	mux.HandleFunc("GET /events", a.events)
	return mux
}

// create answers 202: the VM is creating. Its row and its work are in one commit.
func (a *api) create(w http.ResponseWriter, r *http.Request) {
	var wanted struct {
		Name string `json:"name"`
		VM
	}
	change, err := read(w, r, &wanted)
	if err == nil && (wanted.Name == "" || wanted.Image == "" || wanted.CPUs <= 0 || wanted.Memory < 0) {
		err = fmt.Errorf("%w: a VM needs name, image and cpus, and no memory below 0", lifecycle.ErrInvalid)
	}
	if err != nil {
		fail(w, err)
		return
	}
	change.Edit = func(vm *VM) error {
		vm.Image, vm.CPUs = wanted.Image, wanted.CPUs
		if a.memory {
			vm.Memory = cmp.Or(wanted.Memory, memoryPerCPU*wanted.CPUs)
		}
		return nil
	}
	w.Header().Set("Location", "/vms/"+url.PathEscape(wanted.Name))
	a.do(w, r, wanted.Name, Create, workOf(Create, wanted.Image), change)
}

// act answers 202: the VM is in the state that the event leads to, and its work follows.
func (a *api) act(event Event) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		change, err := read(w, r, nil)
		if err != nil {
			fail(w, err)
			return
		}
		a.do(w, r, r.PathValue("name"), event, workOf(event, ""), change)
	}
}

// do starts an operation.
func (a *api) do(w http.ResponseWriter, r *http.Request, name string, event Event, work lifecycle.Work, change *lifecycle.Change[VM]) {
	operation, err := a.vms.Do(r.Context(), name, event, User, work, change)
	if err != nil {
		a.repeated(w, http.StatusAccepted, err)
		return
	}
	reply(w, http.StatusAccepted, operation.Admitted())
}

// resize changes a stopped VM. It needs no work: the size counts from the next start.
func (a *api) resize(w http.ResponseWriter, r *http.Request) {
	var wanted struct {
		CPUs int `json:"cpus"`
	}
	change, err := read(w, r, &wanted)
	if err == nil && wanted.CPUs <= 0 {
		err = fmt.Errorf("%w: cpus has to be above 0", lifecycle.ErrInvalid)
	}
	if err != nil {
		fail(w, err)
		return
	}
	change.Edit = func(vm *VM) error { vm.CPUs = wanted.CPUs; return nil }
	vm, err := a.vms.Fire(r.Context(), r.PathValue("name"), Resize, User, change)
	if err != nil {
		a.repeated(w, http.StatusOK, err)
		return
	}
	reply(w, http.StatusOK, vm)
}

func (a *api) get(w http.ResponseWriter, r *http.Request) {
	vm, err := a.vms.Get(r.Context(), r.PathValue("name"))
	if err != nil {
		fail(w, err)
		return
	}
	reply(w, http.StatusOK, vm)
}

// list answers a page: ?state=running&limit=100&after=vm-1. Parameter state may be
// repeated, and after is the next of the page before.
func (a *api) list(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	sel := lifecycle.Select[State]{After: query.Get("after"), Limit: 100}
	for _, state := range query["state"] {
		sel.States = append(sel.States, State(state))
	}
	if text := query.Get("limit"); text != "" {
		limit, err := strconv.Atoi(text)
		if err != nil || limit <= 0 {
			fail(w, fmt.Errorf("%w: limit %q is not a number above 0", lifecycle.ErrInvalid, text))
			return
		}
		sel.Limit = limit
	}
	records, err := a.vms.List(r.Context(), sel)
	if err != nil {
		fail(w, err)
		return
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
	writeJSON(w, http.StatusOK, page)
}

// explain answers why a VM does not move, and what each actor can do.
func (a *api) explain(w http.ResponseWriter, r *http.Request) {
	explanation, err := a.vms.Explain(r.Context(), r.PathValue("name"))
	if err != nil {
		fail(w, err)
		return
	}
	writeJSON(w, http.StatusOK, explanation)
}

// read decodes the body, unless into is nil. It returns the change with If-Match and the
// request id of the headers. A service with accounts adds the account to the request id.
func read(w http.ResponseWriter, r *http.Request, into any) (*lifecycle.Change[VM], error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<16))
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
