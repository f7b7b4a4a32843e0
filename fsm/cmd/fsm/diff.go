package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/fsm/evolve"
)

func declareDiff(c *call) func() (bool, error) {
	form := c.oneOf("format", "`form` of the output", "text", "json", "go")
	failOn := c.oneOf("fail-on", "fail at this `level` or above (difference: or if anything differs)",
		"drain", "mapping", "unsafe", "difference", "never")
	var config evolve.Config
	c.flags.Func("map", "a state has a new name, `old=new`; the prefixes event:, actor: and guard: map other names; repeatable",
		func(text string) error { return addMapping(&config, text) })
	c.flags.Func("hold", "no caller fires this `event`, or \"event in state\", while both versions run; repeatable",
		func(text string) error { return addHold(&config, text) })
	return func() (bool, error) {
		report, err := evolve.Diff(c.tables[0], c.tables[1], &config)
		if err != nil {
			return false, err
		}
		if *form == "go" {
			return fails(report, *failOn), c.print(report.Code())
		}
		return fails(report, *failOn), c.report(form, report)
	}
}

var levels = map[string]evolve.Compatibility{
	"drain": evolve.NeedsDrain, "mapping": evolve.NeedsMapping, "unsafe": evolve.Unsafe, "difference": evolve.NeedsDrain,
}

// fails reports whether a change is at or above the level of -fail-on.
func fails(r *evolve.Report, failOn string) bool {
	level, ok := levels[failOn]
	return ok && r.Level >= level || failOn == "difference" && len(r.Differences) > 0
}

// addMapping adds "old=new", with an optional kind and a colon before it.
func addMapping(config *evolve.Config, text string) error {
	names, pair := &config.States, text
	for prefix, other := range map[string]*map[string]string{
		"state:": &config.States, "event:": &config.Events, "actor:": &config.Actors, "guard:": &config.Guards,
	} {
		if rest, ok := strings.CutPrefix(text, prefix); ok {
			names, pair = other, rest
		}
	}
	old, new, ok := strings.Cut(pair, "=")
	if !ok || old == "" || new == "" {
		return errors.New("want old=new")
	}
	if *names == nil {
		*names = map[string]string{}
	}
	if before, ok := (*names)[old]; ok && before != new {
		return fmt.Errorf("%q has the new name %q already", old, before)
	}
	(*names)[old] = new
	return nil
}

// addHold adds "event in state", or "event".
func addHold(config *evolve.Config, text string) error {
	if text == "" {
		return errors.New("no event")
	}
	hold := evolve.Withheld{Event: text}
	if i := strings.LastIndex(text, " in "); i > 0 {
		hold = evolve.Withheld{State: text[i+len(" in "):], Event: text[:i]}
	}
	config.Hold = append(config.Hold, hold)
	return nil
}
