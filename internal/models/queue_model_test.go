// The order of queue.Queuer under retries: actions of one or several keys are submitted in
// any order, run, fail, wait for their back-off, run again, and end. The model does not
// describe the queue but runs it, as LockTree does: a trial is one queue that gets all
// actions that have not ended, in order and with their failed attempts, and then one move.
//
// The model contains the order and exclusion of keys, back-offs, the last attempt, and
// cancellation in every phase.
//
// The model omits limits, classes, pre-emption, halted lanes and bounds.

package models

import (
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/fsm/explore"
)

// Queue is the model. It runs its trials one at a time, each once.
type Queue struct {
	Keys     [][]string // keys by action; at most maxTasks
	Attempts uint8      // of each action
	Cancels  uint8      // in a run
	Try      func(QueueTrial) (QueueResult, error)
}

const maxTasks = 5

// QueueTrial is one trial.
type QueueTrial struct {
	Present []QueueTask // in the order of submission
	Task    int         // the action of the move
	Does    QueueMove
}

// QueueTask is a submitted action that has not ended.
type QueueTask struct {
	Task   int
	Failed uint8 // attempts
	Pauses bool  // its back-off has not passed
}

// QueueMove is a move of an action.
type QueueMove uint8

// The moves.
const (
	QueueSubmit QueueMove = iota // of a new action
	QueueOK                      // it runs, and returns nil
	QueueWake                    // its back-off passes
	QueueFail                    // it runs, and returns an error
	QueueCancel                  // of a submitted action
)

func (m QueueMove) String() string {
	return [...]string{"is submitted", "is done", "is tried again", "fails", "is cancelled"}[m]
}

// QueueResult contains the status of every action.
type QueueResult struct{ Before, After [maxTasks]TaskStatus }

// TaskStatus is the visible status of an action.
type TaskStatus struct {
	Runs   bool
	Failed uint8 // attempts
	Ended  bool
}

// queueState is one state of all actions.
type queueState struct {
	Tasks   [maxTasks]task
	Cancels uint8
	// Other is set if another queue with the same actions runs other ones.
	Other bool
}

// task is one action. Place is its place among the submitted actions, from 1. An action
// with a place that neither runs nor pauses, waits.
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

// present returns the actions that have not ended, in the order of submission.
func (s *queueState) present() []int {
	return placed(s.Tasks[:], func(t task) uint8 { return t.Place })
}

// Model returns the model.
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
			"every wait has a cause":  q.waitsForCause,
			"no attempt too many":     q.attempts,
			"runs follow from the submissions": never(func(s queueState) bool { return s.Other },
				"another queue with the same actions runs other ones"),
		},
		LeadsTo: map[string]explore.LeadsTo[queueState]{
			"every action ends": {To: func(s queueState) bool { return len(s.present()) == 0 }},
		},
		Fair: func(label string) bool { return !strings.HasSuffix(label, QueueSubmit.String()) },
		Rests: func(s queueState) bool {
			return !slices.ContainsFunc(s.Tasks[:len(q.Keys)], func(t task) bool { return !t.Ended })
		},
	}
}

// moves returns the moves of an action.
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

// after runs the trial of a move.
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
			t.Failed = 0 // the number has no meaning after the end
		} else {
			place++
			t.Place = place
		}
	}
	return s
}

// inOrder: of two actions with a common key, the later one has not started. An action
// that has ended does not run.
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
				return fmt.Errorf("%d has started, and %d came before it", b, a)
			}
		}
	}
	return nil
}

func (q *Queue) waitsForCause(s queueState) error {
	present := s.present()
	for i, b := range present {
		if t := &s.Tasks[b]; t.Runs || t.pauses() {
			continue
		}
		if !slices.ContainsFunc(present[:i], func(a int) bool { return q.meet(a, b) }) {
			return fmt.Errorf("%d waits without a cause", b)
		}
	}
	return nil
}

func (q *Queue) attempts(s queueState) error {
	for i, t := range s.Tasks {
		if t.Failed >= q.Attempts && !t.Ended {
			return fmt.Errorf("%d has failed %d times, and continues", i, t.Failed)
		}
	}
	return nil
}

// meet reports whether two actions have a key in common.
func (q *Queue) meet(a, b int) bool {
	return slices.ContainsFunc(q.Keys[a], func(key string) bool { return slices.Contains(q.Keys[b], key) })
}
