package inspect_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/inspect"
)

// A program reads the document that a page shows.
func ExampleNew() {
	vms := vms(lifecycle.NewMemoryStore(), lifecycle.Config[string]{})
	if _, err := vms.Create(context.Background(), "vm-1", "create", "user", vm{Address: "10.0.0.7"}, nil); err != nil {
		log.Fatal(err)
	}
	page, err := inspect.New(&inspect.Config{Machines: []inspect.Machine{inspect.Of(vms, nil)}})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/inspect/", http.StripPrefix("/inspect", page))
	server := httptest.NewServer(mux)
	defer server.Close()
	server.Config.RegisterOnShutdown(page.Close)

	answer, err := server.Client().Get(server.URL + "/inspect/machine?machine=vm&format=json")
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	var machine inspect.MachinePage
	if err := json.NewDecoder(answer.Body).Decode(&machine); err != nil {
		log.Fatal(err)
	}
	for _, s := range machine.States {
		fmt.Println(s.State, s.Kind, s.Count)
	}
	fmt.Println("stuck:", machine.Stuck)
	// Output:
	// creating transitional 1
	// running stable 0
	// failed failed 0
	// stuck: 0
}

// An operator moves an object that nothing else moves.
func ExamplePage_Admin() {
	vms := vms(lifecycle.NewMemoryStore(), lifecycle.Config[string]{})
	if _, err := vms.Create(context.Background(), "vm-1", "create", "user", vm{}, nil); err != nil {
		log.Fatal(err)
	}
	page, err := inspect.New(&inspect.Config{Machines: []inspect.Machine{inspect.Of(vms, nil)}})
	if err != nil {
		log.Fatal(err)
	}
	authorize := func(r *http.Request, _ inspect.Action) (fsm.Actor, error) {
		user, _, _ := r.BasicAuth() // a proxy has checked it
		return fsm.Actor(user), nil
	}
	audit := func(_ context.Context, a inspect.Action) {
		fmt.Println("audit:", a.Actor, a.Verb, a.Machine, a.ID, a.To, a.Reason, a.Err)
	}
	admin, err := page.Admin(authorize, audit)
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(admin)
	defer server.Close()

	form := url.Values{"machine": {"vm"}, "id": {"vm-1"}, "to": {"failed"}, "reason": {"the host has burnt"}}
	to, _ := url.Parse(server.URL + "/override")
	to.User = url.UserPassword("operator", "")
	answer, err := server.Client().PostForm(to.String(), form)
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	rec, err := vms.Get(context.Background(), "vm-1")
	fmt.Println(answer.StatusCode, rec.State, err)
	// Output:
	// audit: operator override vm vm-1 failed the host has burnt <nil>
	// 200 failed <nil>
}
