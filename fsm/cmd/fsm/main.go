package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

// The exit codes, see the documentation of the command.
const (
	exitOK       = 0
	exitFindings = 1
	exitUsage    = 2
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// command is one of the subcommands.
type command struct {
	name  string
	args  string // of the usage line
	short string
	// setup declares the flags and returns the action, which reports whether there
	// are findings.
	setup func(*flag.FlagSet) func(*call, []string) (findings bool, err error)
}

var commands = []command{
	{"check", "table.json...", "report what is wrong or odd in tables", setupCheck},
	{"draw", "table.json", "draw a table", setupDraw},
	{"diff", "old.json new.json", "compare two versions of a table for a rolling upgrade", setupDiff},
	{"verify", "table.json [history]", "judge a history by the table, or the table as a protocol", setupVerify},
	{"tour", "table.json", "list a way through all rows, and the refused requests", setupTour},
}

// call is one run of a command.
type call struct {
	in       io.Reader
	out, err io.Writer
	read     bool // standard input was read
}

// usageError is a mistake in the arguments. run prints it with the usage.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func misused(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// run runs the command and returns its exit code.
func run(args []string, in io.Reader, out, errs io.Writer) int {
	if len(args) == 0 {
		usage(errs)
		return exitUsage
	}
	name, rest := args[0], args[1:]
	switch name {
	case "help", "-h", "-help", "--help":
		return help(rest, out, errs)
	}
	cmd := find(name)
	if cmd == nil {
		fmt.Fprintf(errs, "fsm: unknown command %q\n\n", name)
		usage(errs)
		return exitUsage
	}
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	action := cmd.setup(flags)
	positional, err := parse(flags, rest)
	if errors.Is(err, flag.ErrHelp) {
		cmd.help(out)
		return exitOK
	}
	c := &call{in: in, out: out, err: errs}
	findings := false
	if err != nil {
		err = misused("%v", err)
	} else {
		findings, err = action(c, positional)
	}
	switch wrong, ok := errors.AsType[*usageError](err); {
	case ok:
		fmt.Fprintf(errs, "fsm %s: %v\nusage: fsm %s [flags] %s\nsee fsm help %s\n", name, wrong, name, cmd.args, name)
		return exitUsage
	case err != nil:
		fmt.Fprintf(errs, "fsm %s: %v\n", name, err)
		return exitUsage
	case findings:
		return exitFindings
	}
	return exitOK
}

// parse reads flags before, between and after the arguments, up to "--", and returns
// the arguments.
func parse(flags *flag.FlagSet, args []string) (positional []string, err error) {
	for len(args) > 0 {
		if err := flags.Parse(args); err != nil {
			return nil, err
		}
		rest := flags.Args()
		if ended := len(args) - len(rest); ended > 0 && args[ended-1] == "--" {
			return append(positional, rest...), nil
		}
		if len(rest) == 0 {
			break
		}
		positional, args = append(positional, rest[0]), rest[1:]
	}
	return positional, nil
}

func find(name string) *command {
	for i := range commands {
		if commands[i].name == name {
			return &commands[i]
		}
	}
	return nil
}

func help(args []string, out, errs io.Writer) int {
	if len(args) == 0 {
		usage(out)
		return exitOK
	}
	cmd := find(args[0])
	if cmd == nil {
		fmt.Fprintf(errs, "fsm help: unknown command %q\n", args[0])
		return exitUsage
	}
	cmd.help(out)
	return exitOK
}

func usage(w io.Writer) {
	fmt.Fprint(w, "usage: fsm <command> [flags] [arguments]\n\n")
	for i := range commands {
		fmt.Fprintf(w, "  %-7s %-22s %s\n", commands[i].name, commands[i].args, commands[i].short)
	}
	fmt.Fprint(w, `  help    [command]              describe a command and its flags

Tables are lifecycle-table/1 documents; - is standard input. Flags may stand
anywhere. Exit codes: 0 no findings, 1 findings, 2 wrong usage or bad input.
`)
}

// help describes one command.
func (cmd *command) help(w io.Writer) {
	flags := flag.NewFlagSet(cmd.name, flag.ContinueOnError)
	cmd.setup(flags)
	fmt.Fprintf(w, "usage: fsm %s [flags] %s\n\n%s.\n\nflags:\n", cmd.name, cmd.args, upper(cmd.short))
	flags.SetOutput(w)
	flags.PrintDefaults()
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
