package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/interlock-go/interlock/lock"
)

// timeLine records the events of a lock tree. Its time is the number of steps of the
// story.
type timeLine struct {
	queued chan struct{} // receives a value for every request that starts to wait

	mu    sync.Mutex
	now   int
	spans []*span
}

// span is one acquisition: from its first request to its release.
type span struct {
	owner    string
	requests []lock.Request
	waits    int // when it started to wait; -1: it did not wait
	holds    int // when it was granted; -1: not yet
	ends     int // when it was released; -1: not yet
}

func newTimeLine() *timeLine { return &timeLine{queued: make(chan struct{}, 16)} }

func (l *timeLine) observer() lock.Observer {
	return lock.Observer{
		Waiting: func(_ context.Context, e lock.Waiting) {
			l.mu.Lock()
			l.spans = append(l.spans, &span{e.Owner, e.Requests, l.now, -1, -1})
			l.mu.Unlock()
			l.queued <- struct{}{}
		},
		Granted: func(_ context.Context, e lock.Granted) {
			l.mu.Lock()
			defer l.mu.Unlock()
			if s := l.open(e.Owner); s != nil {
				if s.holds < 0 {
					s.holds = l.now
				} // otherwise a restarted process took it again
				return
			}
			l.spans = append(l.spans, &span{e.Owner, e.Requests, -1, l.now, -1})
		},
		Released: func(_ context.Context, e lock.Released) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.open(e.Owner).ends = l.now
		},
	}
}

// open returns the owner's acquisition that has not ended.
func (l *timeLine) open(owner string) *span {
	for _, s := range l.spans {
		if s.owner == owner && s.ends < 0 {
			return s
		}
	}
	return nil
}

// step ends a step of the story.
func (l *timeLine) step() {
	l.mu.Lock()
	l.now++
	l.mu.Unlock()
}

// draw prints a row for each acquisition: dots while it waits, bars while it
// holds.
func (l *timeLine) draw(out io.Writer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.spans {
		var row strings.Builder
		for t := range l.now {
			switch {
			case s.holds >= 0 && t >= s.holds && t < s.ends:
				row.WriteString("█")
			case s.waits >= 0 && t >= s.waits && (s.holds < 0 || t < s.holds):
				row.WriteString("·")
			default:
				row.WriteString(" ")
			}
		}
		fmt.Fprintf(out, "%-10s %-15v |%s|\n", s.owner, s.requests[0], row.String())
	}
	fmt.Fprintf(out, "%-28s█ holds  · waits\n", "")
}

// verify returns an error if two acquisitions that conflict held at once.
func (l *timeLine) verify() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, a := range l.spans {
		for _, b := range l.spans[:i] {
			if a.holds < b.ends && b.holds < a.ends && a.requests[0].Conflicts(b.requests[0]) {
				return fmt.Errorf("%s and %s held at once", b.owner, a.owner)
			}
		}
	}
	return nil
}
