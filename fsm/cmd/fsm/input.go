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

// open opens a file, or standard input, which is there once.
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

// choice is a flag that is one of some words.
type choice struct {
	value string
	words []string
}

// oneOf declares a flag whose default is the first of the words.
func oneOf(flags *flag.FlagSet, name, usage string, words ...string) *choice {
	c := &choice{words[0], words}
	flags.Var(c, name, usage+": "+strings.Join(words, ", "))
	return c
}

// String returns the word.
func (c *choice) String() string { return c.value }

// Set takes a word.
func (c *choice) Set(s string) error {
	for _, w := range c.words {
		if w == s {
			c.value = s
			return nil
		}
	}
	return fmt.Errorf("want one of %s", strings.Join(c.words, ", "))
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

// format declares the flag that says how results are written.
func format(flags *flag.FlagSet) *choice {
	return oneOf(flags, "format", "`form` of the output", "text", "json")
}

// json writes a value in readable form.
func (c *call) json(v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // nobody puts it into a page, and arrows stay legible
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return err
	}
	return c.print(b.String())
}

// print writes a line. An output that takes nothing is an error: whoever reads it
// must not take silence for success.
func (c *call) print(s string) error {
	if !strings.HasSuffix(s, "\n") {
		s += "\n"
	}
	_, err := io.WriteString(c.out, s)
	return err
}
