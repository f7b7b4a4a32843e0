package pgqueue

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/interlock-go/interlock/queue"
)

// Action is a unit of work as data. Keys and Name are required. It is a plain value.
type Action struct {
	// Keys are the objects that the action works on: one or several, in any order. A key
	// that is there twice counts once. Each key has at most 1,024 bytes, and so has Class.
	// Keys, Name and Class are UTF-8 without NUL.
	Keys []string
	// Name is that of a [Handler].
	Name string
	// Args are for the handler. Keep what is larger than a few kilobytes in a table: each
	// claim of the action transfers them.
	Args []byte
	// Class is the path of the class whose limits apply, such as "aws/seoul". No part of it
	// is "*". Empty: the root. See [Config].Classes.
	Class string
	// Delay is the time from the call of Enqueue until the action enters its lanes, at
	// their ends. Until then it holds up no other action. 0: no delay.
	Delay time.Duration
	// Timeout limits one attempt. 0: no limit. The worker waits for a handler that
	// ignores its context, and keeps its lease.
	Timeout time.Duration
	// Retries repeats a failed attempt. The zero value means one attempt.
	Retries Retries
}

// Retries repeats an action that fails. An attempt fails if the handler returns an error. Its
// context ends after Timeout, and an attempt that returns nil after that has succeeded. A
// panic, and an error that [Handler].RetryIf refuses, are not repeated. Between two attempts
// the action keeps its places, so later actions of its keys do not overtake it, and gives back
// its share of the limits.
//
// An attempt that ends with its worker, because the process died, lost its lease or stopped,
// counts. So does a claim whose answer was lost. Retries is a plain value.
type Retries struct {
	// Attempts is the maximum number of attempts, in all processes together. 0: one
	// attempt, and one more each time that an attempt ends with its worker. 1: one
	// attempt; if it ends with its worker, the action ends as [queue.Failed] with
	// [ErrInterrupted].
	Attempts int
	// Delay is the pause after the first attempt. It doubles with each attempt, up to
	// MaxDelay, and is up to a quarter shorter at random, as by [queue.Exponential]. 0:
	// one second.
	Delay time.Duration
	// MaxDelay is the longest pause. 0: one minute. Less than Delay: Delay.
	MaxDelay time.Duration
}

// pause returns the pause after an attempt.
func (r Retries) pause(attempt int) time.Duration {
	return queue.Exponential(cmp.Or(r.Delay, time.Second), cmp.Or(r.MaxDelay, time.Minute))(attempt, nil)
}

// Enqueue adds an action to the lanes of its keys when, and only if, the transaction
// commits, and returns its id. Change the object's state in the same transaction, and before
// the Enqueue: a transaction that locks an object's row after its lanes may deadlock with
// one that ends an action.
//
// From the Enqueue to the end of the transaction the lanes are locked. Other transactions
// that enqueue to them wait, and so does the end of an action of the same keys. A transaction
// that calls Enqueue several times calls it in the order of the keys, or is prepared to be
// rolled back by a deadlock. Above READ COMMITTED it may be rolled back by a serialization
// failure.
//
// Errors: [*queue.InvalidError], and nothing has changed; the driver's errors, after which
// the transaction has to be rolled back. With a *sql.DB an error leaves open whether the
// action was added.
func Enqueue(ctx context.Context, tx Tx, a *Action) (id int64, err error) {
	if err := a.check(); err != nil {
		return 0, err
	}
	// Sorted, because this is the order in which the lanes are locked.
	keys := slices.Compact(slices.Sorted(slices.Values(a.Keys)))
	err = queryRow(ctx, tx, enqueue, []any{
		keys, a.Name, append([]byte{}, a.Args...), a.Class, a.Timeout.Nanoseconds(),
		a.Retries.Attempts, a.Retries.Delay.Nanoseconds(), a.Retries.MaxDelay.Nanoseconds(), a.Delay.Microseconds(),
	}, &id)
	return id, err
}

// Cancel removes an action that does not run, when the transaction commits. It locks the
// lanes as [Enqueue] does. It returns false, and nothing has changed, if the action runs,
// also if its lease is over, or is gone. Settle is not called.
func Cancel(ctx context.Context, tx Tx, id int64) (removed bool, err error) {
	if err := queryRow(ctx, tx, leave, []any{id, 0}, &removed); err != nil || !removed {
		return false, err
	}
	return true, queryRow(ctx, tx, notify, nil, new(string)) // for the next actions of its keys
}

// maxKey limits a key and a class in bytes. PostgreSQL indexes no more than 2,704. An index would
// refuse the key of a delayed action only when its delay is over. Each claim with limits reads all
// paths above the classes of running actions: those of 20,000 parts took longer than a minute.
const maxKey = 1024

const notText = "not UTF-8 without NUL"

// isText reports whether PostgreSQL can keep a text.
func isText(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

func (a *Action) check() error {
	switch {
	case a == nil:
		return &queue.InvalidError{Field: "Action", Problem: "nil"}
	case len(a.Keys) == 0:
		return &queue.InvalidError{Field: "Keys", Problem: "none"}
	case slices.ContainsFunc(a.Keys, func(key string) bool { return len(key) > maxKey }):
		return &queue.InvalidError{Field: "Keys", Problem: "a key of more than 1,024 bytes"}
	case len(a.Class) > maxKey:
		return &queue.InvalidError{Field: "Class", Problem: "more than 1,024 bytes"}
	case !isText(strings.Join(a.Keys, "/")):
		return &queue.InvalidError{Field: "Keys", Problem: notText}
	case !isText(a.Name):
		return &queue.InvalidError{Field: "Name", Problem: notText}
	case !isText(a.Class):
		return &queue.InvalidError{Field: "Class", Problem: notText}
	case a.Name == "":
		return &queue.InvalidError{Field: "Name", Problem: "empty"}
	case a.Delay < 0:
		return &queue.InvalidError{Field: "Delay", Problem: "negative"}
	case a.Timeout < 0:
		return &queue.InvalidError{Field: "Timeout", Problem: "negative"}
	case a.Retries.Attempts < 0 || a.Retries.Delay < 0 || a.Retries.MaxDelay < 0:
		return &queue.InvalidError{Field: "Retries", Problem: "a negative number"}
	case a.Class != "" && strings.Contains("/"+a.Class+"/", "//"), strings.Contains("/"+a.Class+"/", "/*/"):
		return &queue.InvalidError{Field: "Class", Problem: "an empty part, or a part *, in path " + a.Class}
	}
	return nil
}
