package lock

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// Locker grants and refuses requests. [Tree] is the one in process; engines for
// several processes implement the same interface and are tested by the same
// suite, package locktest. All methods are safe for concurrent use.
//
// Every method takes a context, because an engine does I/O in it; what it
// bounds is the call, not the grant. If the context ends, the error matches
// ctx.Err() and its cause, and the call has left nothing behind.
type Locker interface {
	// TryLock grants the request at once or refuses it; it never waits for a
	// holder. It is refused if it conflicts with any request that is held or
	// waiting: who waits is not overtaken.
	//
	// Errors: [ErrConflict] and [ErrIDInUse] as a [ConflictError], [ErrInvalid],
	// those of the context. After an error nothing is held.
	TryLock(ctx context.Context, r Request, o *Options) (*Held, error)
	// Lock waits until no earlier request conflicts: requests are granted in the
	// order of their arrival, except where they do not conflict.
	//
	// Errors: those of TryLock but ErrConflict, and [ErrQueueFull]. If the
	// context ends first, the error is a [ConflictError] that names who was in
	// the way. After an error nothing is held and nothing waits.
	Lock(ctx context.Context, r Request, o *Options) (*Held, error)
	// TryLockAll is TryLock for several requests at once: all or none, in any
	// order. Requests of one list never conflict with each other; those for one
	// node are joined.
	TryLockAll(ctx context.Context, rs []Request, o *Options) (*Held, error)
	// LockAll is Lock for several requests at once. It waits without holding
	// any of them. Two lists cannot deadlock, whatever their order.
	LockAll(ctx context.Context, rs []Request, o *Options) (*Held, error)

	// Holders returns the requests at a path, above and below it, held or
	// waiting, in the order of their arrival, without asking for anything. The
	// error is [ErrInvalid].
	Holders(ctx context.Context, p Path, s Scope) ([]Holder, error)
	// Snapshot returns all of them, for pages and metrics.
	Snapshot(ctx context.Context) (Snapshot, error)

	// Revoke asks the holder of a token to stop: its [Held.Lost] and contexts
	// end, [Held.Check] fails with [ErrRevoked]. It holds until it unlocks. The
	// error is [ErrNotHeld] if nobody holds that token, as after an upgrade, which
	// has another; and [ErrInvalid] for a reason that is no text.
	Revoke(ctx context.Context, t Token, reason string) error
	// Break takes the grant away, after its holder was told [ErrLost], and
	// grants what waited for it. A holder that does not listen still works: let
	// what it writes to check the token, see [Fence]. Errors: those of Revoke.
	Break(ctx context.Context, t Token, reason string) error
}

// Token is a fencing token: the number of a grant. Of two grants of one
// [Locker] that conflict, the later has the greater token. No grant has 0.
type Token uint64

// String returns the number.
func (t Token) String() string { return strconv.FormatUint(uint64(t), 10) }

// Scope says where [Locker.Holders] looks, relative to its path.
type Scope uint8

const (
	Above Scope = 1 << iota // on the ancestors
	At                      // on the node itself
	Below                   // on the descendants
)

// Validate returns [ErrInvalid] for the empty scope and for unknown bits.
func (s Scope) Validate() error {
	if s == 0 || s&^(Above|At|Below) != 0 {
		return &InvalidError{What: "scope", Value: s.String(), Reason: "is none of Above, At and Below, or more than these"}
	}
	return nil
}

// String returns the names of its parts, joined with "|".
func (s Scope) String() string {
	var parts []string
	for i, name := range [...]string{"Above", "At", "Below"} {
		if s&(1<<i) != 0 {
			parts = append(parts, name)
		}
	}
	if rest := s &^ (Above | At | Below); rest != 0 || s == 0 {
		parts = append(parts, "Scope("+strconv.Itoa(int(rest))+")")
	}
	return strings.Join(parts, "|")
}

// Holder is one request that is held or waiting, and who asked for it. A grant
// of several requests is as many Holders with one token.
type Holder struct {
	Path   Path   `json:"path"`
	Mode   Mode   `json:"mode"`
	ID     string `json:"id,omitempty"`
	Owner  string `json:"owner,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Token of the grant; 0 while it waits.
	Token Token `json:"token,omitempty"`
	// Since when it holds, or waits: the time of day when the locker was first
	// used, and what has passed since by the monotonic clock.
	Since   time.Time `json:"since"`
	Waiting bool      `json:"waiting,omitempty"`
	// Mine: its owner is that of the request that was refused, and is not empty.
	Mine bool `json:"mine,omitempty"`
}

// Snapshot is what a [Locker] holds at one moment.
type Snapshot struct {
	// Holders are all requests, in the order of their arrival.
	Holders []Holder `json:"holders"`
	// Held and Waiting count grants and waiting acquisitions; one of several
	// requests counts once.
	Held    int `json:"held"`
	Waiting int `json:"waiting"`
	// Nodes is how many nodes, keys or rows the locker keeps. Without holders
	// and waiters it is 0.
	Nodes int `json:"nodes"`
	// LastToken is the token of the latest grant, or of one before this
	// locker's first; 0: there was none. A tree that follows this one starts
	// above it: see [Config.FirstToken].
	LastToken Token `json:"lastToken"`
}
