package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/fsm/check"
	"github.com/interlock-go/interlock/internal/visible"
)

// checked is one table of the output.
type checked struct {
	File     string         `json:"file"`
	Name     string         `json:"name"`
	Findings check.Findings `json:"findings"`
	Facts    *check.Report  `json:"facts,omitempty"`
}

var severities = map[string]check.Severity{"error": check.Error, "warning": check.Warning, "info": check.Info}

func declareCheck(c *call) func() (bool, error) {
	form := c.format()
	failOn := c.oneOf("fail-on", "fail if there are findings of this `severity` or above",
		"error", "warning", "info", "never")
	show := c.oneOf("show", "list findings of this `severity` and above in the text, and those that fail", "warning", "info", "error")
	facts := c.flags.Bool("facts", false, "add the facts to the JSON")
	var skip []string
	c.flags.Func("skip", "omit an intended finding, `ID or ID:STATE`; repeatable", func(text string) error {
		skip = append(skip, text)
		id, _, _ := strings.Cut(text, ":")
		if !slices.Contains(check.LintIDs(), id) {
			return fmt.Errorf("unknown id %q, want one of %s", id, strings.Join(check.LintIDs(), ", "))
		}
		return nil
	})
	return func() (bool, error) {
		var tables []checked
		failed := false
		for i, t := range c.tables {
			findings := check.Lint(t, &check.LintConfig{Skip: skip})
			if least, ok := severities[*failOn]; ok {
				failed = failed || len(findings.AtLeast(least)) > 0
			}
			tables = append(tables, checked{nameOf(c.files[i]), t.Name, findings, check.Analyze(t)})
		}
		if *form == "json" {
			for i := range tables {
				if !*facts {
					tables[i].Facts = nil
				}
			}
			return failed, c.json(tables)
		}
		least := severities[*show]
		if fails, ok := severities[*failOn]; ok {
			least = min(least, fails)
		}
		for _, r := range tables {
			if err := c.print(r.text(least)); err != nil {
				return false, err
			}
		}
		return failed, nil
	}
}

// text returns a line about the table, then its findings.
func (r *checked) text(least check.Severity) string {
	var b strings.Builder
	b.WriteString(r.Facts.String())
	file := visible.Escaped(r.File)
	shown := r.Findings.AtLeast(least)
	for line := range strings.Lines(shown.String()) {
		fmt.Fprintf(&b, "\n%s: %s", file, strings.TrimSuffix(line, "\n"))
	}
	fmt.Fprintf(&b, "\n%s: %d finding", file, len(shown))
	if len(shown) != 1 {
		b.WriteString("s")
	}
	if more := len(r.Findings) - len(shown); more > 0 {
		fmt.Fprintf(&b, ", and %d below %s (see -show)", more, least)
	}
	return b.String()
}
