package main

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/diagram"
)

func declareDraw(c *call) func() (bool, error) {
	form := c.oneOf("format", "`form` of the picture (svg needs dot of Graphviz)",
		"mermaid", "dot", "svg", "markdown", "text")
	var config diagram.Config
	c.flags.StringVar(&config.Current, "at", "", "mark this `state` as the current one")
	return func() (bool, error) {
		t, file := c.tables[0], nameOf(c.files[0])
		if _, found := t.StateIndex(config.Current); config.Current != "" && !found {
			var names []string
			for _, s := range t.States {
				names = append(names, s.Name)
			}
			return false, fmt.Errorf("%s: -at: table %q has no state %q; its states are %q", file, t.Name, config.Current, names)
		}
		if *form == "svg" {
			svg, err := graphviz(diagram.DOT(t, &config))
			if err != nil {
				return false, fmt.Errorf("%s: %w", file, err)
			}
			return false, c.print(svg)
		}
		draw := map[string]func(*fsm.Table, *diagram.Config) string{
			"mermaid": diagram.Mermaid, "dot": diagram.DOT, "markdown": diagram.Markdown, "text": diagram.Text,
		}[*form]
		return false, c.print(draw(t, &config))
	}
}

// graphviz converts DOT to SVG. It runs the program dot.
func graphviz(dot string) (string, error) {
	program, err := exec.LookPath("dot")
	if err != nil {
		return "", fmt.Errorf("svg needs the program dot of Graphviz: %w", err)
	}
	cmd := exec.Command(program, "-Tsvg")
	cmd.Stdin = strings.NewReader(dot)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	svg, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", program, err, strings.TrimSpace(errs.String()))
	}
	return string(svg), nil
}
