package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/diagram"
)

func setupDraw(flags *flag.FlagSet) func(*call, []string) (bool, error) {
	form := oneOf(flags, "format", "`form` of the picture (svg needs dot of Graphviz; json is the table itself)",
		"mermaid", "dot", "svg", "markdown", "text", "json")
	file := flags.String("o", "", "write to this `file` instead of standard output")
	var config diagram.Config
	flags.BoolVar(&config.LeftToRight, "left-to-right", false, "draw from left to right")
	flags.BoolVar(&config.HideActors, "hide-actors", false, "leave out the actors")
	flags.BoolVar(&config.ShowIgnored, "show-ignored", false, "draw rows that ignore their event, too")
	flags.BoolVar(&config.CollapseAny, "collapse-any", false, "one arrow for a row of any state")
	flags.IntVar(&config.Width, "width", 0, "`columns` that text tries to keep (default 96)")
	return func(c *call, files []string) (bool, error) {
		if len(files) != 1 {
			return false, misused("want one table, found %d", len(files))
		}
		t, err := c.table(files[0])
		if err != nil {
			return false, err
		}
		picture, err := draw(t, form.value, &config)
		if err != nil {
			return false, fmt.Errorf("%s: %w", called(files[0]), err)
		}
		if *file != "" {
			return false, os.WriteFile(*file, []byte(picture), 0o644)
		}
		return false, c.print(picture)
	}
}

// draw returns a picture of a table, ending with a newline.
func draw(t *fsm.Table, form string, config *diagram.Config) (picture string, err error) {
	switch form {
	case "mermaid":
		picture = diagram.Mermaid(t, config)
	case "dot":
		picture = diagram.DOT(t, config)
	case "markdown":
		picture = diagram.Markdown(t, config)
	case "text":
		picture = diagram.Text(t, config)
	case "svg":
		picture, err = graphviz(diagram.DOT(t, config))
	case "json":
		var b bytes.Buffer
		err = fsm.WriteTable(&b, t)
		picture = b.String()
	}
	if err == nil && !strings.HasSuffix(picture, "\n") {
		picture += "\n"
	}
	return picture, err
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
