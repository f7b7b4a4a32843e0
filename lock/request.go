package lock

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Request is what is asked for: the node of Path in mode Mode, and the mode's
// intention on every ancestor. Two requests conflict if some node is marked by
// both in modes that are not compatible.
type Request struct {
	Path Path `json:"path"`
	Mode Mode `json:"mode"`
}

func (r Request) String() string { return r.Mode.String() + " at " + shown(r.Path.String()) }

// Conflicts reports whether the two cannot be held at once by two holders.
func (r Request) Conflicts(other Request) bool {
	a, b := r.Path, other.Path
	switch {
	case a == b:
		return !Compatible(r.Mode, other.Mode)
	case a.Covers(b):
		return !Compatible(r.Mode, other.Mode.Intent())
	case b.Covers(a):
		return !Compatible(r.Mode.Intent(), other.Mode)
	}
	return false
}

// Validate returns [ErrInvalid] for the zero Path and for a mode that is none.
func (r Request) Validate() error {
	if !r.Path.Valid() {
		return invalidPath("", "is the zero Path")
	}
	if !r.Mode.Valid() {
		return invalidMode(r.Mode)
	}
	return nil
}

// Options say who asks. Nil means the zero Options: an anonymous request that
// is never repeated.
type Options struct {
	// ID names the acquisition. The same id with the same requests, as first
	// asked for, is the same grant: who does not know whether an earlier call was
	// granted repeats it. The first release ends it for all its handles, so that
	// two who work at once must not share an id; and the id is free again. A grant
	// that was upgraded meanwhile is returned as it is. With other requests, or if
	// it was lowered below them, it is [ErrIDInUse]. Empty: no name.
	ID string
	// Owner and Reason are shown to whoever is in the way of the grant. They
	// decide nothing.
	Owner  string
	Reason string
}

const (
	// MaxRequests is the number of requests that a list may have.
	MaxRequests = 1000
	// MaxText is the number of bytes that each text of [Options] may have, and
	// the reason of a Revoke or Break.
	MaxText = 1024
)

// Validate returns [ErrInvalid] for a text that is longer than [MaxText], not
// UTF-8, or has a NUL. Nil options are valid.
func (o *Options) Validate() error {
	if o == nil {
		return nil
	}
	for _, text := range [...]struct{ what, value string }{{"id", o.ID}, {"owner", o.Owner}, {"reason", o.Reason}} {
		if err := checkText(text.what, text.value); err != nil {
			return err
		}
	}
	return nil
}

func checkText(what, value string) error {
	switch {
	case len(value) > MaxText:
		return &InvalidError{what, value, "is longer than " + strconv.Itoa(MaxText) + " bytes"}
	case !utf8.ValidString(value):
		return &InvalidError{what, value, "is not UTF-8"}
	case strings.ContainsRune(value, 0):
		return &InvalidError{what, value, "has a NUL"}
	}
	return nil
}

// shown is a text of somebody else's for a line of a log: what would break the
// line, or turn it around, is quoted.
func shown(text string) string {
	for _, r := range text {
		if !unicode.IsPrint(r) {
			return strconv.Quote(text)
		}
	}
	return text
}

// Normalize checks a list and brings it into the one form of its meaning: in
// the order of [Path.Compare], with the requests for one node joined. The list
// itself is not changed. The error is [ErrInvalid], also for an empty list.
// Engines use it; a caller of a [Locker] needs not.
func Normalize(requests []Request) ([]Request, error) {
	if len(requests) == 0 {
		return nil, &InvalidError{What: "list", Reason: "has no request"}
	}
	if len(requests) > MaxRequests {
		return nil, &InvalidError{
			"list", strconv.Itoa(len(requests)) + " requests", "has more than " + strconv.Itoa(MaxRequests),
		}
	}
	for _, r := range requests {
		if err := r.Validate(); err != nil {
			return nil, err
		}
	}
	sorted := slices.Clone(requests)
	slices.SortStableFunc(sorted, func(a, b Request) int { return a.Path.Compare(b.Path) })
	joined := sorted[:1]
	for _, r := range sorted[1:] {
		if last := &joined[len(joined)-1]; last.Path == r.Path {
			last.Mode = Join(last.Mode, r.Mode)
		} else {
			joined = append(joined, r)
		}
	}
	return joined, nil
}
