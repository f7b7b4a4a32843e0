package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/interlock-go/interlock/queue"
)

// timeLine records what a queue tells its observer. Its time is the number of
// steps that the story has taken.
type timeLine struct {
	told chan string // what happened, as "started detach"

	mu    sync.Mutex
	now   int
	spans []*span // in order of acceptance
	seen  map[string]bool
}

// span is one action, from acceptance to its end.
type span struct {
	name                   string
	keys                   []string
	accepted, starts, ends int // steps; -1: not yet
}

func newTimeLine() *timeLine {
	return &timeLine{told: make(chan string, 64), seen: map[string]bool{}}
}

func (l *timeLine) accepted(_ context.Context, e queue.Accepted[string]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spans = append(l.spans, &span{e.Name, e.Keys, l.now, -1, -1})
}

func (l *timeLine) started(_ context.Context, e queue.Started[string]) {
	l.mu.Lock()
	l.span(e.Name).starts = l.now
	l.mu.Unlock()
	l.told <- "started " + e.Name
}

func (l *timeLine) finished(_ context.Context, e queue.Finished[string]) {
	l.mu.Lock()
	l.span(e.Name).ends = l.now
	l.mu.Unlock()
	l.told <- "finished " + e.Name
}

func (l *timeLine) span(name string) *span {
	return l.spans[slices.IndexFunc(l.spans, func(s *span) bool { return s.name == name })]
}

// step begins a step of the story.
func (l *timeLine) step() {
	l.mu.Lock()
	l.now++
	l.mu.Unlock()
}

// await returns when it has been told of all these actions.
func (l *timeLine) await(ctx context.Context, what string, names ...string) error {
	for _, name := range names {
		for !l.seen[what+" "+name] {
			select {
			case told := <-l.told:
				l.seen[told] = true
			case <-ctx.Done():
				return fmt.Errorf("%s never %s: %w", name, what, context.Cause(ctx))
			}
		}
	}
	return nil
}

// draw prints a row for each action: dots while it waits, bars while it runs.
func (l *timeLine) draw(out io.Writer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.spans {
		var row strings.Builder
		for t := range l.now {
			switch {
			case t >= s.starts && t < s.ends:
				row.WriteString("█")
			case t >= s.accepted && t < s.starts:
				row.WriteString("·")
			default:
				row.WriteString(" ")
			}
		}
		fmt.Fprintf(out, "%-12s %-12s |%s|\n", s.name, strings.Join(s.keys, " "), row.String())
	}
	fmt.Fprintf(out, "%-27s█ runs  · waits\n", "")
}

// verify returns an error if two actions ran at one object at once, or if one
// has not ended.
func (l *timeLine) verify() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, a := range l.spans {
		if a.ends < 0 {
			return fmt.Errorf("%s has not ended", a.name)
		}
		for _, b := range l.spans[:i] {
			shared := slices.ContainsFunc(a.keys, func(k string) bool { return slices.Contains(b.keys, k) })
			if shared && a.starts < b.ends && b.starts < a.ends {
				return fmt.Errorf("%s and %s were at one object at once", b.name, a.name)
			}
		}
	}
	return nil
}
