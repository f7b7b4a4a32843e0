package lock

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Locker grants and refuses requests. [Tree] is the Locker of one process. Lock
// drivers for several processes implement the same interface and run the same
// suite, package locktest. All methods are safe for concurrent use.
//
// Every method takes a context because a driver does I/O in it. The context bounds
// the call, not the grant. If it ends, the call returns an error that matches
// ctx.Err() and its cause, and leaves nothing behind. A driver whose engine has not
// answered continues to remove the request after the call has returned.
type Locker interface {
	// TryLock grants the request at once or refuses it. It never waits for a
	// holder. It refuses a request that conflicts with any other request, held or
	// waiting.
	//
	// Errors: [ErrConflict] and [ErrIDInUse] as a [ConflictError], [ErrInvalid],
	// and the error of the context. A driver with sessions also returns [ErrLost]
	// if its session ends first: try again. After an error nothing is held.
	TryLock(ctx context.Context, r Request, o *Options) (*Grant, error)
	// Lock waits until no earlier request conflicts. Requests are granted in the
	// order of their arrival, except where they do not conflict.
	//
	// Errors: those of TryLock but ErrConflict, and [ErrQueueFull]. If the context ends
	// first, the error is a [ConflictError] with the holders that the request waited for.
	// After an error nothing is held and nothing waits.
	Lock(ctx context.Context, r Request, o *Options) (*Grant, error)
	// TryLockAll is TryLock for several requests: it grants all or none. Requests
	// of one list never conflict with each other; requests for one node are
	// joined.
	TryLockAll(ctx context.Context, rs []Request, o *Options) (*Grant, error)
	// LockAll is Lock for several requests at once. It holds none of them while it
	// waits. Two lists cannot deadlock, whatever their order.
	LockAll(ctx context.Context, rs []Request, o *Options) (*Grant, error)

	// Holders returns the requests above, at and below a path, held or waiting, in
	// the order of their arrival. It locks nothing. The error is [ErrInvalid].
	Holders(ctx context.Context, p Path, s Scope) ([]Holder, error)
	// Snapshot returns everything that is held or waiting.
	Snapshot(ctx context.Context) (Snapshot, error)

	// Revoke signals the holder of a token to stop: [Grant.Lost] and the contexts of
	// the grant end, and [Grant.Check] fails with [ErrRevoked]. The holder keeps
	// the lock until it unlocks. The error is [ErrNotHeld] if no grant has that
	// token; an upgraded grant has another one. The error is [ErrInvalid] for a
	// reason that [Options.Validate] would refuse.
	Revoke(ctx context.Context, t Token, reason string) error
	// Break takes the grant away: first its holder sees [ErrLost], then waiting
	// requests are granted. A holder that ignores the loss keeps working; let the
	// resource check the token, see [Fence]. Errors: those of Revoke.
	Break(ctx context.Context, t Token, reason string) error
}

// Token is a fencing token: the number of a grant. Of two grants of one [Locker]
// that conflict, the later has the greater token. No grant has token 0.
type Token uint64

// Scope selects where [Locker].Holders looks, relative to its path.
type Scope uint8

const (
	Above Scope = 1 << iota // on the ancestors
	At                      // on the node itself
	Below                   // on the descendants
)

// Validate returns [ErrInvalid] for the empty scope and for unknown bits.
func (s Scope) Validate() error {
	if s == 0 || s&^(Above|At|Below) != 0 {
		return &InvalidError{What: "scope", Value: strconv.Itoa(int(s)), Reason: "is not a combination of Above, At and Below"}
	}
	return nil
}

// Holder describes one request of another caller that is held or waiting. A grant
// of several requests appears as several Holders with one token.
type Holder struct {
	Path   Path   `json:"path"`
	Mode   Mode   `json:"mode"`
	ID     string `json:"id,omitempty"`
	Owner  string `json:"owner,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Token is the token of the grant, and 0 while the request waits.
	Token Token `json:"token,omitempty"`
	// Since is when the request was granted or last upgraded, or when it began to wait. A Tree
	// computes it from the time of day at its first use and the monotonic clock.
	Since   time.Time `json:"since"`
	Waiting bool      `json:"waiting,omitempty"`
}

// String returns one line, such as "X at /a/b held by deploy-7 (version 12) since
// 2026-01-02T15:04:05Z, token 12". It quotes texts that would break the line.
func (h Holder) String() string {
	var b strings.Builder
	b.WriteString(Request{h.Path, h.Mode}.String())
	if h.Waiting {
		b.WriteString(" awaited")
	} else {
		b.WriteString(" held")
	}
	if h.Owner != "" {
		b.WriteString(" by " + printable(h.Owner))
	}
	if h.ID != "" && h.ID != h.Owner {
		b.WriteString(" as " + printable(h.ID))
	}
	if h.Reason != "" {
		b.WriteString(" (" + printable(h.Reason) + ")")
	}
	b.WriteString(" since " + h.Since.UTC().Format(time.RFC3339))
	if !h.Waiting {
		fmt.Fprintf(&b, ", token %d", h.Token)
	}
	return b.String()
}

// Snapshot is what a [Locker] holds at one moment.
type Snapshot struct {
	// Held and Waiting count grants and waiting acquisitions. An acquisition of
	// several requests counts once.
	Held    int `json:"held"`
	Waiting int `json:"waiting"`
	// Nodes is how many nodes, keys or rows the locker keeps. It is 0 without
	// holders and waiters.
	Nodes int `json:"nodes"`
	// LastToken is the token of the latest grant, and before the first grant the number
	// below the first token. A tree that replaces this one starts above it, see
	// [Config].FirstToken. A driver that draws other numbers from the same sequence
	// returns the latest number.
	LastToken Token `json:"lastToken"`
	// Holders are all requests, in the order of their arrival. An upgrade changes no place.
	Holders []Holder `json:"holders,omitempty"`
}

// Ended returns the error of a context that has ended. It matches ctx.Err() and
// the cause. Lock drivers use it.
func Ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if err == nil { // the context is done without an error: it breaks its contract
		err, cause = context.Canceled, context.Canceled
	}
	if cause == err {
		return fmt.Errorf("lock: the context has ended: %w", err)
	}
	return fmt.Errorf("lock: the context has ended: %w: %w", err, cause)
}
