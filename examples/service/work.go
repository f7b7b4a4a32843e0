package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

type (
	manager = lifecycle.Manager[State, Event, VM]
	record  = lifecycle.Record[State, VM]
)

// newManager returns the manager of the VMs.
func newManager(store lifecycle.Store, owner *lifecycle.Owner, work lifecycle.Queue) (*manager, error) {
	cloud := &provider{delay: *delay}
	config := &lifecycle.Config[Event]{
		WorkerActor: Worker, Done: []Event{Done}, Failed: []Event{Fail},
		Owner: owner, Queue: work, Observer: observer,
		Handlers: map[string]lifecycle.Handler{
			string(Create): cloud.create,
			string(Start):  cloud.change,
			string(Stop):   cloud.change,
			string(Delete): cloud.change,
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

// observer writes the log.
var observer = lifecycle.Observer{
	Changed: func(ctx context.Context, row lifecycle.HistoryRow) {
		slog.InfoContext(ctx, "changed", "vm", row.ID, "from", row.From, "to", row.To, "event", row.Event,
			"actor", row.Actor, "operation", row.Operation, "reason", row.Reason)
	},
	Refused: func(ctx context.Context, err error) { slog.InfoContext(ctx, "refused", "error", err) },
	Finished: func(ctx context.Context, end lifecycle.Finished) {
		if end.Err != nil {
			slog.WarnContext(ctx, "work failed", "vm", end.ID, "operation", end.Operation, "error", end.Err)
		}
	},
}

// logSweep logs what a sweep has found.
func logSweep(results []lifecycle.SweepResult, err error) {
	for _, r := range results {
		slog.Info("swept", "vm", r.ID, "result", r.String())
	}
	if err != nil {
		slog.Error("sweep", "error", err)
	}
}
