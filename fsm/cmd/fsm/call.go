package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/visible"
)

// call is one run of a command.
type call struct {
	cmd    command
	in     io.Reader
	out    io.Writer
	errs   io.Writer // receives progress if it is a terminal
	flags  *flag.FlagSet
	files  []string // the arguments
	tables []*fsm.Table
	read   bool // standard input was read
}

// usageError is a mistake in the arguments. The command prints it with the usage.
type usageError struct{ error }

func misused(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// parse parses the flags and reads the tables. It returns [flag.ErrHelp] after it has
// printed the help that the caller requested.
func (c *call) parse(args []string) error {
	c.flags.SetOutput(io.Discard)
	err := c.flags.Parse(args)
	c.files = c.flags.Args()
	switch {
	case errors.Is(err, flag.ErrHelp):
		var help strings.Builder
		fmt.Fprintf(&help, "usage: fsm %s [flags] %s\n\nfsm %s: %s\n\nflags:\n", c.cmd.name, c.cmd.args, c.cmd.name, c.cmd.short)
		c.flags.SetOutput(&help)
		c.flags.PrintDefaults()
		return cmp.Or(c.print(help.String()), err)
	case err != nil:
		return misused("%v", err)
	}
	for _, file := range c.files {
		name, _, _ := strings.Cut(strings.TrimLeft(file, "-"), "=")
		if strings.HasPrefix(file, "-") && c.flags.Lookup(name) != nil {
			return misused("%s comes too late: flags stand before the arguments", file)
		}
	}
	if n := len(c.files); n < c.cmd.min || n > c.cmd.max {
		return misused("want %s, found %d arguments", c.cmd.args, n)
	}
	for _, file := range c.files[:min(len(c.files), c.cmd.tables)] {
		t, err := c.table(file)
		if err != nil {
			return err
		}
		c.tables = append(c.tables, t)
	}
	return nil
}

// oneOf declares a flag with a set of values. The first is the default.
func (c *call) oneOf(name, usage string, values ...string) *string {
	value := values[0]
	c.flags.Func(name, usage+": "+value+" (the default), "+strings.Join(values[1:], ", "), func(text string) error {
		if !slices.Contains(values, text) {
			return fmt.Errorf("want one of %s", strings.Join(values, ", "))
		}
		value = text
		return nil
	})
	return &value
}

// format declares the flag for the form of the output.
func (c *call) format() *string {
	return c.oneOf("format", "`form` of the output", "text", "json")
}

// table reads a table from a file, or from standard input.
func (c *call) table(path string) (*fsm.Table, error) {
	in, err := c.open(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	t, err := fsm.ReadTable(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", nameOf(path), err)
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

// nameOf returns the name of an input for messages.
func nameOf(path string) string {
	if path == "-" {
		return "standard input"
	}
	return path
}

// report writes a result as text or JSON.
func (c *call) report(form *string, result fmt.Stringer) error {
	if *form == "json" {
		return c.json(result)
	}
	return c.print(result.String())
}

// json writes a value as indented JSON. Names in it send nothing to a terminal.
func (c *call) json(v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // keeps arrows legible
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return err
	}
	return c.print(visible.EscapedLines(b.String()))
}

// print writes a text and ends it with a newline. It returns the error of the output,
// so that an incomplete output never looks like success.
func (c *call) print(s string) error {
	if !strings.HasSuffix(s, "\n") {
		s += "\n"
	}
	_, err := io.WriteString(c.out, s)
	return err
}
