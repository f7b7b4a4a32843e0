//go:build unix

package crash

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
)

// asChild is the variable of the children that are processes of the service.
const asChild = "INTERLOCK_CRASH_CHILD"

// orders are what a child is to do.
type orders struct {
	Engine   string // by name
	Existing bool   // the disks are in a table of the user's
	DSN      string
	Name     string // of the owner
	Outside  string // directory
	Requests string // file: the requests that clients have sent
	Answers  string // file: the answers that clients have received
	Seed     uint64
	Objects  int
	At       int64  // the commit at which the child kills itself; 0: the parent kills it
	When     string // before, during or after that commit
}

// ready is the line that a child prints when its clients run.
const ready = "ready"

// serve runs a process of the service until it is killed, finds that it was
// declared dead, or loses its parent.
func serve(o orders) error {
	e := engines[slices.IndexFunc(engines, func(e engine) bool { return e.name == o.Engine })]
	e.existing = o.Existing
	db, err := e.pool(o.DSN)
	if err != nil {
		return err
	}
	ctx := context.Background()
	inner, err := sqlstore.Open(ctx, db, e.dialect, e.config())
	if err != nil {
		return err
	}
	store := &mortal{Store: inner, at: o.At, when: o.When}
	owner, err := lifecycle.Join(ctx, store, o.Name, ttl)
	if err != nil {
		return err
	}
	c := config(outside(o.Outside).apply, 50*time.Millisecond)
	c.Owner = owner
	m := lifecycle.Must(disk, store, c)
	if _, err := m.Sweep(ctx); err != nil {
		return err
	}
	earlier, err := lines[request](o.Requests)
	if err != nil {
		return err
	}
	requests, err := appendTo(o.Requests)
	if err != nil {
		return err
	}
	answers, err := appendTo(o.Answers)
	if err != nil {
		return err
	}
	ended := make(chan error, 2)
	go func() { ended <- owner.Run(ctx) }()
	go func() { ended <- lifecycle.Run(ctx, ttl/5, nil, m) }()
	for i := range uint64(4) {
		cl := &client{
			m: m, dice: rand.New(rand.NewPCG(o.Seed, i)), objects: o.Objects, requests: requests, answers: answers,
			name: fmt.Sprintf("%s %d %d", o.Name, o.Seed, i),
		}
		if i == 0 { // it has received no answer from the process before
			cl.again = earlier[max(0, len(earlier)-20):]
		}
		go cl.run(ctx)
	}
	fmt.Println(ready)
	go func() {
		_, _ = io.Copy(io.Discard, bufio.NewReader(os.Stdin)) // until the parent ends
		os.Exit(0)
	}()
	if err := <-ended; !errors.Is(err, lifecycle.ErrStale) {
		return err
	}
	return nil // it was too slow with a heartbeat: the next process comes
}

// mortal is a store that kills the process at one of its commits.
type mortal struct {
	*sqlstore.Store
	at   int64
	when string
	n    atomic.Int64
}

func (s *mortal) Commit(ctx context.Context, c *lifecycle.Commit) error {
	if s.n.Add(1) != s.at {
		return s.Store.Commit(ctx, c)
	}
	switch s.when {
	case "before":
		die()
	case "during":
		go func() {
			time.Sleep(rand.N(2 * time.Millisecond))
			die()
		}()
	}
	_ = s.Store.Commit(ctx, c)
	die() // also after an error
	return nil
}

// die ends the process as kill -9 does.
func die() {
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		_ = p.Kill()
	}
	select {}
}

// request is what a client sends, and sends again until it has an answer.
type request struct {
	Request string // its id
	ID      string // of the disk
	Event   event
	Handler string // of its work; empty: it is a change without work
}

// client sends one request after the other.
type client struct {
	m        disks
	dice     *rand.Rand
	objects  int
	name     string    // begins the ids of its requests
	sent     int       // number of its requests
	again    []request // sent by a process before
	requests io.Writer
	answers  io.Writer
}

