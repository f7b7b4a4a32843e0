package queue

// Outcome is how an action ended. An accepted action gets exactly one.
type Outcome uint8

const (
	Pending    Outcome = iota // it has not ended
	OK                        // it returned nil
	Failed                    // it returned an error
	Panicked                  // it panicked or called runtime.Goexit
	TimedOut                  // an attempt exceeded Timeout
	Canceled                  // by Cancel, or because Config.Base ended
	Superseded                // a pre-empting action came while it waited
	Preempted                 // a pre-empting action came while it ran
	Aborted                   // by Abort
	Expired                   // it waited longer than QueueTimeout
	Skipped                   // its guard refused
	Abandoned                 // by Abandon: its goroutine may still run
)

var outcomes = [...]string{
	"pending", "ok", "error", "panic", "timeout", "canceled", "superseded",
	"preempted", "aborted", "expired", "skipped", "abandoned",
}

// String returns the outcome as one word.
func (o Outcome) String() string { return name(outcomes[:], o) }

// failure reports whether the outcome halts lanes under Config.HaltOnFailure.
func (o Outcome) failure() bool { return o == Failed || o == Panicked || o == TimedOut }

// ActionState is the present state of an action.
type ActionState uint8

const (
	Admitting ActionState = iota // its place is reserved; Admit or Observer.Accepted runs
	Delayed                      // it enters its lanes when its Delay is over
	Waiting                      // for its turn
	Running
	Retrying // in the back-off between two attempts
	Ending   // its outcome is decided; Settle and the observer run
	Ended
)

var states = [...]string{"admitting", "delayed", "waiting", "running", "retrying", "ending", "ended"}

// String returns the state as one word.
func (s ActionState) String() string { return name(states[:], s) }

// Cancellation is the effect of a call of [Ticket.Cancel].
type Cancellation uint8

const (
	Withdrawn Cancellation = iota + 1 // it waited and has ended as Canceled
	Signalled                         // it runs and its context has ended
	Late                              // its outcome was decided before
)

var cancellations = [...]string{"invalid", "withdrawn", "signalled", "late"}

// String returns the effect as one word.
func (c Cancellation) String() string { return name(cancellations[:], c) }

func name[N ~uint8](names []string, n N) string {
	if int(n) < len(names) {
		return names[n]
	}
	return "invalid"
}
