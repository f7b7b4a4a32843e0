package lifecycle

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/fsm"
)

// Store is what a [Manager] asks of the place where records are kept: a small
// driver interface. [MemoryStore] is the reference, package storetest the
// conformance suite that every implementation runs.
//
// A Store is safe for concurrent use. Its methods return an error that matches
// both ctx.Err() and its cause if the context has ended (see [Ended]), and
// [ErrClosed] once the store is closed, in both cases with nothing written.
type Store interface {
	// Get returns the record of an object, linearizably: it sees every commit
	// that was acknowledged before it was called. An object that does not exist
	// is no error but a record without State; its Sequence, Operation and
	// Revision are where a new record of the same key goes on, so that none of
	// them ever repeats, and its Event and Actor are those that removed it,
	// where the store still knows them.
	Get(ctx context.Context, key Key) (StoredRecord, error)

	// Commit writes all changes, their history rows and the messages, or
	// nothing. It checks every change's expectation and every precondition, all
	// as of one moment. On success it fills Revision, ChangedAt and Deadline of
	// each change's record, except the ChangedAt of a quiet one. When it has
	// returned nil, the store keeps nothing of c but what the records hold.
	//
	// Commit is idempotent in the token: a commit that was written before is
	// not written again, and filled as the first time, as long as the history
	// of its objects is kept.
	//
	// Errors: [*ConflictError] for the first change whose expectation fails,
	// [*PreconditionError], [ErrUnknownOutcome] when the store cannot know
	// whether it has written. Any other error means: not written.
	Commit(ctx context.Context, c *Commit) error

	// List returns the records that a query selects, in order of id, at most
	// q.Limit of them; fewer mean that there are no more. An object that exists
	// and matches while all pages are read is in exactly one of them.
	List(ctx context.Context, q Query) ([]StoredRecord, error)

	// Capabilities says what the store can do. It never changes.
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

// Capabilities are what a store declares beyond one change per commit. What is
// not declared is refused with [errors.ErrUnsupported], never emulated.
type Capabilities struct {
	Changes  int  // most changes and preconditions in one commit; at least 1
	History  bool // the store is a [Historian]
	Messages bool // commits carry messages, and the store is an [Outbox]
	OwnClock bool // ChangedAt and ages are of the store's clock, not this process'
}

// Key names an object: the machine that it belongs to, and its id. It has no
// String method, because the records that embed it would inherit it.
type Key struct {
	Machine string `json:"machine"`
	ID      string `json:"id"`
}

func (k Key) text() string { return fmt.Sprintf("%s %q", k.Machine, k.ID) }

// Revision is the token that a compare-and-set compares. It is opaque: only
// equality means something. Every commit gives a record a new one, and none is
// ever repeated for a key.
type Revision string

// OpID numbers the operations of one object. Zero is no operation. An object that
// is made at rest where another one was before has the number after that one's
// last, without an operation: what is said about the other's is stale.
type OpID uint64

// StoredRecord is a record as it crosses the driver interface: with names, not
// with types. It is a value; its Payloads are immutable.
type StoredRecord struct {
	Key
	State  string // empty: the object does not exist
	Origin string // equals State in a resting state
	Target string // where the operation is heading, empty if unsaid

	Revision  Revision
	Sequence  uint64 // counts the commits of this key without a gap
	Operation OpID
	Owner     string // who does the work of the operation, empty if nobody here
	Epoch     uint64 // of the owner
	Work      string // the handler that does it, empty if there is none to take up
	Args      []byte // what the handler is called with; immutable, and nil equals none
	Steps     []byte // what is to follow, and the bounds of Work, in the manager's form; as Args
	Deadline  time.Time
	ChangedAt time.Time

	Actor  fsm.Actor // who made the last change
	Event  string    // and by what event; empty: it was added
	Reason string

	Payload Payload
	Saved   Payload // the payload from before the operation; nil if none is kept
}

// Exists reports whether there is an object.
func (r *StoredRecord) Exists() bool { return r.State != "" }

// Commit is one atomic write.
type Commit struct {
	Token    Token          // not the zero one
	Changes  []StoredChange // at least one, no two of one key
	Require  []Precondition
	Messages []Message
}

// StoredChange is what a commit does to one object: it creates, moves or
// removes it.
type StoredChange struct {
	// Expect and From are the revision and state that the record must have.
	// From is empty for an object that must not exist; its Expect is the
	// revision of the absent record that Get returned.
	Expect Revision
	From   string
	// To is the record to write. Its Sequence is one more than before. The
	// store sets Revision, ChangedAt and Deadline.
	To StoredRecord
	// FromOrigin is the origin before, for the history.
	FromOrigin string
	// Within > 0 sets the deadline this long after the store's now; 0 clears it.
	Within time.Duration
	// Remove removes the record instead of writing it; To.State is then the
	// name of the absent state, for the history.
	Remove bool
	// Quiet: nothing happened to the object; only its deadline is another, or who
	// does the work (Owner, Epoch, Work, Args, Steps). To is then the record as it
	// was read but for these, also in Sequence and ChangedAt, and in the deadline
	// where Within is 0. It gets a new revision and no row of history. Sent
	// again, it is a conflict: without a row nobody can tell what was written.
	Quiet bool
	// Before is the record that the change was decided on, where that was not read
	// for it: it was recalled, listed, or is what this process has written before.
	// Others may have written to it since without giving it another revision, who
	// bypass the library. A store where they can compares, as of the moment of the
	// commit, everything that a decision is made of and that would be written back:
	// Origin, Target, Sequence, Operation, Owner, Epoch, Work, Args, Steps, Payload
	// and Saved. If one of them differs it is a conflict, though Expect and From
	// may be met. Nil: the record was read for the change, or there was no object.
	// It is the caller's again when Commit returns. No quiet change has it.
	Before *StoredRecord
}

// Stamp fills what is the store's to say, for use by stores.
func (ch *StoredChange) Stamp(revision Revision, now time.Time) {
	changed, deadline := ch.To.ChangedAt, ch.To.Deadline
	ch.To.Revision, ch.To.ChangedAt, ch.To.Deadline = revision, now, time.Time{}
	if ch.Quiet {
		ch.To.ChangedAt, ch.To.Deadline = changed, deadline
	}
	if ch.Within > 0 {
		ch.To.Deadline = now.Add(ch.Within)
	}
}

// Row returns the history row of the change, once it is stamped.
func (ch *StoredChange) Row(token Token) HistoryRow {
	return HistoryRow{
		Key: ch.To.Key, Sequence: ch.To.Sequence, Revision: ch.To.Revision, Token: token,
		Operation: ch.To.Operation, From: ch.From, FromOrigin: ch.FromOrigin,
		To: ch.To.State, Origin: ch.To.Origin, Event: ch.To.Event, Actor: ch.To.Actor,
		Reason: ch.To.Reason, At: ch.To.ChangedAt,
	}
}

// Precondition is a condition on another object that must hold at the moment of
// the commit: it is in one of the states. The empty state means that it does
// not exist.
type Precondition struct {
	Key
	States []string
}

// Message is something to be told after the commit, and only if it happens.
type Message struct {
	Topic   string
	Key     string
	Payload []byte
}

// Query selects records of one machine. The zero value of a field but Machine
// and Limit selects everything.
type Query struct {
	Machine      string
	States       []string
	UnchangedFor time.Duration // ChangedAt at least this long ago
	Overdue      bool          // has a deadline, and it is over
	Owner        string        // is owned by this one, of whatever epoch
	After        string        // only ids greater than this one, bytewise
	Limit        int           // > 0
}

// HistoryRow is one accepted change, written in the same commit as the change. As
// JSON, a line each, rows are what ReadHistory of package fsm/check reads, which
// judges a history by the table of its time.
type HistoryRow struct {
	Key
	Sequence   uint64    `json:"sequence"`
	Revision   Revision  `json:"revision"`
	Token      Token     `json:"token"`
	Operation  OpID      `json:"operation"`
	From       string    `json:"from"` // empty where a record was added
	FromOrigin string    `json:"fromOrigin"`
	To         string    `json:"to"`
	Origin     string    `json:"origin"`
	Event      string    `json:"event"`
	Actor      fsm.Actor `json:"actor"`
	Reason     string    `json:"reason"`
	At         time.Time `json:"at"`
}

// String returns the row as a line for people.
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
	// ascending, at most limit of them. How long rows are kept is the store's
	// to say; what it still has ends with the newest and has no gap.
	History(ctx context.Context, key Key, after uint64, limit int) ([]HistoryRow, error)
}

// Outbox is a store whose commits carry messages. Whoever tells them discards
// each once it is told, by its number: a message is told at least once.
type Outbox interface {
	// Messages returns the oldest messages that are not discarded, at most limit
	// of them. Those of one commit stand as they were given. A commit that was
	// acknowledged before another one began stands before it, and so do the
	// commits of one object; of commits at the same time either may come first,
	// and a message may turn up before one that was returned already.
	Messages(ctx context.Context, limit int) ([]OutboxMessage, error)
	// Discard removes the messages of these numbers, and no other. A number of
	// no message, or of one that is discarded, is no error.
	Discard(ctx context.Context, numbers ...uint64) error
}

// OutboxMessage is a message of a commit with its number, which is that of no
// other message. Numbers say nothing about order: where several transactions
// draw them, the one that drew the lower number may commit later.
type OutboxMessage struct {
	Number uint64
	Message
}
