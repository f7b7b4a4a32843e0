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
	// CrashAfter: the write is done, and the process ends before it learns that.
	// Another one of the same name starts at once.
	CrashAfter
	// DeathBefore: as CrashBefore, but nobody of that name comes back. A process
	// of another name has to find out.
	DeathBefore
	// DeathAfter: as CrashAfter, but nobody of that name comes back.
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
	// Paused: the process stands still with the write on its way, until another
	// one has declared it dead and looked after all it has left; then the write
	// reaches the store, and the process goes on as if nothing had been.
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

// unnoticed reports whether it is nothing to anybody who asks again, as managers
// do.
func (k Kind) unnoticed() bool { return k == LostRequest || k == LostAnswer }

// forGood reports whether nobody of the same name comes back.
func (k Kind) forGood() bool { return k == DeathBefore || k == DeathAfter }

var (
	// ErrInjected is what a store returns where an error is injected. Nothing is
	// written then.
	ErrInjected = errors.New("crashtest: injected error")
	// ErrCrashed is what a client gets of a process that ended before it
	// answered. What became of the request, nobody has said.
	ErrCrashed = errors.New("crashtest: the process is gone")
)
