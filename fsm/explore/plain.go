package explore

import (
	"fmt"
	"reflect"
)

// plain returns an error unless == compares the content of values of T.
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
