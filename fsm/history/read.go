package history

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"unicode/utf8"
)

// The limits of a history in lines.
const (
	maxLine = 256 << 10 // bytes of a line
	maxID   = 1 << 10   // bytes of the id of an object
)

// LineError describes a line that [Read] cannot read.
type LineError struct {
	Line int    // counted from 1
	Text string // one line
}

// Error names the line.
func (e *LineError) Error() string { return fmt.Sprintf("history: read line %d: %s", e.Line, e.Text) }

// Read reads JSON lines, one object a line, with the fields of [Row]:
//
//	{"machine": "vm", "id": "v1", "version": "2", "sequence": 7, "operation": 3,
//	 "from": "Ready", "fromOrigin": "Ready", "to": "Updating", "origin": "Ready",
//	 "event": "update", "actor": "user", "at": "2026-01-02T15:04:05Z"}
//
// Only id and to are mandatory. Read ignores other fields and empty lines. A line
// that it cannot read, such as one of more than 256 KiB, gives a [*LineError], and Read goes
// on with the next line. An
// error of r ends the sequence. A caller can use the sequence once.
func Read(r io.Reader) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		in := &lineReader{r: bufio.NewReaderSize(r, 64<<10)}
		for n := 1; ; n++ {
			line, whole, err := in.next()
			end := errors.Is(err, io.EOF)
			if err != nil && !end {
				yield(Row{Line: n}, err)
				return
			}
			if len(bytes.TrimSpace(line)) > 0 || !whole {
				row, fault := parse(line, whole)
				row.Line = n
				var err error
				if fault != "" {
					row, err = Row{Line: n}, &LineError{n, fault}
				}
				if !yield(row, err) {
					return
				}
			}
			if end {
				return
			}
		}
	}
}

// parse reads a line. fault is empty if the row is sound.
func parse(line []byte, whole bool) (row Row, fault string) {
	if !whole {
		return row, fmt.Sprintf("more than %d bytes", maxLine)
	}
	if !utf8.Valid(line) {
		return row, "not UTF-8"
	}
	if err := json.Unmarshal(line, &row); err != nil {
		return row, err.Error()
	}
	switch {
	case row.ID == "":
		return row, "no id"
	case row.To == "":
		return row, "no to"
	case len(row.ID) > maxID:
		return row, fmt.Sprintf("an id of %d bytes, more than %d", len(row.ID), maxID)
	}
	return row, ""
}

// lineReader reads lines of bounded length.
type lineReader struct {
	r    *bufio.Reader
	long []byte // a line that is longer than the buffer of r
}

// next returns a line, which is valid until the next call. whole is false for a line
// over the limit, which next skips. The last line comes with io.EOF.
func (l *lineReader) next() (line []byte, whole bool, err error) {
	line, err = l.r.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, true, err
	}
	l.long = append(l.long[:0], line...)
	whole = true
	for errors.Is(err, bufio.ErrBufferFull) {
		line, err = l.r.ReadSlice('\n')
		if whole = whole && len(l.long)+len(line) <= maxLine; whole {
			l.long = append(l.long, line...)
		}
	}
	return l.long, whole, err
}
