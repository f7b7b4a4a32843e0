package main

import (
	"net/http"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

type (
	manager = lifecycle.Manager[State, Event, VM]
	record  = lifecycle.Record[State, VM]
)

// newManager returns the manager of the VMs.
func newManager(store lifecycle.Store, owner *lifecycle.Owner, work lifecycle.Queue) (*manager, error) {
	cloud := &provider{delay: *delay, url: *cloudURL}
	cloud.client.Transport = &http.Transport{MaxIdleConnsPerHost: *workers}
	config := &lifecycle.Config[Event]{
		WorkerActor: Worker, Done: []Event{Done}, Failed: []Event{Fail},
		Owner: owner, Queue: work, Observer: lifecycle.Log(nil),
		Handlers: map[string]lifecycle.Handler{
			string(Create): cloud.create,
			string(Start):  cloud.start,
			string(Stop):   cloud.stop,
			string(Delete): cloud.remove,
		},
	}
	return lifecycle.New(setVersion(config), store, config)
}

// workOf returns the work of an event: by name, so that another replica can do it.
func workOf(event Event, args string) lifecycle.Work {
	work := lifecycle.Named(string(event), []byte(args))
	work.Timeout = time.Minute // of one attempt
	work.Retries = lifecycle.Retries{Attempts: 5}
	return work
}
