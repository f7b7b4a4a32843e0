// Package teetest tests the functions Tee of the packages with observers.
package teetest

import (
	"context"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

type calledKey struct{}

// Run tests that every function of an observer of three reaches those that are not nil, in
// order and with the caller's context, also if one panics. O is a struct of functions with
// a context and an event.
func Run[O any](t *testing.T, tee func(...O) O) {
	of := reflect.TypeFor[O]()
	require.Zero(t, tee(), "no observers")
	require.Zero(t, tee(*new(O), *new(O)), "observers without functions")
	for i := range of.NumField() {
		t.Run(of.Field(i).Name, func(t *testing.T) {
			observer := func(name string) (o O) {
				call := func(args []reflect.Value) []reflect.Value {
					called := args[0].Interface().(context.Context).Value(calledKey{}).(*string)
					*called += name
					if name == "!" {
						panic("observer")
					}
					return nil
				}
				reflect.ValueOf(&o).Elem().Field(i).Set(reflect.MakeFunc(of.Field(i).Type, call))
				return o
			}
			var called string
			ctx := reflect.ValueOf(context.WithValue(t.Context(), calledKey{}, &called))
			event := reflect.Zero(of.Field(i).Type.In(1))
			all := reflect.ValueOf(tee(observer("a"), *new(O), observer("!"), observer("b")))
			require.PanicsWithValue(t, "observer", func() { all.Field(i).Call([]reflect.Value{ctx, event}) })
			require.Equal(t, "a!b", called)
			for other := range of.NumField() {
				require.Equal(t, other != i, all.Field(other).IsNil())
			}
		})
	}
}
