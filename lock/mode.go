package lock

import "strconv"

// Mode is how a request marks its node: one of the five modes of multiple
// granularity locking. The zero Mode is invalid, and every request refuses it.
type Mode uint8

const (
	// IS announces S somewhere below.
	IS Mode = iota + 1
	// IX announces X somewhere below.
	IX
	// S reads the node and everything below it.
	S
	// SIX reads the node and everything below it, and announces X somewhere below.
	SIX
	// X owns the node and everything below it exclusively.
	X
)

// Modes lists the modes, from the weakest to the strongest. IX and S are neither
// weaker nor stronger than each other. Do not change it.
var Modes = [...]Mode{IS, IX, S, SIX, X}

// modeSet has a bit for every mode.
type modeSet uint8

const allModes modeSet = 1<<IS | 1<<IX | 1<<S | 1<<SIX | 1<<X

func (m Mode) bit() modeSet { return 1 << m }

// perMode has a value for every mode, and the zero value for the zero Mode.
type perMode[T any] [X + 1]T

// compatible is the matrix of Gray and others, "Granularity of Locks and Degrees
// of Consistency in a Shared Data Base" (1976).
var compatible = perMode[modeSet]{
	IS:  1<<IS | 1<<IX | 1<<S | 1<<SIX,
	IX:  1<<IS | 1<<IX,
	S:   1<<IS | 1<<S,
	SIX: 1 << IS,
	X:   0,
}

var intents = perMode[Mode]{IS: IS, IX: IX, S: IS, SIX: IX, X: IX}

func (m Mode) valid() bool { return m >= IS && m <= X }

// Intent returns the mode that a request of mode m sets on every ancestor of its
// node: IS for IS and S, IX for the others. It is 0 for an invalid mode.
func (m Mode) Intent() Mode {
	if !m.valid() {
		return 0
	}
	return intents[m]
}

// Covers reports whether a lock in mode m allows everything that a lock in mode
// other allows. An invalid mode covers nothing, and nothing covers it.
func (m Mode) Covers(other Mode) bool { return m.valid() && Join(m, other) == m }

// Compatible reports whether two requests may hold the same node in these modes. An
// invalid mode is compatible with none.
func Compatible(a, b Mode) bool { return a.valid() && compatible[a]&b.bit() != 0 }

// Join returns the weakest mode that covers both. The join of S and IX is SIX. It is 0
// if a mode is invalid.
func Join(a, b Mode) Mode {
	switch {
	case !a.valid() || !b.valid():
		return 0
	case a == IX && b == S, a == S && b == IX:
		return SIX
	}
	return max(a, b)
}

var modeNames = perMode[string]{IS: "IS", IX: "IX", S: "S", SIX: "SIX", X: "X"}

// String returns the name of the mode, such as "SIX".
func (m Mode) String() string {
	if m.valid() {
		return modeNames[m]
	}
	return "Mode(" + strconv.Itoa(int(m)) + ")"
}

// ParseMode returns the mode with that name. The error is [ErrInvalid].
func ParseMode(name string) (Mode, error) {
	for _, m := range Modes {
		if modeNames[m] == name {
			return m, nil
		}
	}
	return 0, &InvalidError{What: "mode", Value: name, Reason: "is none of IS, IX, S, SIX and X"}
}

// MarshalText returns the name of the mode. The error is [ErrInvalid].
func (m Mode) MarshalText() ([]byte, error) {
	if !m.valid() {
		return nil, invalidMode(m)
	}
	return []byte(modeNames[m]), nil
}

// UnmarshalText parses the name of a mode, like [ParseMode]. After an error m is
// unchanged.
func (m *Mode) UnmarshalText(text []byte) error {
	parsed, err := ParseMode(string(text))
	if err == nil {
		*m = parsed
	}
	return err
}

func invalidMode(m Mode) error {
	return &InvalidError{What: "mode", Value: m.String(), Reason: "is none of IS, IX, S, SIX and X"}
}
