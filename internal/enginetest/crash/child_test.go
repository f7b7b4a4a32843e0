//go:build unix

package crash

import (
	"bufio"
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

// asChild is the environment variable that makes the test binary a process of the
// service. It holds the orders as JSON.
const asChild = "INTERLOCK_CRASH_CHILD"

// orders are what a child is to do.
type orders struct {
	Engine   string // by name
	Existing bool   // the disks are in a table of the user's
	DSN      string
	Name     string // of the owner
	Outside  string // directory
	Answers  string // file: the answers that clients have received
	Seed     uint64
	Objects  int
	At       int64  // the commit at which the child kills itself; 0: the parent kills it
	When     string // before, during or after that commit
}

// ready is the line that a child prints when its clients run.
const ready = "ready"

// child runs a process of the service until it is killed, finds that it was
// declared dead, or loses its parent.
func child(text string) error {
	var o orders
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
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
	answers, err := os.OpenFile(o.Answers, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	ended := make(chan error, 2)
	go func() { ended <- owner.Run(ctx) }()
	go func() { ended <- lifecycle.Run(ctx, ttl/5, nil, m) }()
	for i := range uint64(4) {
		cl := &client{m: m, dice: rand.New(rand.NewPCG(o.Seed, i)), objects: o.Objects, answers: answers}
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

// client sends one request after the other.
type client struct {
	m       disks
	dice    *rand.Rand
	objects int
	answers io.Writer
}

func (c *client) run(ctx context.Context) {
	for {
		id := fmt.Sprintf("d%d", c.dice.IntN(c.objects))
		if err := c.ask(ctx, id); err == nil {
			continue
		}
		time.Sleep(time.Millisecond) // refused, as a rule because another client uses the disk
	}
}

// ask requests something that the disk's state mostly permits. Every request but
// a deletion has a message.
func (c *client) ask(ctx context.Context, id string) error {
	at := state("none")
	rec, err := c.m.Get(ctx, id)
	if err == nil {
		at = rec.State
	} else if !errors.Is(err, lifecycle.ErrNotFound) {
		return err
	}
	change := &lifecycle.Change[int]{Messages: []lifecycle.Message{{Topic: "asked", Key: id}}}
	work := lifecycle.Named([]string{"work", "slow", "slow", "fail"}[c.dice.IntN(4)], nil)
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
		after, err := c.m.Fire(ctx, id, e, user, change)
		return c.note(&after, err)
	case "grow":
		work = lifecycle.Named("grow", nil)
	case "delete":
		change = nil
	}
	if err := c.do(ctx, id, e, work, change); err != nil || e != "detach" {
		return err
	}
	return c.do(ctx, id, "delete", lifecycle.Named("work", nil), nil)
}

// do requests an operation and waits for its outcome.
func (c *client) do(ctx context.Context, id string, e event, work lifecycle.Work, change *lifecycle.Change[int]) error {
	h, err := c.m.Do(ctx, id, e, user, work, change)
	if err != nil {
		return err
	}
	admitted := h.Admitted()
	if err := c.note(&admitted, nil); err != nil {
		return err
	}
	after, err := h.Wait(ctx)
	if err != nil || after.ID == "" {
		return err
	}
	return c.note(&after, nil)
}

// note writes the answer that the client has received to the file, in one write.
func (c *client) note(r *lifecycle.Record[state, int], err error) error {
	if err != nil {
		return err
	}
	line, err := json.Marshal(answer{r.ID, r.Sequence, r.Operation, r.State})
	if err == nil {
		_, err = c.answers.Write(append(line, '\n'))
	}
	return err
}