func (c *client) run(ctx context.Context) {
	for _, r := range c.again {
		_ = c.send(ctx, r) // an error is an answer too
	}
	for {
		id := fmt.Sprintf("d%d", c.dice.IntN(c.objects))
		if err := c.ask(ctx, id); err == nil {
			continue
		}
		time.Sleep(time.Millisecond) // refused, as a rule because another client uses the disk
	}
}

// ask requests something that the disk's state mostly permits.
func (c *client) ask(ctx context.Context, id string) error {
	at := state("none")
	rec, err := c.m.Get(ctx, id)
	if err == nil {
		at = rec.State
	} else if !errors.Is(err, lifecycle.ErrNotFound) {
		return err
	}
	handler := []string{"work", "slow", "slow", "fail"}[c.dice.IntN(4)]
	pick := func(events ...event) event { return events[c.dice.IntN(len(events))] }
	e := event("copy")
	switch at {
	case "none":
		e = "make"
	case "broken":
		e = pick("delete", "attach")
	case "free":
		e = pick("delete", "attach", "attach", "grow", "grow")
	case "used":
		e = pick("copy", "detach", "grow")
	case "growing":
		if c.dice.IntN(20) == 0 {
			e = "delete"
		}
	}
	switch e {
	case "attach":
		handler = ""
	case "grow":
		handler = "grow"
	}
	if err := c.first(ctx, request{ID: id, Event: e, Handler: handler}); err != nil || e != "detach" {
		return err
	}
	return c.first(ctx, request{ID: id, Event: "delete", Handler: "work"})
}

// first sends a new request.
func (c *client) first(ctx context.Context, r request) error {
	c.sent++
	r.Request = fmt.Sprintf("%s %d", c.name, c.sent)
	if err := writeLine(c.requests, r); err != nil {
		return err
	}
	return c.send(ctx, r)
}

// send sends a request and notes the answers, also that of a repeated request. It waits for
// the outcome of work. Every request but a deletion has a message.
func (c *client) send(ctx context.Context, r request) error {
	change := &lifecycle.Change[int]{Request: lifecycle.RequestID{ID: r.Request}}
	if r.Event != "delete" {
		change.Messages = []lifecycle.Message{{Topic: "asked", Key: r.ID}}
	}
	if r.Handler == "" {
		after, err := c.m.Fire(ctx, r.ID, r.Event, user, change)
		return c.note(r.Request, &after, err)
	}
	ticket, err := c.m.Do(ctx, r.ID, r.Event, user, lifecycle.Named(r.Handler, nil), change)
	if err != nil {
		return c.note(r.Request, nil, err)
	}
	admitted := ticket.Admitted()
	if err := c.note(r.Request, &admitted, nil); err != nil {
		return err
	}
	after, err := ticket.Wait(ctx)
	if err != nil || after.ID == "" {
		return err
	}
	return c.note("", &after, nil)
}

// note writes the answer that the client has received to the file.
func (c *client) note(request string, r *lifecycle.Record[state, int], err error) error {
	if again, ok := errors.AsType[*lifecycle.RepeatedError](err); ok {
		row := again.Row
		return errors.Join(err, writeLine(c.answers, answer{request, row.ID, row.Sequence, row.Operation, state(row.To)}))
	}
	if err != nil {
		return err
	}
	return writeLine(c.answers, answer{request, r.ID, r.Sequence, r.Operation, r.State})
}

func appendTo(file string) (*os.File, error) {
	return os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
}

// writeLine writes a value as one line of JSON, in one write: a line is never incomplete.
func writeLine(w io.Writer, x any) error {
	line, err := json.Marshal(x)
	if err == nil {
		_, err = w.Write(append(line, '\n'))
	}
	return err
}

// lines reads what writeLine has written.
func lines[T any](file string) (list []T, err error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	for line := range bytes.Lines(data) {
		var x T
		if err := json.Unmarshal(line, &x); err != nil {
			return nil, fmt.Errorf("%s: %w", line, err)
		}
		list = append(list, x)
	}
	return list, err
}
