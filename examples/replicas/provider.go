package main

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// order is what a replica sends to the provider about a VM, see provider.go of
// examples/service.
type order struct {
	Operation lifecycle.OpID  `json:"operation"`
	Admission lifecycle.Token `json:"admission"`
	Replica   string          `json:"replica"`

	at      time.Time // when it arrived
	refused bool      // because an order of a later operation had come before
}

// cloud is the provider, and the network to it. It keeps all orders as they came. It is safe
// for concurrent use.
type cloud struct {
	mu     sync.Mutex         // guards what follows
	orders map[string][]order // by VM
	delay  *delay             // nil: none
}

// delay is the orders of one replica that the network does not deliver.
type delay struct {
	replica string
	orders  map[bool]int  // number, by fenced
	over    chan struct{} // closed when they are delivered
	late    sync.WaitGroup
}

// fenced reports whether the provider refuses late orders for a VM. The others are the control.
func fenced(vm string) bool { return !strings.HasPrefix(vm, "control-") }

// ServeHTTP receives an order. One that is delayed arrives, although its replica may have ended.
func (c *cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var o order
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	vm := r.PathValue("vm")
	c.mu.Lock()
	if d := c.delay; d != nil && d.replica == o.Replica {
		d.orders[fenced(vm)]++
		d.late.Add(1)
		defer d.late.Done()
		c.mu.Unlock()
		<-d.over
		c.mu.Lock()
	}
	// One step: between the comparison and the execution no other order is executed.
	o.at, o.refused = time.Now(), fenced(vm) && c.later(vm, o.Operation)
	c.orders[vm] = append(c.orders[vm], o)
	c.mu.Unlock()
	if o.refused {
		w.WriteHeader(http.StatusConflict)
	}
}

// hold delays the orders that a replica sends from now on, until deliver.
func (c *cloud) hold(replica string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.delay = &delay{replica: replica, orders: map[bool]int{}, over: make(chan struct{})}
}

// held returns the smaller number of delayed orders, with the fence and of the control.
func (c *cloud) held() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return min(c.delay.orders[true], c.delay.orders[false])
}

// deliver delivers the delayed orders, and returns when they were received.
func (c *cloud) deliver() {
	c.mu.Lock()
	d := c.delay
	c.delay = nil
	c.mu.Unlock()
	close(d.over)
	d.late.Wait()
}

// seen reports whether an order of a later operation has come.
func (c *cloud) seen(vm string, after lifecycle.OpID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.later(vm, after)
}

// later is seen for a caller that holds the mutex.
func (c *cloud) later(vm string, after lifecycle.OpID) bool {
	return slices.ContainsFunc(c.orders[vm], func(o order) bool { return o.Operation > after })
}
