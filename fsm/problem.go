package fsm

// Problem is one fault of a table. Code is stable and meant for programs, Text for
// readers.
type Problem struct {
	Code   string
	Demand bool   // the table is sound, but [New] and [Bind] refuse it
	Row    int    // index of the row, -1 for none
	State  string // name of the state, empty for none
	Text   string // one line that names the row or state
}

// String returns Text.
func (p Problem) String() string { return p.Text }

// The codes of problems.
const (
	NoName             = "no-name"              // a machine, state, event or actor has no name
	BadName            = "bad-name"             // a name is not UTF-8, has a control character, or exceeds [MaxName]
	DuplicateName      = "duplicate-name"       // two states, events or actors have the same name
	TooLarge           = "too-large"            // the table exceeds one of its limits
	NoInitial          = "no-initial"           // the initial state is not declared, or not among the entry states
	UnknownState       = "unknown-state"        // a row names a state that is not declared
	UnknownActor       = "unknown-actor"        // a row names an actor that is not declared
	NoActor            = "no-actor"             // the table has rows and no actor
	NoSource           = "no-source"            // a row has no source
	BadRow             = "bad-row"              // fields of a row contradict each other
	BadState           = "bad-state"            // a state has an unknown kind
	BadGuard           = "bad-guard"            // a guard has no name or function, has another payload type, or is not bound
	DuplicateRow       = "duplicate-row"        // two rows are equal
	AmbiguousRow       = "ambiguous-row"        // a row is never tried, because an earlier one comes first
	Unreachable        = "unreachable"          // no object can reach the state
	DeadEnd            = "dead-end"             // no row leads out of a state that is neither Final nor Absent
	FinalExit          = "final-exit"           // a row that is not forced leaves a Final state
	NoOrigin           = "no-origin"            // a return row for objects that may have no origin
	NeverFits          = "never-fits"           // no object can meet the origin condition of a row
	NoDeadline         = "no-deadline"          // a transitional state has neither a timeout nor Manual
	NeedlessManual     = "needless-manual"      // a state has Manual, and a timeout or is not transitional
	DeadlineFromAbsent = "deadline-from-absent" // a row with a timeout leaves an Absent state
	EndlessTimeout     = "endless-timeout"      // a timeout leads a transitional state back to itself in the same operation
)

// MaxName is the longest name of a state, event, actor, guard or machine, in
// bytes.
const MaxName = 256
