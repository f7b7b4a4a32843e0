package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// call is one run of a command.
type call struct {
	command
	client
	addr, dsn, prefix string
	tables            []string
	form              string
	watch             bool
	every             time.Duration
	states            []string
	limit             int

	out   io.Writer
	text  strings.Builder // the output of a round
	close func()
}

// flags returns the flags of all commands.
func (c *call) flags() *flag.FlagSet {
	flags := flag.NewFlagSet("interlock", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&c.addr, "addr", "", "`URL` of the inspect page of a service; default: environment variable INTERLOCK_ADDR")
	flags.StringVar(&c.dsn, "dsn", "", "instead of -addr: `database` of a store, a SQLite file or postgres:// or mysql:// URL; default: environment variable INTERLOCK_DSN")
	flags.Func("table", "with -dsn: `[VERSION=]FILE` of the table of a machine; repeatable", func(s string) error {
		c.tables = append(c.tables, s)
		return nil
	})
	flags.StringVar(&c.prefix, "prefix", "", "with -dsn: `prefix` of the tables of the store; default: interlock_")
	flags.StringVar(&c.form, "o", "table", "`form` of the output: table or json")
	flags.BoolVar(&c.watch, "watch", false, "repeat until an interrupt")
	flags.DurationVar(&c.every, "every", 2*time.Second, "with -watch: `pause` between two rounds")
	flags.Func("state", "list: only objects in this `state`; repeatable", func(s string) error {
		c.states = append(c.states, s)
		return nil
	})
	flags.IntVar(&c.limit, "limit", 0, "list: at most this `many` objects; 0: all")
	return flags
}

// start parses the flags and makes the client.
func (c *call) start(ctx context.Context, flags *flag.FlagSet, args []string) error {
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return err
	} else if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	if c.addr == "" && c.dsn == "" {
		c.addr, c.dsn = os.Getenv("INTERLOCK_ADDR"), os.Getenv("INTERLOCK_DSN")
	}
	if wrong := c.wrong(flags.Args()); wrong != "" {
		return fmt.Errorf("%w: %s", errUsage, wrong)
	}
	if c.dsn != "" {
		return c.openStore(ctx)
	}
	return c.dial(c.addr)
}

// wrong returns what is wrong with the flags, and with the number of arguments.
func (c *call) wrong(args []string) string {
	late := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "-") })
	switch n := len(args); {
	case n > c.max && late >= 0:
		return args[late] + " comes too late: flags stand before the arguments"
	case n < c.min || n > c.max:
		return strings.TrimRight("the arguments are [flags] "+c.args, " ")
	case c.form != "table" && c.form != "json":
		return "-o is table or json"
	case c.every <= 0 || c.limit < 0:
		return "-every is above 0, and -limit is not negative"
	case c.name != "list" && (len(c.states) > 0 || c.limit > 0):
		return "-state and -limit are for list"
	case (c.addr == "") == (c.dsn == ""):
		return "want either -addr or -dsn"
	case (c.dsn == "") != (len(c.tables) == 0):
		return "-dsn and -table need each other"
	case c.dsn == "" && c.prefix != "":
		return "-prefix needs -dsn"
	case c.dsn != "" && (c.name == "queues" || c.name == "locks"):
		return c.name + " needs -addr: they are not in the store"
	}
	return ""
}

// help returns the usage.
func help(flags *flag.FlagSet) string {
	var b strings.Builder
	b.WriteString("usage: interlock <command> [flags] [arguments]\n\n")
	for _, cmd := range commands {
		fmt.Fprintf(&b, "  %-7s %-11s %s\n", cmd.name, cmd.args, cmd.short)
	}
	b.WriteString("\nflags, before the arguments:\n\n")
	flags.VisitAll(func(f *flag.Flag) {
		value, text := flag.UnquoteUsage(f)
		fmt.Fprintf(&b, "  %-23s %s\n", strings.TrimSpace("-"+f.Name+" "+value), text)
	})
	b.WriteString(`
With -dsn there are no queues, no locks, and no objects in tables of the service
(sqlstore.ExistingTable), stuck or not: read them with -addr.

exit codes:

  0  success
  1  failure: the service or the store does not answer, or refuses
  2  wrong usage
  3  the machine or the object does not exist
  4  stuck: there are stuck objects
`)
	return b.String()
}
