package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/interlock-go/interlock/internal/visible"
)

// maxCell is the greatest width of a cell in a table, except the last one of its row.
const maxCell = 120

// show prints a document as JSON, or by a function that prints tables.
func (c *call) show(doc any, tables func(p *printer)) error {
	if c.form == "table" {
		p := &printer{w: tabwriter.NewWriter(&c.text, 0, 8, 2, ' ', 0)}
		tables(p)
		return p.w.Flush()
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(doc); err != nil {
		return err
	}
	c.text.WriteString(visible.EscapedLines(b.String()))
	return nil
}

// printer prints tables with aligned columns.
type printer struct {
	w    *tabwriter.Writer
	used bool // there is a table
}

// table begins a table with n rows, and prints the heads of its columns.
func (p *printer) table(n int, heads string) {
	if n == 0 {
		return
	}
	if p.used {
		fmt.Fprintln(p.w)
	}
	p.used = true
	fmt.Fprintln(p.w, strings.ReplaceAll(heads, ", ", "\t"))
}

// row prints a row. A long cell is cut, because it would widen its column. The last one is not.
func (p *printer) row(cells ...any) {
	for i, cell := range cells {
		text := cmp.Or(visible.Escaped(fmt.Sprint(cell)), "-")
		if utf8.RuneCountInString(text) > maxCell && i < len(cells)-1 {
			text = string([]rune(text)[:maxCell-1]) + "…"
		}
		if i > 0 {
			text = "\t" + text
		}
		fmt.Fprint(p.w, text)
	}
	fmt.Fprintln(p.w)
}

// text prints lines of any length.
func (p *printer) text(lines string) { fmt.Fprint(p.w, visible.EscapedLines(lines)) }

// span returns the time from one point in time to another, in days and hours from one day on.
// It is negative if to is earlier, and "" if one of them is zero.
func span(from, to time.Time) string {
	const day = 24 * time.Hour
	if from.IsZero() || to.IsZero() {
		return ""
	}
	d := to.Sub(from).Truncate(time.Second)
	if d.Abs() < day {
		return d.String()
	}
	return fmt.Sprintf("%dd%dh", d/day, d.Abs()%day/time.Hour)
}
