package lifecycle

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/fsm"
)

// Record is what a store keeps of one object. It is a value: the payload shares no
// memory with the store, and changing it changes nothing there.
type Record[S comparable, T any] struct {
	ID string
	fsm.Status[S]
	Target    string    // the state that the operation leads to; empty if the table does not name it
	Revision  Revision  // new with every commit; compare for equality only
	ETag      string    // of the last change, in double quotes; see [Change].IfMatch
	Sequence  uint64    // counts the changes
	Operation OpID      // the present operation, or the last one; 0: there was none
	Admission Token     // identifies the operation; zero: there was none
	Owner     string    // the process that executes the operation
	Epoch     uint64    // of the owner
	Deadline  time.Time // when the sweeper acts; zero: none, see [Manager.Sweep]
	ChangedAt time.Time // by the store's clock
	Actor     fsm.Actor // of the last change
	Event     string    // of the last change; empty: the object was added
	Reason    string    // of the last change
	Version   string    // of the table in whose form the store keeps the record, see [Config].Version
	Payload   T

	// Err is set only by [Adopt], and by [Manager.List] and [Manager.All] for an
	// object whose record cannot be read: it is an [*Error] that matches [ErrForeign].
	// Status and Payload are then zero and mean nothing; the other fields are those of the
	// stored record.
	Err error
}

// record brings a stored record into the form of this version and returns its typed form.
// The error matches [ErrForeign].
func (m *Manager[S, E, T]) record(r *StoredRecord) (Record[S, T], error) {
	version := r.Version
	if _, _, err := m.core.recognize(r); err != nil {
		return Record[S, T]{}, err
	}
	rec, err := m.typed(r)
	rec.Version = version
	return rec, err
}

// typed returns the typed form of a record that is in the form of this version. The error
// matches [ErrForeign].
func (m *Manager[S, E, T]) typed(r *StoredRecord) (Record[S, T], error) {
	status, err := m.machine.ParseStatus(r.State, r.Origin)
	if err != nil {
		return Record[S, T]{}, fmt.Errorf("%w: %w", ErrForeign, err)
	}
	payload, err := unpack[T](r.Payload)
	if err != nil {
		return Record[S, T]{}, err
	}
	return newRecord(status, r, payload), nil
}

func newRecord[S comparable, T any](status fsm.Status[S], r *StoredRecord, payload T) Record[S, T] {
	return Record[S, T]{
		ID: r.ID, Status: status, Target: r.Target, Revision: r.Revision, ETag: r.etag(), Sequence: r.Sequence,
		Operation: r.Operation, Admission: r.Admission, Owner: r.Owner, Epoch: r.Epoch, Deadline: r.Deadline, ChangedAt: r.ChangedAt,
		Actor: r.Actor, Event: r.Event, Reason: r.Reason, Version: r.Version, Payload: payload,
	}
}

// guard runs the guard of a row on copies of the payloads: what it changes in them
// changes nothing.
func (m *Manager[S, E, T]) guard(ctx context.Context, row int, before, after []byte) (refusal, err error) {
	was, err := unpack[T](before)
	if err != nil {
		return nil, err
	}
	is, err := unpack[T](after)
	if err != nil {
		return nil, err
	}
	return m.machine.Check(ctx, row, &was, &is), nil
}

func (m *Manager[S, E, T]) decode(data []byte) (any, error) { return unpack[T](data) }

func (m *Manager[S, E, T]) editPayload(edit any) (func(*[]byte) error, bool) {
	typed, ok := edit.(func(*T) error)
	if !ok {
		return nil, false
	}
	return editBytes(typed, m.core.limits.Payload), true
}

// mostLevels is how many levels of nested values package encoding/json reads.
const mostLevels = 10_000

// pack encodes a payload of limited size. A payload type without any bits is kept as
// nothing.
func pack[T any](v T, limit int) ([]byte, error) {
	if reflect.TypeFor[T]().Size() == 0 {
		return nil, nil
	}
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("%w: payload: %w", ErrInvalid, err)
	}
	// Marshal counts the levels of a json.RawMessage from its own beginning. The record
	// could not be read again.
	if len(data) > mostLevels && !json.Valid(data) {
		return nil, fmt.Errorf("%w: payload of more than %d nested levels", ErrInvalid, mostLevels)
	}
	return data, checkSize("payload", len(data), limit)
}

// unpack decodes a payload. The value shares no memory with the bytes. The error
// matches [ErrForeign].
func unpack[T any](data []byte) (v T, err error) {
	if len(data) == 0 {
		return v, nil
	}
	if err = json.Unmarshal(data, &v); err != nil {
		return v, fmt.Errorf("%w: payload is not a %v: %w", ErrForeign, reflect.TypeFor[T](), err)
	}
	return v, nil
}

// editBytes returns an edit of the encoded payload for an edit of the payload. The
// result shares no memory with what the edit has put into the payload.
func editBytes[T any](edit func(*T) error, limit int) func(*[]byte) error {
	return func(data *[]byte) error {
		payload, err := unpack[T](*data)
		if err == nil {
			err = edit(&payload)
		}
		if err == nil {
			*data, err = pack(payload, limit)
		}
		return err
	}
}

// etag returns the ETag of a record, empty if the object does not exist:
//
//	"sequence-token"    token: the first 8 bytes of ChangeToken in hex
//
// Commits that change metadata only keep both. The token distinguishes two changes with
// one number, after the store has lost its newest commits.
func (r *StoredRecord) etag() string {
	if !r.Exists() {
		return ""
	}
	return `"` + strconv.FormatUint(r.Sequence, 10) + "-" + hex.EncodeToString(r.ChangeToken[:8]) + `"`
}

// anETag is a pattern of an ETag (RFC 9110). It may contain a comma.
const anETag = `(?:W/)?"[^"]*"`

var (
	eTags = regexp.MustCompile(anETag)
	// eTagList is a list of ETags. A list may have empty elements.
	eTagList = regexp.MustCompile(`^[ \t,]*` + anETag + `(?:[ \t]*,[ \t,]*` + anETag + `)*[ \t,]*$`)
)

// matches reports whether a record matches the value of an If-Match header (RFC 9110): a
// list of ETags, or *. Weak ETags match nothing.
func (r *StoredRecord) matches(ifMatch string) bool {
	if strings.TrimSpace(ifMatch) == "*" {
		return r.Exists()
	}
	return slices.Contains(eTags.FindAllString(ifMatch, -1), r.etag())
}
