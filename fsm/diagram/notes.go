package diagram

import (
	"fmt"
	"strings"
)

// notes collects the texts below a table. The nil notes collects nothing, and the
// cells contain the texts.
type notes struct {
	list   []string
	number map[string]int
}

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
	if n.number == nil {
		n.number = make(map[string]int)
	}
	if n.number[doc] == 0 {
		n.list = append(n.list, doc)
		n.number[doc] = len(n.list)
	}
	return fmt.Sprintf("[%d]", n.number[doc])
}

// text returns the notes in lines of at most width characters.
func (n *notes) text(width int) string {
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
