package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/interlock-go/interlock/internal/terminal"
	"github.com/interlock-go/interlock/internal/visible"
)

// The exit codes, see the documentation of the command.
const (
	exitOK = iota
	exitFailure
	exitUsage
	exitNotFound
	exitStuck
)

var (
	errUsage = errors.New("wrong usage")
	errStuck = errors.New("there are stuck objects") // it is not printed
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// command is one of the subcommands.
type command struct {
	name, args, short string
	min, max          int // number of arguments
	run               func(ctx context.Context, c *call, args []string) error
}

var commands = []command{
	{"top", "", "all machines, owners, queues and locks in short", 0, 0, runTop},
	{"list", "MACHINE", "the objects of a machine", 1, 1, runList},
	{"get", "MACHINE ID", "an object and its payload", 2, 2, runObject},
	{"explain", "MACHINE ID", "what moves an object next, and why events are not possible", 2, 2, runObject},
	{"history", "MACHINE ID", "the last changes of an object, the newest first", 2, 2, runHistory},
	{"stuck", "[MACHINE]", "the stuck objects of a machine, or of all", 0, 1, runStuck},
	{"queues", "", "the limits and the keys of the queues of a service", 0, 0, runQueues},
	{"locks", "", "the holders of locks of a service, and waiting requests", 0, 0, runLocks},
}

// run runs a command and returns its exit code.
func run(ctx context.Context, args []string, out, errs io.Writer) int {
	c := &call{out: out, close: func() {}}
	c.http.Timeout = timeout
	flags := c.flags()
	if len(args) == 0 {
		fmt.Fprint(errs, help(flags))
		return exitUsage
	}
	err := fmt.Errorf("%w: there is no such command", errUsage)
	switch name := strings.TrimLeft(args[0], "-"); {
	case name == "help" || name == "h":
		err = flag.ErrHelp
	case name != args[0]:
		err = fmt.Errorf("%w: the command comes first: interlock list -addr URL MACHINE", errUsage)
	}
	for _, cmd := range commands {
		if cmd.name != args[0] {
			continue
		}
		c.command = cmd
		if err = c.start(ctx, flags, args[1:]); err == nil {
			err = c.repeat(ctx, flags.Args(), errs)
		}
		c.close()
	}
	if errors.Is(err, flag.ErrHelp) {
		_, err = io.WriteString(out, help(flags))
	}
	return report(errs, args[0], err)
}

// report prints an error and returns its exit code.
func report(errs io.Writer, name string, err error) int {
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errStuck):
		return exitStuck
	}
	fmt.Fprintf(errs, "interlock %s: %s\n", visible.Escaped(name), visible.Escaped(oneLine(err.Error())))
	if errors.Is(err, errUsage) {
		fmt.Fprintln(errs, "see interlock help")
		return exitUsage
	}
	if p, ok := errors.AsType[*problemError](err); ok && p.Status == http.StatusNotFound {
		return exitNotFound
	}
	return exitFailure
}

// oneLine joins the lines of an error. The lines of a list are indented below its title.
func oneLine(text string) string {
	text = strings.ReplaceAll(text, ":\n", ": ")
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.Join(strings.Fields(lines[i]), " ")
	}
	return strings.Join(lines, "; ")
}

// repeat runs the command once, or with -watch until ctx ends.
func (c *call) repeat(ctx context.Context, args []string, errs io.Writer) error {
	var last error
	for {
		err := c.run(ctx, c, args)
		if c.watch && err != nil && ctx.Err() != nil {
			return last // this round was interrupted
		}
		last = err
		text := c.text.String()
		c.text.Reset()
		switch {
		case c.watch && terminal.Is(c.out):
			text = "\x1b[H\x1b[2J" + text // clears the screen
		case c.watch && c.form == "table":
			text += "---\n"
		}
		if _, failed := io.WriteString(c.out, text); failed != nil {
			if errors.Is(err, errStuck) {
				return failed
			}
			return cmp.Or(err, failed)
		}
		if !c.watch || ctx.Err() != nil {
			return err
		}
		report(errs, c.name, err) // the next round may succeed
		select {
		case <-ctx.Done():
			return err
		case <-time.After(c.every):
		}
	}
}
