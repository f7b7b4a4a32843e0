package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/interlock-go/interlock/internal/visible"
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
	name     string
	args     string // of the usage line
	min, max int    // number of arguments
	tables   int    // number of the arguments that are tables
	short    string
	// declare declares the flags. It returns the function that runs the command after
	// the call has parsed the flags and read the tables.
	declare func(c *call) (run func() (findings bool, err error))
}

const unlimited = 1 << 30

var commands = []command{
	{"check", "table.json...", 1, unlimited, unlimited, "report faults and oddities of tables", declareCheck},
	{"draw", "table.json", 1, 1, 1, "draw a table", declareDraw},
	{"diff", "old.json new.json", 2, 2, 2, "compare two versions of a table for a rolling upgrade", declareDiff},
	{"verify", "table.json [history]", 1, 2, 1, "check a history by the table, or the table as a protocol", declareVerify},
	{"tour", "table.json", 1, 1, 1, "list a path through all rows, and the refused requests", declareTour},
}

// run runs a command and returns its exit code.
func run(args []string, in io.Reader, out, errs io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(errs, usage())
		return exitUsage
	}
	name, rest := args[0], args[1:]
	if name == "help" && len(rest) > 0 {
		name, rest = rest[0], []string{"-h"}
	}
	switch name {
	case "help", "-h", "-help", "--help":
		if _, err := io.WriteString(out, usage()); err != nil {
			fmt.Fprintf(errs, "fsm help: %v\n", err)
			return exitUsage
		}
		return exitOK
	}
	for _, cmd := range commands {
		if cmd.name == name {
			c := &call{cmd: cmd, in: in, out: out, errs: errs, flags: flag.NewFlagSet(cmd.name, flag.ContinueOnError)}
			return c.run(rest)
		}
	}
	fmt.Fprintf(errs, "fsm: unknown command %q\n\n%s", name, usage())
	return exitUsage
}

// run runs the command, prints its error in one line and returns the exit code.
func (c *call) run(args []string) int {
	cmd, run := c.cmd, c.cmd.declare(c)
	findings, err := false, c.parse(args)
	if err == nil {
		findings, err = run()
	}
	if errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	if err != nil {
		text := strings.ReplaceAll(err.Error(), "\n", "; ")
		fmt.Fprintf(c.errs, "fsm %s: %s\n", cmd.name, visible.Escaped(text))
		if errors.As(err, new(usageError)) {
			fmt.Fprintf(c.errs, "usage: fsm %s [flags] %s\nsee fsm help %s\n", cmd.name, cmd.args, cmd.name)
		}
		return exitUsage
	}
	if findings {
		return exitFindings
	}
	return exitOK
}

func usage() string {
	var b strings.Builder
	b.WriteString("usage: fsm <command> [flags] [arguments]\n\n")
	for _, cmd := range commands {
		fmt.Fprintf(&b, "  %-7s %-22s %s\n", cmd.name, cmd.args, cmd.short)
	}
	b.WriteString(`  help    [command]              describe a command and its flags

Tables are lifecycle-table/1 documents, which fsm.WriteTable writes. A history has
one JSON object a line, see history.Read. - is standard input. Flags stand before the
arguments. Exit codes: 0 no findings, 1 findings, 2 wrong usage or bad input.
`)
	return b.String()
}
