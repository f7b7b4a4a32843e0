package lock

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Request is what is asked for: the node of Path in mode Mode, and the mode's
// intention on every ancestor. Two requests conflict if some node is marked by
// both in modes that are not compatible.
type Request struct {
	Path Path `json:"path"`
	Mode Mode `json:"mode"`
}

func (r Request) String() string { return r.Mode.String() + " at " + r.Path.String() }

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

func (r Request) check() error {
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
	// ID names the acquisition. The same id with the same requests is the same
	// grant, with the same token: who does not know whether an earlier call was
	// granted repeats it. The first release ends it for all its handles, and the
	// id is free again. With other requests it is [ErrIDInUse]. Empty: no name.
	ID string
	// Owner and Reason are shown to whoever is in the way of the grant. They
	// decide nothing.
	Owner  string
	Reason string
}

const (
	// MaxRequests is the number of requests that a list may have.
	MaxRequests = 1000
	// MaxText is the number of bytes that each text of [Options] may have.
	MaxText = 1024
)

func (o *Options) check() error {
	if o == nil {
		return nil
	}
	for _, text := range [...]struct{ what, value string }{{"id", o.ID}, {"owner", o.Owner}, {"reason", o.Reason}} {
		switch {
		case len(text.value) > MaxText:
			return &InvalidError{text.what, text.value, "is longer than " + strconv.Itoa(MaxText) + " bytes"}
		case !utf8.ValidString(text.value):
			return &InvalidError{text.what, text.value, "is not UTF-8"}
		case strings.ContainsRune(text.value, 0):
			return &InvalidError{text.what, text.value, "has a NUL"}
		}
	}
	return nil
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
		if err := r.check(); err != nil {
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
