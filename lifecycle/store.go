package lifecycle

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lock"
)

// Store is the driver interface of a [Manager]: where records are kept.
// [MemoryStore] is the reference implementation, and package storetest is the
// conformance suite that every implementation runs.
//
// A Store is safe for concurrent use, and its type is comparable (a pointer, as a
// rule). If the context has ended, a method returns an error that matches both
// ctx.Err() and its cause (see [Ended]); once the store is closed, it returns
// [ErrClosed]. In both cases nothing was written. If the context ends, or the store is
// closed, after a commit was sent to the engine, Commit returns the outcome or
// [ErrUnknownOutcome]. While the store cannot answer, its methods return errors that
// match [ErrUnavailable].
//
// A driver's Commit has these steps, all but the first in one transaction:
//
//  1. [Commit.Check]. A store that cannot compare the grants of locks refuses a
//     [Precondition] with one: [errors.ErrUnsupported].
//  2. If the history has a row with the token for every change, the commit was written
//     before. [StoredChange.Stamp] with Revision and At of each row has the same results.
//  3. The expectations, the requests of the changes, the preconditions, and last the owner
//     ([OwnerRef.Alive]) are compared.
//  4. For each change Stamp with a new revision. Then the store replaces its record by
//     [StoredChange.Result], also if it is removed, and adds [StoredChange.Row] to the
//     history, unless the change is MetadataOnly. Then it adds the messages.
//
// If one request does all this in the engine, such as a script, the engine sets revision and
// time in what it writes. The driver calls Stamp with them afterwards.
type Store interface {
	// Get returns the record of an object, linearizably: it sees every commit
	// that was acknowledged before Get was called. For an object that does not
	// exist Get returns a record without State and no error. The Sequence,
	// Operation and Revision of such a record are where a new record of the same
	// key continues, so that none of them ever repeats. Its other fields are those
	// that [StoredChange.Result] keeps of the removal, if the store still has them.
	Get(ctx context.Context, key Key) (StoredRecord, error)

	// Commit writes all changes, their history rows and the messages, or
	// nothing. It checks every change's expectation and every precondition, all
	// as of one moment. On success it sets Revision, ChangedAt and Deadline of
	// each change's record; a MetadataOnly change keeps its ChangedAt. The caller has
	// set all other fields, Admission and ChangeToken included. A store that does not
	// keep Admission sets it to zero. Times are not rounded to seconds. After Commit has
	// returned nil, the store keeps nothing of c but the contents of the records.
	//
	// Commit is idempotent in the token: a commit that was written before is not
	// written again and gets the same results as the first time, as long as the
	// history of its objects is kept.
	//
	// Errors: [*ConflictError] for the first change whose expectation fails,
	// [*RepeatedError] for a change whose Request another row of the machine has (a
	// conflict comes first),
	// [*PreconditionError], [*OwnerError], and [ErrUnknownOutcome] if the store
	// cannot determine whether it has written. Any other error means that nothing
	// was written: [ErrUnavailable], if the same commit may succeed later.
	Commit(ctx context.Context, c *Commit) error

	// List returns the records that a query selects, in the store's order of ids, which is
	// bytewise unless the store documents another one: at most q.Limit of them; fewer mean that
	// there are no more. An object that exists and matches while all pages are read is in
	// exactly one of them. The error is [ErrInvalid] for a query that [Query.Check] refuses.
	List(ctx context.Context, q Query) ([]StoredRecord, error)

	// Capabilities returns what the store can do. The result never changes.
	Capabilities() Capabilities
}

