package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// aliveEvery is the greatest pause in a stream. Proxies close connections without traffic.
const aliveEvery = 15 * time.Second

// update is a value of a watch: a change, the error of a machine's store, or the panic of a
// store.
type update struct {
	Change
	err   error
	panic any
}

// events streams changes as server-sent events: "change" with a [Change], and "problem" with
// a [lifecycle.ProblemDetails] while a store fails. The stream ends with the request, by
// [Page.Close], and if a store cannot be watched.
func (p *Page) events(w http.ResponseWriter, r *http.Request) error {
	machines := p.config.Machines
	if r.URL.Query().Has("machine") {
		m, err := p.machine(r)
		if err != nil {
			return err
		}
		machines = []Machine{m}
	}
	if !p.streams.TryAcquire(1) {
		return &refusal{http.StatusServiceUnavailable, "too-many-streams", "too many streams are open"}
	}
	defer p.streams.Release(1)
	if p.closed.Err() != nil {
		return &refusal{http.StatusServiceUnavailable, "closed", "the page is closed"}
	}
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("X-Accel-Buffering", "no") // a buffering proxy would hold the events back
	if r.Method == http.MethodHead {
		return nil
	}
	s := stream{w, http.NewResponseController(w)}
	if err := s.Flush(); errors.Is(err, errors.ErrUnsupported) { // a browser would connect again and again
		return &refusal{http.StatusNotImplemented, "no-streams", "a handler around the page has a ResponseWriter without Flush and Unwrap"}
	}
	defer s.SetWriteDeadline(time.Time{}) // for the next request of the connection
	ctx, cancel := context.WithCancel(r.Context())
	defer context.AfterFunc(p.closed, cancel)()
	updates := make(chan update)
	var watches sync.WaitGroup
	defer watches.Wait()
	defer cancel()
	for _, m := range machines {
		watches.Go(func() { watch(ctx, m, updates) })
	}

	alive := time.Tick(aliveEvery)
	for err := s.send(": watching\n\n"); err == nil; {
		select {
		case <-ctx.Done():
			return nil
		case <-alive:
			err = s.send(": alive\n\n")
		case u := <-updates:
			switch {
			case u.panic != nil:
				panic(u.panic)
			case u.err == nil:
				err = s.event("change", u.Change)
			case errors.Is(u.err, lifecycle.ErrUnavailable):
				err = s.event("problem", p.problem(ctx, u.err))
			default: // the watch has ended
				_ = s.event("problem", p.problem(ctx, u.err))
				return nil
			}
		}
	}
	return nil // the client is gone
}

// watch sends the changes of a machine's objects until ctx ends.
func watch(ctx context.Context, m Machine, updates chan<- update) {
	send := func(u update) bool {
		select {
		case updates <- u:
			return true
		case <-ctx.Done():
			return false
		}
	}
	defer func() { // a panic of the store continues in the goroutine of the request
		if v := recover(); v != nil {
			send(update{panic: v})
		}
	}()
	for changed, err := range lifecycle.Watch(ctx, m) {
		if !send(update{Change: Change{m.table().Name, changed}, err: err}) {
			return
		}
	}
}

// stream writes server-sent events.
type stream struct {
	http.ResponseWriter
	*http.ResponseController
}

func (s *stream) event(name string, data any) error {
	text, err := json.Marshal(data) // without line breaks
	if err != nil {
		return err
	}
	return s.send(fmt.Sprintf("event: %s\ndata: %s\n\n", name, text))
}

func (s *stream) send(text string) error {
	// The server's limit of time is for the whole answer.
	_ = s.SetWriteDeadline(time.Now().Add(2 * aliveEvery))
	if _, err := fmt.Fprint(s.ResponseWriter, text); err != nil {
		return err
	}
	return s.Flush()
}
