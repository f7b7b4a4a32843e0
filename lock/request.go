package lock

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Request is for the node of Path in mode Mode, and for the mode's intention on
// every ancestor. Two requests conflict if some node is marked by both in modes
// that are not compatible.
type Request struct {
	Path Path `json:"path"`
	Mode Mode `json:"mode"`
}

// String returns the request as text, such as "X at /a/b".
func (r Request) String() string { return r.Mode.String() + " at " + printable(r.Path.String()) }

// Conflicts reports whether two holders cannot hold r and other at once.
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

// Validate returns [ErrInvalid] for the zero Path and for an invalid mode.
func (r Request) Validate() error {
	if !r.Path.Valid() {
		return invalidPath("", "is the zero Path")
	}
	if !r.Mode.valid() {
		return invalidMode(r.Mode)
	}
	return nil
}

// Options describe the caller of a request. Nil means the zero Options: an
// anonymous request without an id.
type Options struct {
	// ID names the acquisition. The same id with the same requests returns the
	// same grant: a caller that lost an answer repeats its call. The first release
	// ends the grant for all callers and frees the id, so concurrent workers must not
	// share one. While the acquisition waits, a Lock waits with it, and a TryLock is refused;
	// the acquisition leaves the queue when the last of its calls is cancelled. A cancelled
	// call never ends a grant that another call has, or that it still waits for. A grant that
	// was upgraded meanwhile is returned unchanged. The error is [ErrIDInUse] for other
	// requests, and after a downgrade below the requests. Only the calls of one [Locker] share
	// a grant: another process never gets it by the id. It is refused or waits, as the driver
	// documents. Default, "": no id.
	ID string
	// Owner and Reason appear in refusals and lists of holders. They have no other
	// effect. Default: "".
	Owner  string
	Reason string
}

const (
	// MaxRequests is the maximum number of requests in a list.
	MaxRequests = 1000
	// MaxText is the maximum length, in bytes, of each text of [Options] and of the
	// reason of a Revoke or Break.
	MaxText = 1024
)

// Validate returns [ErrInvalid] for a text that is longer than [MaxText], is not
// UTF-8, or contains a NUL. Nil options are valid.
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

// printable quotes a text of another caller that would break a line of a log.
func printable(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}

// Normalize checks a list and returns it in its canonical form: parents before children,
// and children by the bytes of their segments, with the requests for one node joined. It
// does not change the list. The error is [ErrInvalid], also for an empty list. Lock drivers
// use it; callers of a [Locker] do not need it.
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
	slices.SortStableFunc(sorted, func(a, b Request) int { return a.Path.compare(b.Path) })
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
