package crashtest

import "errors"

// Kind is what happens at a write. Its text is the name in failures.
type Kind string

const (
	// CrashBefore: the process ends before the write. Another process of the same
	// name starts at once.
	CrashBefore Kind = "crash before"
	// CrashAfter: the write is done, and the process ends before it gets the answer.
	// Another process of the same name starts at once.
	CrashAfter Kind = "crash after"
	// DeathBefore: as CrashBefore, but no process of that name starts again. A
	// process of another name has to take over.
	DeathBefore Kind = "death before"
	// DeathAfter: as CrashAfter, but no process of that name starts again.
	DeathAfter Kind = "death after"
	// Refused: the write is not done, and the store returns errInjected.
	Refused Kind = "error instead of"
	// LostRequest: the write is not done, and the store returns
	// [lifecycle.ErrUnknownOutcome]. Sent again, it is done and answered.
	LostRequest Kind = "lost request of"
	// LostAnswer: the write is done, and the store returns
	// [lifecycle.ErrUnknownOutcome]. Sent again, it is answered.
	LostAnswer Kind = "lost answer of"
	// NoAnswer: as LostAnswer, however often it is sent again.
	NoAnswer Kind = "no answer ever of"
	// Paused: the process stalls while the write is on its way, until another
	// process has declared it dead and has taken over all its operations. Then the
	// write reaches the store, and the process continues.
	Paused Kind = "pause before"
)

// Kinds returns all kinds.
func Kinds() []Kind {
	return []Kind{CrashBefore, CrashAfter, DeathBefore, DeathAfter, Refused, LostRequest, LostAnswer, NoAnswer, Paused}
}

var (
	// errInjected is what a store returns where an error is injected. Nothing is
	// written then.
	errInjected = errors.New("crashtest: injected error")
	// errCrashed is the error of a request to a process that ended before it
	// answered. The outcome of the request is unknown.
	errCrashed = errors.New("crashtest: the process is gone")
)
