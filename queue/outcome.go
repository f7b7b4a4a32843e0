package queue

// Outcome is how an action ended. An accepted action gets exactly one.
type Outcome uint8

const (
	Pending    Outcome = iota // it has not ended
	OK                        // it returned nil
	Failed                    // it returned an error, or the one it was to come after failed
	Panicked                  // it panicked or called runtime.Goexit
	TimedOut                  // an attempt took longer than Timeout
	Canceled                  // by Cancel, or because Config.Base ended
	Superseded                // a pre-empting action came while it waited
	Preempted                 // a pre-empting action came while it ran
	Aborted                   // by Abort
	Expired                   // it waited longer than QueueTimeout
	Skipped                   // its guard refused, or by Skip
	Abandoned                 // by Abandon: it may still be running
)

var outcomes = [...]string{
	"pending", "ok", "error", "panic", "timeout", "canceled", "superseded",
	"preempted", "aborted", "expired", "skipped", "abandoned",
}

// String gives the outcome in one word.
func (o Outcome) String() string { return name(outcomes[:], o) }

// failure reports whether the outcome halts a lane that halts on failure.
func (o Outcome) failure() bool { return o == Failed || o == Panicked || o == TimedOut }

// State is where an action is.
type State uint8

const (
	Admitting State = iota // its place is reserved, Admit is being asked
	Waiting                // for its turn
	Running                // under way
	Retrying               // between two attempts
	Ending                 // its outcome is decided, Settle and observers are being told
	Ended
)

var states = [...]string{"admitting", "waiting", "running", "retrying", "ending", "ended"}

// String gives the state in one word.
func (s State) String() string { return name(states[:], s) }

func name[N ~uint8](names []string, n N) string {
	if int(n) < len(names) {
		return names[n]
	}
	return "invalid"
}

// Cancellation is what a call of [Ticket.Cancel] did.
type Cancellation uint8

const (
	Withdrawn Cancellation = iota + 1 // it waited and has ended as Canceled
	Signalled                         // it runs and its context has ended
	Late                              // its outcome was decided before
)

var cancellations = [...]string{"invalid", "withdrawn", "signalled", "late"}

// String gives the answer in one word.
func (c Cancellation) String() string { return name(cancellations[:], c) }
