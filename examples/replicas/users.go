package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// request is a request as a replica has answered it.
type request struct {
	key       string // its id
	event     string
	operation lifecycle.OpID
	refused   time.Time // when the attempt was sent that was refused; zero: it was accepted
}

// users send requests to the replicas. They are safe for concurrent use.
type users struct {
	vms      *manager
	replicas []*replica
	client   *http.Client
	accepted atomic.Int64 // requests
	replayed atomic.Int64 // answers that repeat a lost one
	lost     atomic.Int64 // attempts without an answer

	mu       sync.Mutex
	requests map[string][]request // by VM
}

// nameOf returns the name of a VM. One half of them is the control, see [fenced].
func nameOf(number int) string {
	if number%2 == 1 {
		return fmt.Sprintf("control-%05d", number)
	}
	return fmt.Sprintf("vm-%05d", number)
}

// events are what a user requests in a state, with the same probability.
var events = map[string][]string{
	"absent":  {"create"},
	"running": {"stop"},
	"stopped": {"start", "start", "delete"},
	"failed":  {"delete"},
}

// run sends the requests of one user, one after the other, until asking ends. It waits for
// the answer to the last one.
func (u *users) run(ctx, asking context.Context, user int) error {
	for n := 0; asking.Err() == nil; n++ {
		vm := nameOf(rand.IntN(*objects))
		now, err := u.vms.Get(ctx, vm)
		if errors.Is(err, lifecycle.ErrNotFound) {
			now.State, err = "absent", nil
		}
		if err != nil {
			return err
		}
		if next := events[now.State]; len(next) > 0 {
			r := request{key: fmt.Sprintf("user-%d-%d", user, n), event: next[rand.IntN(len(next))]}
			if err := u.request(ctx, vm, r); err != nil {
				return err
			}
		}
		select { // closed loops would take all processors, also from the sweeps
		case <-time.After(4 * interval):
		case <-asking.Done():
		}
	}
	return nil
}

// request sends a request to one replica after the other until it is accepted or refused.
func (u *users) request(ctx context.Context, vm string, r request) error {
	method, route, body := http.MethodPost, "/vms/"+vm+"/"+r.event, ""
	switch r.event {
	case "create":
		route, body = "/vms", fmt.Sprintf(`{"name": %q, "image": "debian", "cpus": 2}`, vm)
	case "delete":
		method, route = http.MethodDelete, "/vms/"+vm
	}
	for {
		at, sent := u.replicas[rand.IntN(len(u.replicas))].address, time.Now()
		code, err := u.send(ctx, method, "http://"+at+route, body, &r)
		lost := rand.IntN(20) == 0 // on the way to the user
		if !lost && err == nil && code < http.StatusInternalServerError {
			if code == http.StatusAccepted {
				u.accepted.Add(1)
			} else {
				r.refused = sent
			}
			u.mu.Lock()
			u.requests[vm] = append(u.requests[vm], r)
			u.mu.Unlock()
			return nil
		}
		u.lost.Add(1)
		select {
		case <-time.After(interval):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// send sends an attempt, and sets the operation of the answer.
func (u *users) send(ctx context.Context, method, url, body string, r *request) (code int, err error) {
	attempt, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	attempt.Header.Set("Idempotency-Key", r.key)
	answer, err := u.client.Do(attempt)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	var vm struct{ Operation lifecycle.OpID }
	if err := json.NewDecoder(answer.Body).Decode(&vm); err != nil {
		return 0, err
	}
	r.operation = vm.Operation
	if answer.Header.Get("Idempotent-Replayed") != "" {
		u.replayed.Add(1)
	}
	return answer.StatusCode, nil
}
