package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/fsm/explore"
	"github.com/interlock-go/interlock/fsm/history"
	"github.com/interlock-go/interlock/internal/tablemodel"
	"github.com/interlock-go/interlock/internal/terminal"
)

func declareVerify(c *call) func() (bool, error) {
	form := c.format()
	h := c.historyFlags()
	p := c.protocolFlags()
	return func() (bool, error) {
		// A forgotten history must not turn into another check.
		wrong, why := historyFlagNames, "needs a history"
		if len(c.files) == 2 {
			wrong, why = protocolFlagNames, "is for a table without a history"
		}
		var err error
		c.flags.Visit(func(f *flag.Flag) {
			if slices.Contains(wrong, f.Name) {
				err = misused("-%s %s", f.Name, why)
			}
		})
		if err != nil {
			return false, err
		}
		if len(c.files) == 1 {
			return c.verifyProtocol(p, form)
		}
		return c.verifyHistory(h, form)
	}
}

// historyOptions has the flags for a history.
type historyOptions struct {
	config   history.Config
	versions []history.TableVersion
}

var historyFlagNames = []string{"gaps", "ignore-others", "clock-slack", "version"}

func (c *call) historyFlags() *historyOptions {
	h := &historyOptions{}
	c.flags.BoolVar(&h.config.Gaps, "gaps", false, "the history skips rows, repeats them or starts in the middle")
	c.flags.BoolVar(&h.config.IgnoreOthers, "ignore-others", false, "skip rows of machines without a table")
	c.flags.DurationVar(&h.config.ClockSlack, "clock-slack", 0, "a row may be older by this time than the row of its object before it")
	usage := "a further table, `NAME@SINCE=FILE`, for rows of this version or from this time (RFC 3339) on; " +
		"@SINCE is optional; repeatable"
	c.flags.Func("version", usage, func(text string) error {
		v, err := c.version(text)
		h.versions = append(h.versions, v)
		return err
	})
	return h
}

// version reads NAME@SINCE=FILE.
func (c *call) version(text string) (v history.TableVersion, err error) {
	name, file, ok := strings.Cut(text, "=")
	if !ok || name == "" || file == "" {
		return v, errors.New("want NAME@SINCE=FILE")
	}
	v.Name = name
	if before, since, ok := strings.Cut(name, "@"); ok {
		v.Name = before
		if v.Since, err = time.Parse(time.RFC3339, since); err != nil {
			return v, err
		}
	}
	v.Table, err = c.table(file)
	return v, err
}

// verifyHistory compares a history with the table of its time.
func (c *call) verifyHistory(h *historyOptions, form *string) (bool, error) {
	file := c.files[1]
	in, err := c.open(file)
	if err != nil {
		return false, err
	}
	defer in.Close()
	versions := append([]history.TableVersion{{Table: c.tables[0]}}, h.versions...)
	show, clear := terminal.Progress(c.errs)
	summary, err := history.Check(counted(history.Read(in), show), versions, &h.config)
	clear()
	switch empty := errors.Is(err, history.ErrEmpty); {
	case empty && summary.Ignored > 0:
		return false, fmt.Errorf("%s: %w: all %d rows are of other machines", nameOf(file), err, summary.Ignored)
	case empty && summary.Unreadable > 0: // the file is not a history
		return false, fmt.Errorf("%s: %w: all %d lines are unreadable: %s",
			nameOf(file), err, summary.Unreadable, summary.Findings[0])
	case err != nil:
		return false, fmt.Errorf("%s: %w", nameOf(file), err)
	}
	return !summary.OK(), c.report(form, summary)
}

// counted yields the rows and shows their number. show may be nil.
func counted(rows iter.Seq2[history.Row, error], show func(what string, done, total int)) iter.Seq2[history.Row, error] {
	if show == nil {
		return rows
	}
	return func(yield func(history.Row, error) bool) {
		n := 0
		for row, err := range rows {
			if n++; !yield(row, err) {
				return
			}
			show("check rows", n, 0)
		}
	}
}

// protocolOptions has the flags for a table without a history.
type protocolOptions struct {
	tablemodel.Options
	megabytes int
	trace     string
}

// String returns the budgets with their flags.
func (p *protocolOptions) String() string {
	return fmt.Sprintf("budgets: -operations %d, -capacity %d messages in each direction, -loss %d and -duplicate %d of them, "+
		"-crash %d of the owner", p.Operations, p.Capacity, p.Loss, p.Duplicate, p.Crash)
}

var protocolFlagNames = []string{"operations", "capacity", "loss", "duplicate", "crash", "memory", "trace"}

func (c *call) protocolFlags() *protocolOptions {
	p := &protocolOptions{Options: tablemodel.Usual(), megabytes: 1024}
	count := func(n *int, name, usage string) {
		c.flags.IntVar(n, name, *n, "without a history: "+usage)
	}
	count(&p.Operations, "operations", "users start this `many`")
	count(&p.Capacity, "capacity", "at most this `many` messages are in flight in each direction")
	count(&p.Loss, "loss", "the channels lose this `many` messages")
	count(&p.Duplicate, "duplicate", "the channels duplicate this `many` messages")
	count(&p.Crash, "crash", "the owner of the object dies this `many` times")
	count(&p.megabytes, "memory", "stop, inconclusive, beyond this many `MiB`")
	c.flags.StringVar(&p.trace, "trace", "", "without a history: write the path to a fault into this `file`, as a fixture for a replay")
	return p
}

// protocolResult is the JSON output about a protocol.
type protocolResult struct {
	*explore.Verdict
	Problem string           `json:"problem,omitempty"` // its error, or the reason for an inconclusive outcome
	Trace   string           `json:"trace,omitempty"`   // as text
	Budgets *protocolOptions `json:"budgets"`
}

// verifyProtocol explores the table as a protocol. Every outcome but holds is a
// finding.
func (c *call) verifyProtocol(p *protocolOptions, form *string) (bool, error) {
	t, file := c.tables[0], c.files[0]
	if min(p.Operations, p.Capacity, p.megabytes) < 1 {
		return false, misused("-operations, -capacity and -memory: want 1 or more")
	}
	if min(p.Loss, p.Duplicate, p.Crash) < 0 {
		return false, misused("-loss, -duplicate and -crash: want 0 or more")
	}
	sys, err := tablemodel.System(t, p.Options)
	if err != nil {
		return false, fmt.Errorf("%s: %w", nameOf(file), err)
	}
	show, clear := terminal.Progress(c.errs)
	v, err := sys.Explore(context.Background(), &explore.Config{MaxBytes: min(int64(p.megabytes), 1<<40) << 20, Progress: show})
	clear()
	if err != nil {
		return false, fmt.Errorf("%s: %w", nameOf(file), err)
	}
	if err := writeTrace(v.Trace, p.trace); err != nil {
		return false, err
	}
	findings := v.Outcome != explore.Holds
	if *form == "text" {
		return findings, c.print(strings.TrimSuffix(v.String(), "\n") + "\n" + p.String())
	}
	r := protocolResult{Verdict: v, Budgets: p}
	if err := errors.Join(v.Problem, v.Reason); err != nil {
		r.Problem = err.Error()
	}
	if v.Trace != nil {
		r.Trace = v.Trace.String()
	}
	return findings, c.json(r)
}

// writeTrace writes a trace as a fixture, which [explore.ParseTrace] reads. It writes
// nothing if there is no trace or no file.
func writeTrace(trace *explore.Trace, file string) error {
	if trace == nil || file == "" {
		return nil
	}
	fixture, err := trace.Fixture()
	if err != nil {
		return err
	}
	return os.WriteFile(file, fixture, 0o644)
}
