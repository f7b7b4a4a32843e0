package lifecycle

import (
	"encoding/json"
	"fmt"
	"reflect"
)

// Payload is the user's part of a record as it crosses the driver interface. It
// is immutable. A store that writes bytes calls Bytes; one that keeps values in
// memory keeps the Payload. Whatever a store returns is a Payload that it was
// given, or a [RawPayload] of the same bytes; nil is the zero payload.
type Payload interface {
	Bytes() ([]byte, error)
}

// RawPayload is a payload as encoded bytes.
type RawPayload []byte

// Bytes returns the bytes. They must not be modified.
func (p RawPayload) Bytes() ([]byte, error) { return p, nil }

// Codec turns payloads into bytes and back. It must be safe for concurrent use,
// and Unmarshal of what Marshal gave must give an equal value that shares no
// memory with it.
type Codec interface {
	Marshal(v any) ([]byte, error)
	Unmarshal(data []byte, v any) error
}

// JSON is the default codec.
type JSON struct{}

// Marshal calls [json.Marshal].
func (JSON) Marshal(v any) ([]byte, error) { return json.Marshal(v) }

// Unmarshal calls [json.Unmarshal].
func (JSON) Unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }

// plainPayload is a payload without references: a copy of it shares nothing
// with the original, so it needs no encoding until a store wants bytes.
type plainPayload[T any] struct {
	value T
	codec Codec
}

func (p *plainPayload[T]) Bytes() ([]byte, error) { return encode(p.codec, p.value) }

func encode(codec Codec, v any) ([]byte, error) {
	data, err := codec.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("%w: payload: %w", ErrInvalid, err)
	}
	return data, nil
}

// pack makes a payload of a value. A value with references is encoded at once,
// so that nobody who still holds one of them can change the record.
func (m *Manager[S, E, T]) pack(v T) (Payload, error) {
	if m.plain {
		if m.empty {
			return nil, nil
		}
		return &plainPayload[T]{value: v, codec: m.codec}, nil
	}
	data, err := encode(m.codec, v)
	if err != nil {
		return nil, err
	}
	return RawPayload(data), nil
}

// unpack returns a copy of a payload's value that shares nothing with it.
func (m *Manager[S, E, T]) unpack(p Payload) (v T, err error) {
	switch p := p.(type) {
	case nil:
		return v, nil
	case *plainPayload[T]:
		return p.value, nil
	}
	return m.decode(p)
}

func (m *Manager[S, E, T]) decode(p Payload) (v T, err error) {
	data, err := p.Bytes()
	if err == nil && len(data) > 0 {
		err = m.codec.Unmarshal(data, &v)
	}
	if err != nil {
		return v, fmt.Errorf("%w: payload of %s is not a %v: %w", ErrForeign, m.table.Name, reflect.TypeFor[T](), err)
	}
	return v, nil
}

// isPlain reports whether values of a type hold no references. Strings are
// immutable and count as values.
func isPlain(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return isPlain(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if !isPlain(t.Field(i).Type) {
				return false
			}
		}
		return true
	case reflect.String:
		return true
	}
	return t.Kind() <= reflect.Complex128 && t.Kind() != reflect.Invalid
}
