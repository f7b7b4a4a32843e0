package explore

import (
	"fmt"
	"reflect"
)

// plain returns why values of T cannot be states or messages, nil if they can:
// two of them must be equal whenever nobody can tell them apart, and must stay
// what they are.
func plain[T any]() error {
	t := reflect.TypeFor[T]()
	return plainType(t, t.String())
}

func plainType(t reflect.Type, where string) error {
	switch t.Kind() {
	case reflect.Bool, reflect.String,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return nil
	case reflect.Array:
		return plainType(t.Elem(), where+"[]")
	case reflect.Struct:
		for f := range t.Fields() {
			if err := plainType(f.Type, where+"."+f.Name); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("is not comparable by content: %s is of kind %s", where, t.Kind())
}

// textBytes is how many bytes the strings in a plain value take.
func textBytes(v reflect.Value) (n int64) {
	switch v.Kind() {
	case reflect.String:
		return int64(v.Len())
	case reflect.Array:
		for i := range v.Len() {
			n += textBytes(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			n += textBytes(v.Field(i))
		}
	}
	return n
}
