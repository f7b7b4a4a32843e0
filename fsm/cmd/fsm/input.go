package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/interlock-go/interlock/fsm"
)

// table reads a table from a file, or from standard input.
func (c *call) table(path string) (*fsm.Table, error) {
	in, err := c.open(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	t, err := fsm.ReadTable(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", called(path), err)
	}
	return t, nil
}

// open opens a file, or standard input, which can be read once.
func (c *call) open(path string) (io.ReadCloser, error) {
	if path != "-" {
		return os.Open(path)
	}
	if c.read {
		return nil, misused("standard input can be read once")
	}
	c.read = true
	return io.NopCloser(c.in), nil
}

func called(path string) string {
	if path == "-" {
		return "standard input"
	}
	return path
}

// choice is a flag with a fixed set of values.
type choice struct {
	value  string
	values []string
}

// oneOf declares a flag with a set of values. The first is the default.
func oneOf(flags *flag.FlagSet, name, usage string, values ...string) *choice {
	c := &choice{values[0], values}
	flags.Var(c, name, usage+": "+strings.Join(values, ", "))
	return c
}

// String returns the value.
func (c *choice) String() string { return c.value }

// Set sets the value.
func (c *choice) Set(s string) error {
	for _, w := range c.values {
		if w == s {
			c.value = s
			return nil
		}
	}
	return fmt.Errorf("want one of %s", strings.Join(c.values, ", "))
}

// list is a flag that may be given several times.
type list []string

// String returns the values.
func (l *list) String() string { return strings.Join(*l, ", ") }

// Set adds a value.
func (l *list) Set(s string) error {
	*l = append(*l, s)
	return nil
}

// format declares the flag for the form of the output.
func format(flags *flag.FlagSet) *choice {
	return oneOf(flags, "format", "`form` of the output", "text", "json")
}

// json writes a value in readable form.
func (c *call) json(v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // arrows stay legible
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return err
	}
	return c.print(b.String())
}

// print writes a line. It returns the error of the output, so that an incomplete
// output never looks like success.
func (c *call) print(s string) error {
	if !strings.HasSuffix(s, "\n") {
		s += "\n"
	}
	_, err := io.WriteString(c.out, s)
	return err
}
