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

// asChild is the variable of the environment that makes the test binary a
// process of the service: its orders, as JSON.
const asChild = "INTERLOCK_CRASH_CHILD"

// orders are what a child is to do.
type orders struct {
	Engine  string // by name
	DSN     string
	Name    string // among the owners
	Outside string // directory
	Told    string // file: what clients were told
	Seed    uint64
	Objects int
	At      int64  // the commit at which it ends itself; 0: it waits to be ended
	When    string // before, after, or on the way
}

// ready is what a child says when it works.
const ready = "ready"

// child is a process of the service, until it is killed, finds that it was
// declared dead, or loses its parent.
func child(text string) error {
	var o orders
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	e := engines[slices.IndexFunc(engines, func(e engine) bool { return e.name == o.Engine })]
	db, err := e.pool(o.DSN)
	if err != nil {
		return err
	}
	ctx := context.Background()
	inner, err := sqlstore.Open(ctx, db, e.dialect, nil)
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
	m := lifecycle.New(disk, store, c)
	if _, err := m.Recover(ctx); err != nil {
		return err
	}
	told, err := os.OpenFile(o.Told, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	ended := make(chan error, 2)
	go func() { ended <- owner.Run(ctx) }()
	go func() { ended <- m.Run(ctx, ttl/5, nil) }()
	for i := range uint64(4) {
		cl := &client{m: m, dice: rand.New(rand.NewPCG(o.Seed, i)), objects: o.Objects, told: told}
		go cl.run(ctx)
	}
	fmt.Println(ready)
	go func() {
		_, _ = io.Copy(io.Discard, bufio.NewReader(os.Stdin)) // until nobody is at the other end
		os.Exit(0)
	}()
	if err := <-ended; !errors.Is(err, lifecycle.ErrStale) {
		return err
	}
	return nil // too slow a heart: the next one comes
}

// mortal is a store at one of whose commits the process ends.
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
	case "on the way":
		go func() {
			time.Sleep(rand.N(2 * time.Millisecond))
			die()
		}()
	}
	_ = s.Store.Commit(ctx, c)
	die() // whatever it was
	return nil
}

// die ends the process as kill -9 does.
func die() {
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		_ = p.Kill()
	}
	select {}
}

// client asks for one thing after the other.
type client struct {
	m       disks
	dice    *rand.Rand
	objects int
	told    io.Writer
}

func (c *client) run(ctx context.Context) {
	for {
		id := fmt.Sprintf("d%d", c.dice.IntN(c.objects))
		if err := c.ask(ctx, id); err == nil {
			continue
		}
		time.Sleep(time.Millisecond) // refused: somebody else is at it
	}
}

// ask asks for something that the disk's state allows, mostly. Every request but
// a deletion tells a message.
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
	steps := []lifecycle.Step[event]{{Event: "copy", Work: work}}
	switch at {
	case "none":
		steps[0].Event = "make"
	case "broken":
		if steps[0].Event = pick("delete", "attach"); steps[0].Event == "delete" {
			change = nil
		}
	case "free":
		switch steps[0].Event = pick("delete", "attach", "attach", "grow", "grow"); steps[0].Event {
		case "delete":
			change = nil
		case "grow":
			steps[0].Work = lifecycle.Named("grow", nil)
		}
	case "used":
		switch steps[0].Event = pick("copy", "detach", "grow"); steps[0].Event {
		case "grow":
			steps[0].Work = lifecycle.Named("grow", nil)
		case "detach":
			steps = append(steps, lifecycle.Step[event]{Event: "delete", Work: lifecycle.Named("work", nil)})
		}
	case "growing":
		if c.dice.IntN(20) == 0 {
			steps[0].Event, change = "delete", nil
		}
	}
	if steps[0].Event == "attach" {
		after, err := c.m.Fire(ctx, id, "attach", user, change)
		return c.tell(&after, err)
	}
	h, err := c.m.DoSteps(ctx, id, user, steps, change)
	if err != nil {
		return err
	}
	admitted := h.Admitted()
	if err := c.tell(&admitted, nil); err != nil {
		return err
	}
	after, err := h.Wait(ctx)
	if err != nil || after.ID == "" {
		return err
	}
	return c.tell(&after, nil)
}

// tell notes what the client was told, in one write.
func (c *client) tell(r *lifecycle.Record[state, int], err error) error {
	if err != nil {
		return err
	}
	line, err := json.Marshal(answer{r.ID, r.Sequence, r.Operation, r.State})
	if err == nil {
		_, err = c.told.Write(append(line, '\n'))
	}
	return err
}
