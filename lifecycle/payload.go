package lifecycle

import (
	"encoding/json"
	"fmt"
	"reflect"
)

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
func editBytes[T any](edit func(*T) error, limit int) func([]byte) ([]byte, error) {
	return func(data []byte) ([]byte, error) {
		payload, err := unpack[T](data)
		if err == nil {
			err = edit(&payload)
		}
		if err != nil {
			return nil, err
		}
		return pack(payload, limit)
	}
}
