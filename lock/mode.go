package lock

import "strconv"

// Mode is how a request marks its node: the five modes of multiple granularity
// locking. The zero Mode is none of them and is refused.
type Mode uint8

const (
	// IS announces S somewhere below.
	IS Mode = iota + 1
	// IX announces X somewhere below.
	IX
	// S reads the node and everything below it.
	S
	// SIX reads all of it and announces X somewhere below.
	SIX
	// X owns the node and everything below it alone.
	X
)

// Modes holds the modes, from the weakest to the strongest. IX and S are
// neither weaker nor stronger than each other.
var Modes = [...]Mode{IS, IX, S, SIX, X}

// modeSet has a bit for every mode.
type modeSet uint8

func (m Mode) bit() modeSet { return 1 << m }

// intents is the set of the intentions of the modes in the set.
func (s modeSet) intents() (intents modeSet) {
	if s&(1<<IS|1<<S) != 0 {
		intents = 1 << IS
	}
	if s&^(1<<IS|1<<S) != 0 {
		intents |= 1 << IX
	}
	return intents
}

// Eight places for five modes, so that m&7 needs no check of bounds. The place
// of no mode says that it conflicts with nothing.
type perMode[T any] [8]T

// compatible is the matrix of Gray and others, "Granularity of Locks and Degrees
// of Consistency in a Shared Data Base" (1976).
var compatible = perMode[modeSet]{
	IS:  1<<IS | 1<<IX | 1<<S | 1<<SIX,
	IX:  1<<IS | 1<<IX,
	S:   1<<IS | 1<<S,
	SIX: 1 << IS,
	X:   0,
}

const allModes modeSet = 1<<IS | 1<<IX | 1<<S | 1<<SIX | 1<<X

var conflicting = perMode[modeSet]{
	IS:  allModes &^ (1<<IS | 1<<IX | 1<<S | 1<<SIX),
	IX:  allModes &^ (1<<IS | 1<<IX),
	S:   allModes &^ (1<<IS | 1<<S),
	SIX: allModes &^ (1 << IS),
	X:   allModes,
}

var intents = perMode[Mode]{IS: IS, IX: IX, S: IS, SIX: IX, X: IX}

// Valid reports whether m is one of the five.
func (m Mode) Valid() bool { return m >= IS && m <= X }

// Intent returns the mode that a request of mode m sets on every ancestor of
// its node: IS for IS and S, IX for the others.
func (m Mode) Intent() Mode { return intents[m&7] }

// Covers reports whether a lock in mode m allows all that one in mode other
// does.
func (m Mode) Covers(other Mode) bool { return Join(m, other) == m }

// Compatible reports whether two requests may hold the same node in these
// modes.
func Compatible(a, b Mode) bool { return compatible[a&7]&b.bit() != 0 }

// Join returns the weakest mode that covers both. Of S and IX that is SIX.
func Join(a, b Mode) Mode {
	if a|b == IX|S && a != b && a+b == IX+S {
		return SIX
	}
	return max(a, b)
}

var modeNames = perMode[string]{IS: "IS", IX: "IX", S: "S", SIX: "SIX", X: "X"}

// String returns the name of the mode as it is written in papers.
func (m Mode) String() string {
	if m.Valid() {
		return modeNames[m]
	}
	return "Mode(" + strconv.Itoa(int(m)) + ")"
}

// ParseMode returns the mode of that name. The error is [ErrInvalid].
func ParseMode(name string) (Mode, error) {
	for _, m := range Modes {
		if modeNames[m] == name {
			return m, nil
		}
	}
	return 0, &InvalidError{What: "mode", Value: name, Reason: "is none of IS, IX, S, SIX and X"}
}

// MarshalText returns the name. The error is [ErrInvalid].
func (m Mode) MarshalText() ([]byte, error) {
	if !m.Valid() {
		return nil, invalidMode(m)
	}
	return []byte(modeNames[m]), nil
}

// UnmarshalText is [ParseMode].
func (m *Mode) UnmarshalText(text []byte) (err error) {
	parsed, err := ParseMode(string(text))
	if err == nil {
		*m = parsed
	}
	return err
}

func invalidMode(m Mode) error {
	return &InvalidError{What: "mode", Value: m.String(), Reason: "is none of IS, IX, S, SIX and X"}
}
