// Package protect calls functions of users whose panic must not end the caller.
package protect

import (
	"runtime/debug"

	"github.com/interlock-go/interlock/queue"
)

// Call calls a function in a goroutine of its own and waits for it, so that a panic or
// runtime.Goexit becomes an error, which is a [*queue.PanicError].
func Call(f func() error) error { return <-Start(f) }

// Start is Call without the wait. The channel has room for the error.
func Start(f func() error) <-chan error {
	result := make(chan error, 1)
	go func() {
		err := error(&queue.PanicError{Goexit: true}) // unless f returns or panics
		defer func() {
			if v := recover(); v != nil {
				err = &queue.PanicError{Value: v, Stack: debug.Stack()}
			}
			result <- err
		}()
		err = f()
	}()
	return result
}
