package diagram

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// width is the number of columns after which [Text] breaks cells into several lines. A
// longer word may exceed it.
var width = 96

// grid is a table of escaped cells.
type grid struct {
	head []string
	rows [][]string
}

func (g *grid) add(cells ...string) { g.rows = append(g.rows, cells) }

// used returns the grid without empty columns. A grid without rows keeps its head.
func (g grid) used() grid {
	if len(g.rows) == 0 {
		return g
	}
	u := grid{rows: make([][]string, len(g.rows))}
	for c, head := range g.head {
		if !slices.ContainsFunc(g.rows, func(row []string) bool { return row[c] != "" }) {
			continue
		}
		u.head = append(u.head, head)
		for i, row := range g.rows {
			u.rows[i] = append(u.rows[i], row[c])
		}
	}
	return u
}

// markdown writes one line per row.
func (g grid) markdown() string {
	g = g.used()
	var b strings.Builder
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(g.head)
	line(slices.Repeat([]string{"---"}, len(g.head)))
	for _, row := range g.rows {
		line(row)
	}
	return b.String()
}

// text aligns the columns, and breaks cells so that lines do not exceed width.
func (g grid) text() string {
	g = g.used()
	widths := g.widths()
	var b strings.Builder
	line := func(cells []string) {
		for c, cell := range cells {
			b.WriteString("| " + cell + strings.Repeat(" ", widths[c]-utf8.RuneCountInString(cell)) + " ")
		}
		b.WriteString("|\n")
	}
	line(g.head)
	rule := make([]string, len(g.head))
	for c := range rule {
		rule[c] = strings.Repeat("-", widths[c])
	}
	line(rule)
	for _, row := range g.rows {
		broken := make([][]string, len(row))
		height := 1
		for c, cell := range row {
			broken[c] = wrap(cell, widths[c])
			height = max(height, len(broken[c]))
		}
		for l := range height {
			cells := make([]string, len(row))
			for c := range cells {
				if l < len(broken[c]) {
					cells[c] = broken[c][l]
				}
			}
			line(cells)
		}
	}
	return b.String()
}

// widths returns the width of the longest cell of every column. While the line is too
// long, it reduces the widest column that can be broken.
func (g grid) widths() []int {
	need := make([]int, len(g.head))
	least := make([]int, len(g.head))
	for c, head := range g.head {
		need[c] = max(utf8.RuneCountInString(head), len("---"))
		least[c] = need[c]
		for _, row := range g.rows {
			need[c] = max(need[c], utf8.RuneCountInString(row[c]))
			for _, w := range strings.Fields(row[c]) {
				least[c] = max(least[c], utf8.RuneCountInString(w))
			}
		}
	}
	total := 3*len(need) + 1
	for _, n := range need {
		total += n
	}
	for ; total > width; total-- {
		widest := -1
		for c := range need {
			if need[c] > least[c] && (widest < 0 || need[c] > need[widest]) {
				widest = c
			}
		}
		if widest < 0 {
			break
		}
		need[widest]--
	}
	return need
}

// wrap breaks a text at spaces into lines of at most width characters. A longer word
// has a line of its own.
func wrap(s string, width int) []string {
	var lines []string
	for _, w := range strings.Split(s, " ") {
		last := len(lines) - 1
		if last >= 0 && utf8.RuneCountInString(lines[last])+1+utf8.RuneCountInString(w) <= width {
			lines[last] += " " + w
			continue
		}
		lines = append(lines, w)
	}
	return lines
}
