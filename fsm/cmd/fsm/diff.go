package main

import (
	"flag"
	"strings"

	"github.com/interlock-go/interlock/fsm/evolve"
)

func setupDiff(flags *flag.FlagSet) func(*call, []string) (bool, error) {
	form := format(flags)
	failOn := oneOf(flags, "fail-on", "fail at this `level` or a worse one", "unsafe", "mapping", "drain", "difference", "never")
	var renames, held list
	flags.Var(&renames, "map", "a state has a new name, `old=new`; with event:, actor: or guard: before it another thing; repeatable")
	flags.Var(&held, "hold", "no caller fires this `event`, or \"event in state\", while both versions run; repeatable")
	return func(c *call, files []string) (bool, error) {
		if len(files) != 2 {
			return false, misused("want an old and a new table, found %d", len(files))
		}
		config := &evolve.Config{}
		for _, r := range renames {
			if err := mapping(config, r); err != nil {
				return false, err
			}
		}
		for _, h := range held {
			if h == "" {
				return false, misused("-hold: no event")
			}
			config.Hold = append(config.Hold, withheld(h))
		}
		old, err := c.table(files[0])
		if err != nil {
			return false, err
		}
		new, err := c.table(files[1])
		if err != nil {
			return false, err
		}
		e, err := evolve.Diff(old, new, config)
		if err != nil {
			return false, err
		}
		if form.value == "json" {
			err = c.json(e)
		} else {
			err = c.print(e.String())
		}
		if err != nil {
			return false, err
		}
		return gate(e, failOn.value), nil
	}
}

// gate reports whether a change fails.
func gate(e *evolve.Report, failOn string) bool {
	switch failOn {
	case "never":
		return false
	case "difference":
		return len(e.Differences) > 0 || e.Level > evolve.Compatible
	}
	least := map[string]evolve.Compatibility{"unsafe": evolve.Unsafe, "mapping": evolve.NeedsMapping, "drain": evolve.NeedsDrain}[failOn]
	return e.Level >= least
}

// mapping adds "old=new", with an optional kind and a colon before it.
func mapping(config *evolve.Config, text string) error {
	to := &config.States
	pair := text
	for prefix, names := range map[string]*map[string]string{
		"state:": &config.States, "event:": &config.Events, "actor:": &config.Actors, "guard:": &config.Guards,
	} {
		if rest, ok := strings.CutPrefix(text, prefix); ok {
			to, pair = names, rest
		}
	}
	old, new, ok := strings.Cut(pair, "=")
	if !ok || old == "" || new == "" {
		return misused("-map %q: want old=new", text)
	}
	if *to == nil {
		*to = map[string]string{}
	}
	if before, ok := (*to)[old]; ok && before != new {
		return misused("-map %q: %q has the new name %q already", text, old, before)
	}
	(*to)[old] = new
	return nil
}

// withheld reads "event in state", or "event".
func withheld(text string) evolve.Withheld {
	if i := strings.LastIndex(text, " in "); i > 0 {
		return evolve.Withheld{State: text[i+4:], Event: text[:i]}
	}
	return evolve.Withheld{Event: text}
}
