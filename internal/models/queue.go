// The order of queue.Queuer under retries: actions of one or several keys are
// submitted in any order, run, fail, wait out their back-off, are tried again, end.
// What the queue does is not described here but tried, as in LockTree: a trial is
// one queue, to which everything that has not ended is submitted in the order in
// which it once was, and failed as often as it had; then one thing happens.
//
// What is there: the order and exclusion of keys, back-offs, attempts that run out,
// actions that are cancelled whatever they are doing.
//
// What is not: limits, classes, pre-emption, lanes that are halted, bounds.

package models

import (
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/fsm/explore"
)

// Queue is the model. Its trials are run one at a time, each once.
type Queue struct {
	Keys     [][]string // by action: its keys; at most maxTasks
	Attempts uint8      // of each action
	Cancels  uint8      // in a run
	Try      func(QueueTrial) (QueueResult, error)
}

const maxTasks = 5

// QueueTrial is what is tried.
type QueueTrial struct {
	Present []QueueTask // in the order in which they were submitted
	Task    int         // to which something happens now
	Does    QueueMove
}

// QueueTask is an action that was submitted and has not ended.
type QueueTask struct {
	Task   int
	Failed uint8 // attempts
	Pauses bool  // the back-off after the last of them is not over
}

// QueueMove is what happens to an action.
type QueueMove uint8

// The moves.
const (
	QueueSubmit QueueMove = iota // of one that was not there
	QueueOK                      // it runs, and returns nil
	QueueWake                    // its back-off is over
	QueueFail                    // it runs, and returns an error
	QueueCancel                  // of one that was there
)

func (m QueueMove) String() string {
	return [...]string{"is submitted", "is done", "is tried again", "fails", "is cancelled"}[m]
}

// QueueResult says where all actions are; by action.
type QueueResult struct{ Before, After [maxTasks]TaskStatus }

// TaskStatus is what an action can be seen to do.
type TaskStatus struct {
	Runs   bool
	Failed uint8 // attempts
	Ended  bool
}

// queueState is one state of all actions.
type queueState struct {
	Tasks   [maxTasks]task
	Cancels uint8
	// Other is set if a queue that is filled anew does not run what this one ran.
	Other bool
}

// task is one action. Place is that among those who are there, from 1; an action
// that has a place and neither runs nor pauses, waits.
type task struct {
	TaskStatus
	Place uint8
}

func (t *task) pauses() bool { return t.Failed > 0 && !t.Runs && !t.Ended }

func (s queueState) String() string {
	var list []string
	for _, i := range s.present() {
		t := &s.Tasks[i]
		does := "waits"
		switch {
		case t.Runs:
			does = "runs"
		case t.pauses():
			does = "pauses"
		}
		list = append(list, fmt.Sprintf("%d %s", i, does))
	}
	if list == nil {
		return "nothing"
	}
	return strings.Join(list, ", ")
}

// present are the actions that have not ended, in the order of submission.
func (s *queueState) present() (list []int) {
	for i := range s.Tasks {
		if s.Tasks[i].Place > 0 {
			list = append(list, i)
		}
	}
	slices.SortFunc(list, func(a, b int) int { return int(s.Tasks[a].Place) - int(s.Tasks[b].Place) })
	return list
}

// Model returns the model for package check.
func (q Queue) Model() *explore.Model[queueState] {
	try := trials(q.Try)
	return &explore.Model[queueState]{
		Name: "queue", Initial: []queueState{{Cancels: q.Cancels}},
		Next: func(s queueState, step func(string, bool, queueState)) {
			if s.Other {
				return
			}
			for i := range q.Keys {
				for _, m := range s.moves(i) {
					next := s.after(i, m, try)
					step(fmt.Sprintf("%d %v", i, m), m >= QueueFail, next)
				}
			}
		},
		Always: map[string]func(queueState) error{
			"one at a time, in order": q.inOrder,
			"nobody waits for nobody": q.waitsForSomebody,
			"no attempt too many":     q.attempts,
			"only what is there and when counts": func(s queueState) error {
				if s.Other {
					return fmt.Errorf("filled anew, a queue runs something else than it had run before")
				}
				return nil
			},
		},
		Rests: func(s queueState) bool {
			return !slices.ContainsFunc(s.Tasks[:len(q.Keys)], func(t task) bool { return !t.Ended })
		},
	}
}

// moves lists what can happen to an action.
func (s *queueState) moves(i int) (list []QueueMove) {
	t := &s.Tasks[i]
	switch {
	case t.Ended:
		return nil
	case t.Place == 0:
		return []QueueMove{QueueSubmit}
	case t.Runs:
		list = []QueueMove{QueueOK, QueueFail}
	case t.pauses():
		list = []QueueMove{QueueWake}
	}
	if s.Cancels > 0 {
		list = append(list, QueueCancel)
	}
	return list
}

// after tries a move.
func (s queueState) after(i int, m QueueMove, try func(QueueTrial) QueueResult) queueState {
	present := s.present()
	trial := QueueTrial{Task: i, Does: m}
	for _, p := range present {
		t := &s.Tasks[p]
		trial.Present = append(trial.Present, QueueTask{Task: p, Failed: t.Failed, Pauses: t.pauses()})
	}
	r := try(trial)
	switch m {
	case QueueSubmit:
		present = append(present, i)
	case QueueCancel:
		s.Cancels--
	}
	for p := range s.Tasks {
		t := &s.Tasks[p]
		if t.Place > 0 && t.TaskStatus != r.Before[p] {
			s.Other = true
		}
		if t.Place > 0 || p == i {
			t.TaskStatus = r.After[p]
		}
		t.Place = 0
	}
	place := uint8(0)
	for _, p := range present {
		if t := &s.Tasks[p]; t.Ended {
			t.Failed = 0 // how it came to its end matters to nobody
		} else {
			place++
			t.Place = place
		}
	}
	return s
}

// inOrder: of two actions with a common key, the later one has not begun, and what
// has ended no longer runs.
func (q *Queue) inOrder(s queueState) error {
	for i, t := range s.Tasks {
		if t.Ended && t.Runs {
			return fmt.Errorf("%d has ended, and runs", i)
		}
	}
	present := s.present()
	for i, b := range present {
		if t := &s.Tasks[b]; !t.Runs && !t.pauses() {
			continue
		}
		for _, a := range present[:i] {
			if q.meet(a, b) {
				return fmt.Errorf("%d has begun, and %d came before it", b, a)
			}
		}
	}
	return nil
}

func (q *Queue) waitsForSomebody(s queueState) error {
	present := s.present()
	for i, b := range present {
		if t := &s.Tasks[b]; t.Runs || t.pauses() {
			continue
		}
		if !slices.ContainsFunc(present[:i], func(a int) bool { return q.meet(a, b) }) {
			return fmt.Errorf("%d waits, and nothing is in the way", b)
		}
	}
	return nil
}

func (q *Queue) attempts(s queueState) error {
	for i, t := range s.Tasks {
		if t.Failed >= q.Attempts && !t.Ended {
			return fmt.Errorf("%d has failed %d times, and goes on", i, t.Failed)
		}
	}
	return nil
}

// meet reports whether two actions have a key in common.
func (q *Queue) meet(a, b int) bool {
	return slices.ContainsFunc(q.Keys[a], func(key string) bool { return slices.Contains(q.Keys[b], key) })
}
