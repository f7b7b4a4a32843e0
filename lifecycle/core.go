package lifecycle

import (
	"context"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/decide"
	"github.com/interlock-go/interlock/queue"
)

// core is a [Manager] without type parameters: states, events and rows are indices
// of the table, payloads are bytes. Its methods read and write the records; the Manager
// only converts.
type core struct {
	table        *fsm.Table
	store        Store
	undo         []int // the events that restore the payload from before the operation
	observer     Observer
	beforeCommit func(context.Context, *StoredChange) (*Tx, error) // nil: none
	payloads     payloads
	limits       Limits
	progress     func(what string, done, total int) // nil: none

	version  string  // of the table and payload
	older    []older // versions whose records are read and written too
	switched bool    // new objects have version

	// For operations.
	owner      *Owner   // nil: none
	self       OwnerRef // of the operations that this process starts
	worker     fsm.Actor
	events     decide.Events
	handlers   map[string]Handler
	queue      Queue
	ownQueue   *queue.Queuer[Key]                                    // queue, unless it is Config.Queue; else nil
	observe    func(context.Context, StoredRecord) (sighting, error) // nil: none
	inject     func(context.Context) map[string]string
	extract    func(context.Context, map[string]string) context.Context
	owners     *core      // of the owners in the same store; nil in that core itself
	heartbeats heartbeats // of owners; only in their core
	tasks      tasks
	retries    *retries

	watchers *watchers
}

// sighting is the typed result of Config.Observe.
type sighting struct {
	event int    // -1: the table does not have it
	name  string // of the event
	actor fsm.Actor
}

// payloads is what the core needs the type of the payload for: a [Manager]. Every method
// decodes copies of its own.
type payloads interface {
	// guard runs the guard of a row. Its first result is the guard's refusal, its
	// second one matches ErrForeign if a payload cannot be decoded.
	guard(ctx context.Context, row int, before, after []byte) (refusal, err error)
	// decode returns the value of a payload. The error matches ErrForeign.
	decode(payload []byte) (any, error)
	// editPayload returns an edit of bytes for an edit of the payload, which is a
	// func(*T) error. It returns false for any other type.
	editPayload(edit any) (func(*[]byte) error, bool)
}

func (c *core) key(id string) Key { return Key{Machine: c.table.Name, ID: id} }

// historian returns the store's history, if the store declares it.
func (c *core) historian() (Historian, bool) {
	h, ok := c.store.(Historian)
	return h, ok && c.store.Capabilities().History
}

// failed returns an error about an object that no request stands for.
func (c *core) failed(verb, id string, err error) error {
	return &Error{Verb: verb, Machine: c.table.Name, ID: id, Err: err}
}