// Ended returns the error of a context that has ended, for use by stores: it
// matches ctx.Err() and the cause. The context must have ended.
func Ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == err {
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// Capabilities are what a store declares beyond one change per commit. A request
// for anything else is refused with [errors.ErrUnsupported], never emulated. A store is a
// [Follower] or [Partial] by its methods alone.
type Capabilities struct {
	Changes  int  // most changes and preconditions in one commit, without its owner; at least 1
	History  bool // the store is a [Historian]
	Messages bool // commits carry messages, as many as the store documents, and the store is an [Outbox]
	OwnClock bool // ChangedAt and ages are of the store's clock, not of this process' clock
}

// Key identifies an object: its machine and its id. It has no String method,
// because the records that embed it would inherit it. A store that cannot keep a NUL
// in a name refuses such a key with [ErrInvalid].
type Key struct {
	Machine string `json:"machine"`
	ID      string `json:"id"`
}

func (k Key) text() string { return fmt.Sprintf("%s %q", k.Machine, k.ID) }

// Revision is the token that a compare-and-set compares. It is opaque: compare it
// for equality only. Every commit gives a record a new revision, and none is ever
// repeated for a key.
type Revision string

// OpID numbers the operations of one object. Zero means no operation. An object that
// is created at rest under the key of a removed object has the number after that
// object's last one, without an operation: reports about the removed object are
// stale.
type OpID uint64

// StoredRecord is a record as it crosses the driver interface: with names instead
// of types. It is a value. Its byte slices are immutable: neither the store nor
// the Manager modifies them.
type StoredRecord struct {
	Key
	State  string // empty: the object does not exist
	Origin string // equals State in a state that is not transitional
	Target string // the state that the operation leads to; empty if the table does not name it

	Revision  Revision
	Sequence  uint64 // counts the changes of this key without a gap
	Operation OpID
	// Admission is the token of the commit that has started the operation. It
	// identifies the operation: its number repeats if the store loses its newest
	// commits. Zero: there was no operation, or the store does not keep the token.
	Admission Token
	// ChangeToken is the token of the commit that wrote the last history row. Zero: the
	// store does not keep the token.
	ChangeToken Token
	// Fence is the highest fencing token that a change of the object has had, see
	// [Change].Fence. It stays when the object is removed, if the store keeps a row for it. A
	// store either keeps it or refuses a commit that sets it with [errors.ErrUnsupported].
	Fence lock.Token
	// Version is the version of the table and payload in whose form State, Origin, Target,
	// Payload and Saved are, see [Config].Version. A store either keeps it or refuses a
	// commit that sets it with [errors.ErrUnsupported].
	Version string

	Owner       string // the process that executes the operation; empty if there is none
	Epoch       uint64 // of the owner; 0 without an owner
	Work        string // the handler that does the work; empty if there is none
	Args        []byte // the arguments of the handler; nil equals empty
	WorkOptions []byte // time-out, class and attempts of the work, in the Manager's form; nil equals empty

	Deadline  time.Time // zero: none
	ChangedAt time.Time

	Actor  fsm.Actor // of the last change
	Event  string    // of the last change; empty: the object was added
	Reason string    // of the last change

	Payload []byte // nil equals empty: the zero payload
	Saved   []byte // the payload from before the operation; nil if none is kept, empty: the zero payload
}

// Exists reports whether there is an object.
func (r *StoredRecord) Exists() bool { return r.State != "" }

// Commit is one atomic write.
type Commit struct {
	Token    Token          // not the zero Token
	Changes  []StoredChange // at least one, no two of one key
	Require  []Precondition
	Messages []Message

	// Owner is the process that writes, if its name is not empty. The store compares
	// it with the owner's record ([OwnerRef.Key], [OwnerRef.Alive]) in the same
	// transaction as the changes, after the expectations and preconditions, by a
	// read that waits for no writer of that record. A commit that is concurrent with
	// the expiry of the owner may be ordered before it.
	Owner OwnerRef
}

// StoredChange is what a commit does to one object: it creates, moves or removes
// the object.
type StoredChange struct {
	// Expect and From are the revision and state that the record must have. From
	// is empty for an object that must not exist; Expect is then the revision of
	// the absent record that Get returned.
	Expect Revision
	From   string
	// To is the record to write. Its Sequence is one more than before. The store
	// sets Revision, ChangedAt and Deadline.
	To StoredRecord
	// FromOrigin is the origin before the change, for the history.
	FromOrigin string
	// Timeout > 0 sets the deadline this long after the store's present time;
	// 0 clears the deadline.
	Timeout time.Duration
	// Remove removes the record instead of writing it. To.State is then the name
	// of the absent state, for the history.
	Remove bool
	// MetadataOnly changes nothing but Deadline, Owner, Epoch, Work, Args and
	// WorkOptions. All other fields of To are as they were read, Sequence and
	// ChangedAt included, and so is the deadline if Timeout is 0. The record gets
	// a new revision and no history row. A commit with a MetadataOnly change that
	// is sent again is a conflict, also if it has other changes: without a history
	// row the results of the change cannot be found. So a store, or the client of its
	// engine, does not repeat such a commit by itself if the answer is lost: it was
	// perhaps written, and [ErrUnknownOutcome] is the answer.
	MetadataOnly bool
	// Request and Fingerprint are for the history row, see [Change].Request. No two rows
	// of a machine have the same Request. Empty: none.
	Request, Fingerprint string
}

// Stamp sets the fields that the store determines, for use by stores: Revision, ChangedAt
// and Deadline of To. A MetadataOnly change keeps its ChangedAt, and its Deadline if Timeout
// is 0.
func (ch *StoredChange) Stamp(revision Revision, now time.Time) {
	ch.To.Revision = revision
	if !ch.MetadataOnly {
		ch.To.ChangedAt, ch.To.Deadline = now, time.Time{}
	}
	if ch.Timeout > 0 {
		ch.To.Deadline = now.Add(ch.Timeout)
	}
}

// Row returns the history row of the change, after Stamp. A MetadataOnly change has none.
func (ch *StoredChange) Row(token Token) HistoryRow {
	return HistoryRow{
		Key: ch.To.Key, Sequence: ch.To.Sequence, Revision: ch.To.Revision, Token: token,
		Operation: ch.To.Operation, From: ch.From, FromOrigin: ch.FromOrigin,
		To: ch.To.State, Origin: ch.To.Origin, Event: ch.To.Event, Actor: ch.To.Actor,
		Reason: ch.To.Reason, At: ch.To.ChangedAt, Version: ch.To.Version, Request: ch.Request, Fingerprint: ch.Fingerprint,
	}
}

// Result returns the record after the change, after Stamp, for use by stores: To, or what a
// store keeps of a removed object. That is its key, the numbers that continue, the fence, and
// time, actor, event and reason of the removal.
func (ch *StoredChange) Result() StoredRecord {
	r := &ch.To
	if !ch.Remove {
		return *r
	}
	return StoredRecord{
		Key: r.Key, Revision: r.Revision, Sequence: r.Sequence, Operation: r.Operation, Fence: r.Fence,
		ChangedAt: r.ChangedAt, Actor: r.Actor, Event: r.Event, Reason: r.Reason,
	}
}

// Precondition is a condition that must hold at the moment of the commit: another object
// is in one of the states, or a lock is held. The empty state means that the object does
// not exist.
type Precondition struct {
	Key
	States []string
	// Grant, if it is not nil, must be held; Key and States are then empty. The commit and
	// the loss of the grant exclude each other, so a late holder writes nothing: no clock is
	// involved. This needs the lock and the records in one database, or a [lock.Tree] and a
	// [MemoryStore]. With a grant of any other lock, a MemoryStore compares the state of the
	// grant in this process, which may be late; any other store refuses the commit with
	// [errors.ErrUnsupported], see [Change].Fence for it. A revoked grant is still held.
	Grant *lock.Grant
}

// Message is written in the same commit as a change, for delivery afterwards. Outcomes of
// work and sweeps have no [Change] of the caller: to send a message with each of them, return
// a change of another object, which has the message, from [Config].BeforeCommit.
type Message struct {
	Topic   string
	Key     string
	Payload []byte
}

// OwnerRef is one life of an owner: its name and epoch.
type OwnerRef struct {
	Name  string `json:"name"`
	Epoch uint64 `json:"epoch"`
}

// Key returns the key of the owner's record.
func (o OwnerRef) Key() Key { return Key{ownersTable, o.Name} }

// Alive reports whether r, the record of Key, is alive in this epoch. It reads State and
// Operation.
func (o OwnerRef) Alive(r *StoredRecord) bool {
	return r.State == string(ownerAlive) && uint64(r.Operation) == o.Epoch
}

// Query selects records of one machine. The zero value of a field other than
// Machine and Limit selects everything. All conditions must hold.
type Query struct {
	Machine      string
	States       []string
	UnchangedFor time.Duration // ChangedAt is at least this long ago
	Overdue      bool          // the record has a deadline, and it has passed
	NoDeadline   bool          // the record has no deadline
	Unowned      bool          // the record has no owner
	// NotOwnedBy, if it is not nil, selects records that have an owner which is
	// none of these. An empty list selects all records with an owner.
	NotOwnedBy []OwnerRef
	// WithoutPayload leaves Payload, Saved and Args of the records nil.
	WithoutPayload bool
	After          string // only ids after this one in the store's order; empty, or a possible id
	Limit          int    // from 1; a store has no maximum
}

// Selects reports whether a record of the machine matches all conditions but After and Limit
// at a time, for use by stores. It reads State, ChangedAt, Deadline, Owner and Epoch.
func (q *Query) Selects(r *StoredRecord, now time.Time) bool {
	return (len(q.States) == 0 || slices.Contains(q.States, r.State)) &&
		(q.UnchangedFor <= 0 || now.Sub(r.ChangedAt) >= q.UnchangedFor) &&
		(!q.Overdue || !r.Deadline.IsZero() && now.After(r.Deadline)) &&
		(!q.NoDeadline || r.Deadline.IsZero()) &&
		(!q.Unowned || r.Owner == "") &&
		(q.NotOwnedBy == nil || r.Owner != "" && !slices.Contains(q.NotOwnedBy, OwnerRef{r.Owner, r.Epoch}))
}

// HistoryRow is one accepted change, written in the same commit as the change.
type HistoryRow struct {
	Key
	Sequence   uint64    `json:"sequence"`
	Revision   Revision  `json:"revision"`
	Token      Token     `json:"token"`
	Operation  OpID      `json:"operation"`
	From       string    `json:"from"` // empty: a record was added
	FromOrigin string    `json:"fromOrigin"`
	To         string    `json:"to"`
	Origin     string    `json:"origin"`
	Event      string    `json:"event"`
	Actor      fsm.Actor `json:"actor"`
	Reason     string    `json:"reason"`
	At         time.Time `json:"at"`
	Version    string    `json:"version,omitempty"` // of the table that has the states

	// Request and Fingerprint identify the request of a client that made the change, see
	// [Change].Request. Empty: the caller has named none.
	Request     string `json:"request,omitempty"`
	Fingerprint string `json:"fingerprint,omitempty"`
}

// String returns the row as one line of text.
func (h HistoryRow) String() string {
	line := fmt.Sprintf("%s #%d operation %d: %s -%s-> %s", h.Key.text(), h.Sequence, h.Operation, stateOr(h.From), h.Event, h.To)
	if h.Actor != "" {
		line += " by " + string(h.Actor)
	}
	if h.Reason != "" {
		line += ": " + h.Reason
	}
	return oneLine(line)
}

// Historian is a store that keeps history.
type Historian interface {
	// History returns rows of one object with a sequence number above after,
	// ascending, at most limit of them, and none for 0. The store determines how long rows
	// are kept; the rows it still has end with the newest and have no gap.
	History(ctx context.Context, key Key, after uint64, limit int) ([]HistoryRow, error)

	// Requested returns the history row of a machine that has the request. The request is
	// not empty. Requested returns the zero HistoryRow if no row has it, and
	// [errors.ErrUnsupported] if the store keeps no requests: a commit with a Request is
	// then refused too.
	Requested(ctx context.Context, machine, request string) (HistoryRow, error)
}

// Follower is a store that finds recent changes, for [Watch].
type Follower interface {
	// Recent returns the objects of a machine that changed at most within ago, by the
	// store's clock, removed objects included. A change counts if it has a history row, or
	// would have one if the store kept history. The objects are in bytewise order of id: at
	// most limit of them, none for 0, each with an id greater than after; fewer mean that
	// there are no more. The sequence number is that of the newest such change. A store that
	// cannot find changes returns [errors.ErrUnsupported].
	Recent(ctx context.Context, machine string, within time.Duration, after string, limit int) ([]ChangedObject, error)
}

// ChangedObject is an object that has changed, and the sequence number of the change.
type ChangedObject struct {
	ID       string `json:"id"`
	Sequence uint64 `json:"sequence"`
}

// Outbox is a store whose commits carry messages. A program that delivers the
// messages discards each one after its delivery, by its number: a message is
// delivered at least once.
type Outbox interface {
	// Messages returns the oldest messages that are not discarded, at most limit
	// of them, and none for 0. The messages of one commit are in their order. A commit that was
	// acknowledged before another one began comes before it, and so do the
	// commits of one object. Concurrent commits come in either order, and a
	// message may appear before one that was returned already.
	Messages(ctx context.Context, limit int) ([]OutboxMessage, error)
	// Discard removes the messages with these numbers, and no others. The number
	// of an unknown or discarded message is not an error.
	Discard(ctx context.Context, numbers ...uint64) error
}

// OutboxMessage is a message of a commit with its unique number. Numbers do not
// give an order: of two concurrent transactions, the one with the lower number
// may commit later.
type OutboxMessage struct {
	Number uint64
	Message
}

// Token names one commit: 128 random bits, kept in the history. An unknown outcome
// is resolved by sending the commit again with the same token.
type Token [16]byte

// NewToken returns a new token.
func NewToken() (t Token) {
	_, _ = rand.Read(t[:]) // it never returns an error
	return t
}

// String returns the token as 32 hexadecimal digits.
func (t Token) String() string { return hex.EncodeToString(t[:]) }

// MarshalText returns the text of [Token.String].
func (t Token) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads the text of MarshalText.
func (t *Token) UnmarshalText(text []byte) error {
	var read Token
	if n, err := hex.Decode(read[:], text[:min(len(text), 2*len(read))]); err != nil || n != len(read) || len(text) != 2*n {
		return errors.New("lifecycle: token is not 32 hexadecimal digits")
	}
	*t = read
	return nil
}
