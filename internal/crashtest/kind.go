package crashtest

import (
	"errors"
	"fmt"
)

// Kind is what happens at a write.
type Kind uint8

const (
	// CrashBefore: the process ends before the write. Another one of the same
	// name starts at once.
	CrashBefore Kind = iota + 1
	// CrashAfter: the write is done, and the process ends before it gets the answer.
	// Another one of the same name starts at once.
	CrashAfter
	// DeathBefore: as CrashBefore, but no process of that name starts again. A
	// process of another name has to take over.
	DeathBefore
	// DeathAfter: as CrashAfter, but no process of that name starts again.
	DeathAfter
	// Refused: the write is not done, and the store returns [ErrInjected].
	Refused
	// LostRequest: the write is not done, and the store returns
	// [lifecycle.ErrUnknownOutcome]. Sent again, it is done and answered.
	LostRequest
	// LostAnswer: the write is done, and the store returns
	// [lifecycle.ErrUnknownOutcome]. Sent again, it is answered.
	LostAnswer
	// NoAnswer: as LostAnswer, however often it is sent again.
	NoAnswer
	// Paused: the process stalls while the write is on its way, until another
	// process has declared it dead and has taken over everything it left. Then the
	// write reaches the store, and the process continues.
	Paused
)

var kinds = [...]string{
	"", "crash before", "crash after", "death before", "death after", "error instead of", "lost request of",
	"lost answer of", "no answer ever of", "pause before",
}

// Kinds returns all kinds.
func Kinds() []Kind {
	return []Kind{CrashBefore, CrashAfter, DeathBefore, DeathAfter, Refused, LostRequest, LostAnswer, NoAnswer, Paused}
}

// String returns the kind as failures name it.
func (k Kind) String() string {
	if int(k) < len(kinds) && k > 0 {
		return kinds[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// after reports whether the write is done.
func (k Kind) after() bool {
	return k == CrashAfter || k == DeathAfter || k == LostAnswer || k == NoAnswer
}

// forGood reports whether no process of the same name starts again.
func (k Kind) forGood() bool { return k == DeathBefore || k == DeathAfter }

var (
	// ErrInjected is what a store returns where an error is injected. Nothing is
	// written then.
	ErrInjected = errors.New("crashtest: injected error")
	// ErrCrashed is the error of a request to a process that ended before it
	// answered. The outcome of the request is unknown.
	ErrCrashed = errors.New("crashtest: the process is gone")
)
