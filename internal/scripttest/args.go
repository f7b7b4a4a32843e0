package scripttest

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// Args are the arguments of one command. Reading a value in a wrong form fails the test.
type Args struct {
	t    *testing.T
	d    *datadriven.TestData
	read []bool // by index of the argument
}

// Command returns the name of the command.
func (a *Args) Command() string { return a.d.Cmd }

// Word returns the next argument without "=". It fails the test if there is none.
func (a *Args) Word() string {
	a.t.Helper()
	words := a.take(1, func(arg datadriven.CmdArg) bool { return len(arg.Vals) == 0 })
	if len(words) == 0 {
		a.Fatalf("the command needs another argument")
	}
	return words[0].Key
}

// Words returns all arguments without "=" that were not read yet.
func (a *Args) Words() (words []string) {
	for _, arg := range a.take(len(a.read), func(arg datadriven.CmdArg) bool { return len(arg.Vals) == 0 }) {
		words = append(words, arg.Key)
	}
	return words
}

// Flag reports whether a word is among the arguments. Read flags before words.
func (a *Args) Flag(name string) bool {
	return len(a.take(1, func(arg datadriven.CmdArg) bool { return arg.Key == name && len(arg.Vals) == 0 })) > 0
}

// Values returns the values of key=(value, value); nil if the key is missing.
func (a *Args) Values(key string) []string {
	for _, arg := range a.take(1, func(arg datadriven.CmdArg) bool { return arg.Key == key && len(arg.Vals) > 0 }) {
		return arg.Vals
	}
	return nil
}

// take returns at most so many of the arguments that match and were not read yet.
func (a *Args) take(most int, match func(arg datadriven.CmdArg) bool) (found []datadriven.CmdArg) {
	for i, arg := range a.d.CmdArgs {
		if len(found) < most && !a.read[i] && match(arg) {
			a.read[i], found = true, append(found, arg)
		}
	}
	return found
}

// Value returns the value of key=value, joined by ", " if it is a list; "" if the key is
// missing.
func (a *Args) Value(key string) string { return strings.Join(a.Values(key), ", ") }

// Number returns the value of a key as a number; 0 if the key is missing.
func (a *Args) Number(key string) int {
	a.t.Helper()
	return parse(a, key, strconv.Atoi)
}

// Duration returns the value of a key as a duration; 0 if the key is missing.
func (a *Args) Duration(key string) time.Duration {
	a.t.Helper()
	return parse(a, key, time.ParseDuration)
}

func parse[T any](a *Args, key string, read func(text string) (T, error)) (value T) {
	a.t.Helper()
	text := a.Value(key)
	if text == "" {
		return value
	}
	value, err := read(text)
	if err != nil {
		a.Fatalf("%s: %v", key, err)
	}
	return value
}

// Lines returns the lines below the command, each as its words.
func (a *Args) Lines() (lines [][]string) {
	for text := range strings.Lines(a.d.Input) {
		lines = append(lines, strings.Fields(text))
	}
	return lines
}

// Fatalf fails the test at the position of the command.
func (a *Args) Fatalf(format string, args ...any) {
	a.t.Helper()
	a.d.Fatalf(a.t, format, args...)
}

func (a *Args) checkAllRead() {
	a.t.Helper()
	for i, arg := range a.d.CmdArgs {
		if !a.read[i] {
			a.d.Fatalf(a.t, "the command %s has no argument %q", a.d.Cmd, arg.String())
		}
	}
}
