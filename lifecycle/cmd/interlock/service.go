package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/interlock-go/interlock/internal/visible"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/inspect"
	"github.com/interlock-go/interlock/lock"
)

// runTop shows the overview.
func runTop(ctx context.Context, c *call, _ []string) error {
	var doc inspect.Overview
	if err := c.get(ctx, "", nil, &doc); err != nil {
		return err
	}
	err := c.show(doc, func(p *printer) {
		p.text(visible.Escaped(doc.Title) + ", " + doc.Time.Format(time.RFC3339) + "\n\n")
		p.table(len(doc.Machines), "MACHINE, OBJECTS, STUCK, TRANSITIONAL, STATES")
		for _, m := range doc.Machines {
			if m.Problem != nil {
				p.row(m.Name, "", "", "", m.Problem.Code)
			} else {
				p.row(m.Name, count(m.Objects, m.More), count(m.Stuck, m.Stuck == lifecycle.MaxPage), count(m.Transitional, m.More), states(&m))
			}
		}
		p.table(len(doc.Owners), "OWNER, EPOCH, ALIVE, HEARTBEAT")
		for _, o := range doc.Owners {
			p.row(o.Name, o.Epoch, o.Alive, span(o.Heartbeat, doc.Time))
		}
		p.table(len(doc.Queues), "QUEUE, KEYS, RUNNING, LONGEST, WAITING, OLDEST, BLOCKED, HALTED")
		for _, q := range doc.Queues {
			p.row(q.Name, q.Keys, q.Running, span(q.RunningSince, doc.Time), q.Waiting, span(q.WaitingSince, doc.Time), q.Blocked, q.Halted)
		}
		p.table(len(doc.Locks), "LOCK, HELD, WAITING, NODES")
		for _, l := range doc.Locks {
			if l.Problem != nil {
				p.row(l.Name, "", "", l.Problem.Code)
			} else {
				p.row(l.Name, l.Held, l.Waiting, l.Nodes)
			}
		}
	})
	for _, m := range doc.Machines {
		err = orProblem(err, "machine "+m.Name, m.Problem)
	}
	return orLocks(orProblem(err, "owners", doc.OwnersProblem), doc.Locks)
}

// orLocks returns err, or else the problem of a lock tree, if one has a problem.
func orLocks(err error, locks []inspect.LockSummary) error {
	for _, l := range locks {
		err = orProblem(err, "lock "+l.Name, l.Problem)
	}
	return err
}

// orProblem returns err, or else the problem of a part of a document, if it has one.
func orProblem(err error, part string, p *lifecycle.ProblemDetails) error {
	if err != nil || p == nil {
		return err
	}
	return fmt.Errorf("%s: %w", part, &problemError{*p})
}

// count returns a number, which may be a lower bound.
func count(n int, more bool) string {
	if more {
		return fmt.Sprint(n, "+")
	}
	return fmt.Sprint(n)
}

// orNone returns a number, and an empty text for 0.
func orNone[N int | lock.Token](n N) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// states returns the states that have objects.
func states(m *inspect.MachineSummary) string {
	var list []string
	for _, s := range append(m.States, inspect.StateCount{State: "unreadable", Count: m.Unreadable}) {
		if s.Count > 0 {
			list = append(list, s.State+" "+count(s.Count, m.More))
		}
	}
	return strings.Join(list, ", ")
}

func runQueues(ctx context.Context, c *call, _ []string) error {
	var doc inspect.QueuePage
	if err := c.get(ctx, "queues", nil, &doc); err != nil {
		return err
	}
	return c.show(doc, func(p *printer) {
		for _, q := range doc.Queues {
			p.table(len(q.Classes), "QUEUE, CLASS, RUNNING, LIMIT, READY, PAUSED, MOST CLASSES BELOW")
			for _, l := range q.Classes {
				p.row(q.Name, l.Path, l.Running, orNone(l.MaxRunning), l.Ready, l.Paused, orNone(l.MaxChildren))
			}
			p.table(len(q.Lanes), "QUEUE, KEY, RUNNING, SINCE, WAITING, OLDEST, HALTED")
			for _, l := range q.Lanes {
				p.row(q.Name, l.Key, l.Running, span(l.RunningSince, doc.Time), l.Waiting, span(l.WaitingSince, doc.Time), l.Halted)
			}
			if q.Keys > len(q.Lanes) {
				p.row(q.Name, "there are more")
			}
		}
	})
}

func runLocks(ctx context.Context, c *call, _ []string) error {
	var doc inspect.LockPage
	if err := c.get(ctx, "locks", nil, &doc); err != nil {
		return err
	}
	err := c.show(doc, func(p *printer) {
		for _, l := range doc.Locks {
			p.table(len(l.Holders), "LOCK, PATH, MODE, OWNER, SINCE, WAITING, TOKEN, REASON")
			for _, h := range l.Holders {
				p.row(l.Name, h.Path, h.Mode, h.Owner, span(h.Since, doc.Time), h.Waiting, orNone(h.Token), h.Reason)
			}
			if len(l.Holders) == inspect.ShownLanes {
				p.row(l.Name, "there may be more")
			}
		}
	})
	return orLocks(err, doc.Locks)
}
