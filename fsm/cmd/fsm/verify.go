package main

import (
	"errors"
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/interlock-go/interlock/fsm/history"
)

func setupVerify(flags *flag.FlagSet) func(*call, []string) (bool, error) {
	form := format(flags)
	gaps := flags.Bool("gaps", false, "the history skips rows, repeats them or starts in the middle")
	strangers := flags.Bool("ignore-others", false, "skip rows of machines without a table")
	slack := flags.Duration("clock-slack", 0, "a row may be older by this time than the row of its object before it")
	keep := flags.Int("max", 100, "list at most this `many` findings")
	var more list
	flags.Var(&more, "version", "a further table, `NAME@SINCE=FILE`, for rows of this version or from this time (RFC 3339) on; @SINCE is optional; repeatable")
	p := protocolFlags(flags)
	return func(c *call, files []string) (bool, error) {
		switch {
		case len(files) != 1 && len(files) != 2:
			return false, misused("want a table and an optional history, found %d arguments", len(files))
		case *keep < 0:
			return false, misused("-max %d: want 0 or more", *keep)
		}
		// A forgotten history must not turn into another check.
		others, why := ofHistories, "needs a history"
		if len(files) == 2 {
			others, why = ofProtocols, "is for a table without a history"
		}
		for _, name := range others {
			if given(flags, name) {
				return false, misused("-%s %s", name, why)
			}
		}
		t, err := c.table(files[0])
		if err != nil {
			return false, swapped(files, err)
		}
		if len(files) == 1 {
			return c.protocol(t, files[0], p, form.value)
		}
		versions := []history.TableVersion{{Table: t}}
		for _, text := range more {
			v, err := c.version(text)
			if err != nil {
				return false, err
			}
			versions = append(versions, v)
		}
		in, err := c.open(files[1])
		if err != nil {
			return false, err
		}
		defer in.Close()
		config := &history.Config{Gaps: *gaps, IgnoreOthers: *strangers, ClockSlack: *slack, KeepFindings: *keep}
		if *keep == 0 {
			config.KeepFindings = -1
		}
		sum, err := history.Check(history.Read(in), versions, config)
		if errors.Is(err, history.ErrEmpty) && sum.Unreadable > 0 {
			// The file is no history.
			return false, fmt.Errorf("%s: %w: all %d lines are unreadable%s", called(files[1]), err, sum.Unreadable, first(sum.Findings))
		}
		if err != nil {
			return false, fmt.Errorf("%s: %w", called(files[1]), err)
		}
		if form.value == "json" {
			return !sum.OK(), c.json(sum)
		}
		return !sum.OK(), c.print(sum.String())
	}
}

// The flags of verify for a history, and for a table without one.
var (
	ofHistories = []string{"gaps", "ignore-others", "clock-slack", "max", "version"}
	ofProtocols = []string{"operations", "capacity", "loss", "duplicate", "crash", "memory", "workers"}
)

// given reports whether the command line has a flag.
func given(flags *flag.FlagSet, name string) (found bool) {
	flags.Visit(func(f *flag.Flag) { found = found || f.Name == name })
	return found
}

// first returns the first finding after a colon.
func first(list []history.Finding) string {
	if len(list) == 0 {
		return ""
	}
	return ": " + list[0].String()
}

// swapped returns a hint if the first file is no table and the second one is.
func swapped(files []string, err error) error {
	if len(files) != 2 || files[1] == "-" {
		return err
	}
	c := &call{}
	if _, wrong := c.table(files[1]); wrong != nil {
		return err
	}
	return misused("%v; %s is a table: put the table first", err, files[1])
}

// version reads NAME@SINCE=FILE.
func (c *call) version(text string) (v history.TableVersion, err error) {
	name, file, ok := strings.Cut(text, "=")
	if !ok || name == "" || file == "" {
		return v, misused("-version %q: want NAME@SINCE=FILE", text)
	}
	v.Name = name
	if before, since, ok := strings.Cut(name, "@"); ok {
		v.Name = before
		if v.Since, err = time.Parse(time.RFC3339, since); err != nil {
			return v, misused("-version %q: %v", text, err)
		}
	}
	v.Table, err = c.table(file)
	return v, err
}
