package diagram

import (
	"fmt"
	"slices"
	"strings"
)

// notes collects the texts below a table. The nil notes collects nothing, and the
// cells contain the texts.
type notes struct{ list []string }

// cell returns the content of a cell with marks and a text.
func (n *notes) cell(marks []string, doc string) string {
	cell := strings.Join(marks, ", ")
	between := ""
	switch doc = oneLine(doc); {
	case doc == "":
		return cell
	case n != nil:
		doc, between = n.refer(doc), " "
	default:
		doc, between = markdown(doc), "; "
	}
	if cell == "" {
		return doc
	}
	return cell + between + doc
}

// refer returns the mark of a text. Equal texts share a mark.
func (n *notes) refer(doc string) string {
	i := slices.Index(n.list, doc)
	if i < 0 {
		i = len(n.list)
		n.list = append(n.list, doc)
	}
	return fmt.Sprintf("[%d]", i+1)
}

// text returns the notes in lines of at most width characters.
func (n *notes) text() string {
	var b strings.Builder
	for i, doc := range n.list {
		mark := fmt.Sprintf("[%d] ", i+1)
		for _, l := range wrap(doc, width-len(mark)) {
			b.WriteString(mark + l + "\n")
			mark = strings.Repeat(" ", len(mark))
		}
	}
	return b.String()
}
