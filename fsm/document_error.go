package fsm

import (
	"bytes"
	"fmt"
	"strings"
)

// DocumentError is the fault for which a lifecycle-table/1 document was refused, or
// for which a [Table] cannot be written. It matches [ErrInvalid].
type DocumentError struct {
	Path   string // such as "transitions[123].actor"; empty for the whole document
	Offset int64  // in bytes from the start of the document; -1 when writing
	Line   int    // from 1; 0 when writing
	Column int    // from 1, in bytes; 0 when writing
	Text   string // the fault
}

// Error returns path, fault and position in one line.
func (e *DocumentError) Error() string {
	var b strings.Builder
	b.WriteString("fsm: invalid table: ")
	if e.Path != "" {
		b.WriteString(e.Path)
		b.WriteString(": ")
	}
	b.WriteString(e.Text)
	if e.Line > 0 {
		fmt.Fprintf(&b, " (line %d, column %d, offset %d)", e.Line, e.Column, e.Offset)
	}
	return b.String()
}

// Is matches [ErrInvalid].
func (e *DocumentError) Is(target error) bool { return target == ErrInvalid }

// faultAt returns the error at an offset of a document.
func faultAt(data []byte, offset int, path, text string) *DocumentError {
	before := data[:offset]
	return &DocumentError{
		Path: path, Offset: int64(offset), Text: text,
		Line: 1 + bytes.Count(before, []byte("\n")), Column: offset - bytes.LastIndexByte(before, '\n'),
	}
}

// clip shortens a long string of a hostile document for texts and paths.
func clip(s string) string {
	const limit = 64
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "..."
}
