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
// A lifecycle.HistoryRow as JSON is such a line. Only id and to are mandatory. Read ignores
// other fields and empty lines. The event "(override)" is that of a row that skips the table,
// and "(migrate)" that of one that gives the state its name in another version; package
// lifecycle writes both.
//
// A line that Read cannot read, such as one of more than 256 KiB, gives a [*LineError], and
// Read continues with the next line. An error of r ends the sequence. A caller can use the
// sequence once.
func Read(r io.Reader) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		in := bufio.NewReaderSize(r, maxLine+1) // with the newline
		for n := 1; ; n++ {
			line, err := in.ReadSlice('\n')
			long := errors.Is(err, bufio.ErrBufferFull)
			for errors.Is(err, bufio.ErrBufferFull) {
				_, err = in.ReadSlice('\n')
			}
			end := errors.Is(err, io.EOF)
			if err != nil && !end {
				yield(Row{Line: n}, err)
				return
			}
			if (long || len(bytes.TrimSpace(line)) > 0) && !yield(parse(n, line, long)) || end {
				return
			}
		}
	}
}

// parse reads a line. The error is a [*LineError].
func parse(n int, line []byte, long bool) (Row, error) {
	row := Row{}
	fault := func(format string, args ...any) (Row, error) {
		return Row{Line: n}, &LineError{n, fmt.Sprintf(format, args...)}
	}
	if long {
		return fault("more than %d bytes", maxLine)
	}
	if !utf8.Valid(line) {
		return fault("not UTF-8")
	}
	if bytes.HasPrefix(line, []byte("\ufeff")) {
		return fault("a byte order mark: save the history as UTF-8 without one")
	}
	if err := json.Unmarshal(line, &row); err != nil {
		return fault("%v", err)
	}
	row.Line = n
	switch {
	case row.ID == "":
		return fault("no id")
	case row.To == "":
		return fault("no to")
	case len(row.ID) > maxID:
		return fault("an id of %d bytes, more than %d", len(row.ID), maxID)
	}
	return row, nil
}
