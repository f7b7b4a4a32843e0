package main

import (
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/interlock-go/interlock/fsm/check"
)

func setupVerify(flags *flag.FlagSet) func(*call, []string) (bool, error) {
	form := format(flags)
	gaps := flags.Bool("gaps", false, "the history skips rows, repeats them and begins in the middle")
	others := flags.Bool("ignore-others", false, "pass over rows of machines of which there is no table")
	slack := flags.Duration("clock-slack", 0, "by how much time may go backwards between two rows of an object")
	keep := flags.Int("max", 100, "list this `many` findings at most")
	var more list
	flags.Var(&more, "version", "a further table, `NAME@SINCE=FILE`, for rows of this version, or from this time (RFC 3339) on; @SINCE may be left out; may be given several times")
	p := protocolFlags(flags)
	return func(c *call, files []string) (bool, error) {
		switch {
		case len(files) != 1 && len(files) != 2:
			return false, misused("want a table, and perhaps a history, found %d arguments", len(files))
		case *keep < 0:
			return false, misused("-max %d: want 0 or more", *keep)
		}
		t, err := c.table(files[0])
		if err != nil {
			return false, err
		}
		if len(files) == 1 {
			return c.protocol(t, files[0], p, form.value)
		}
		versions := []check.TableVersion{{Table: t}}
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
		config := &check.ConformConfig{Gaps: *gaps, IgnoreOthers: *others, ClockSlack: *slack, KeepFindings: *keep}
		if *keep == 0 {
			config.KeepFindings = -1
		}
		sum, err := check.Conform(check.ReadHistory(in), versions, config)
		if err != nil {
			return false, fmt.Errorf("%s: %w", called(files[1]), err)
		}
		if form.value == "json" {
			return !sum.OK(), c.json(sum)
		}
		return !sum.OK(), c.print(sum.String())
	}
}

// version reads NAME@SINCE=FILE.
func (c *call) version(text string) (v check.TableVersion, err error) {
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
