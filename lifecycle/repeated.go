package lifecycle

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/internal/decide"
)

// RequestID identifies a request of a client, so that the client may send it again
// after a lost answer. It is a value. The zero RequestID is none.
type RequestID struct {
	// ID is unique among the requests about all objects of one machine. A service
	// takes it from its client, as a rule from the header Idempotency-Key, and makes it
	// unique to that client. Up to [MaxID] bytes.
	ID string
	// Hash is a hash of what the client has sent. Its form is the caller's. Include the
	// object's id, if the client has chosen it. Default: requests with one ID differ
	// only in verb, event, actor, the state that Add or Override names, and the object, if
	// the request has not created it.
	Hash string
}

// RepeatedError is the answer to a request whose [RequestID] is in the history: the
// request was accepted before. It matches [ErrRepeated]. [Current] returns the
// record that the object has now.
type RepeatedError struct {
	// Row is what the request has done: its object, operation, sequence number and state.
	Row HistoryRow
	// Current is the object's record. A store leaves it zero.
	Current StoredRecord
}

// Error returns what the request has done.
func (e *RepeatedError) Error() string {
	return fmt.Sprintf("%v: request %q has led %s to %s, in operation %d at sequence number %d",
		ErrRepeated, shown(e.Row.Request), e.Row.Key.text(), e.Row.To, e.Row.Operation, e.Row.Sequence)
}

// Is matches [ErrRepeated].
func (e *RepeatedError) Is(target error) bool { return target == ErrRepeated }

// fingerprint returns what two requests with one client's id must have in common, as text.
func (r *request) fingerprint() string {
	to := ""
	if r.ask.Verb == decide.Add || r.ask.Verb == decide.Override {
		to = r.core.table.States[r.ask.To].Name
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %q", r.verb, r.event, to, r.ask.Actor, r.Request.Hash))
	return hex.EncodeToString(sum[:16])
}

// requestedBefore looks for the client's request in the history. It returns a [*RepeatedError]
// if the request is there, and [ErrInvalid] if a different request with the same id is.
func (r *request) requestedBefore(ctx context.Context) error {
	historian, ok := r.core.historian()
	if !ok {
		return fmt.Errorf("%w: a request id: the store keeps no history", errors.ErrUnsupported)
	}
	row, err := historian.Requested(ctx, r.core.table.Name, r.Request.ID)
	if err != nil || row.Request == "" {
		return err
	}
	// The service may choose a new id for the object each time.
	if row.Fingerprint != r.fingerprint() || row.ID != r.key.ID && row.From != "" {
		return fmt.Errorf("%w: request id %q is that of a different request", ErrInvalid, shown(r.Request.ID))
	}
	current, err := r.core.get(ctx, row.Key)
	if err != nil {
		return err
	}
	return &RepeatedError{Row: row, Current: current}
}

// orRepeated returns the error of requests that have failed. If one of them was accepted
// before, it returns this request with a [*RepeatedError]. There are two schedules:
//
//   - Two equal requests find no row; one commits, and the other one is refused in the
//     state that follows.
//   - A transaction is repeated, and its first change is not permitted again. The request
//     id is that of a later change, which was not looked for.
func orRepeated(ctx context.Context, requests []*request, culprit *request, err error) (*request, error) {
	if errors.Is(err, ErrUnknownOutcome) || errors.Is(err, ErrUnavailable) || ctx.Err() != nil {
		return culprit, err
	}
	for _, r := range requests {
		if r.Request.ID == "" || r.check() != nil {
			continue // it was never accepted
		}
		found := r.requestedBefore(ctx)
		// The row that a store returns is not compared with the request yet.
		unknown := found != nil && errors.Is(err, ErrRepeated)
		if unknown || errors.Is(found, ErrRepeated) || errors.Is(found, ErrInvalid) {
			return r, found
		}
	}
	return culprit, err
}
