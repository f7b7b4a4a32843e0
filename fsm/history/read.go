package history

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/interlock-go/interlock/fsm"
)

// Limits of a history in lines.
const (
	MaxLine = 256 << 10 // bytes of one line
	MaxID   = 1 << 10   // bytes of the id of an object
)

// ErrLine is matched by every [*LineError].
var ErrLine = errors.New("check: unreadable line of a history")

// LineError says what is wrong with a line that [Read] cannot read.
type LineError struct {
	Line int    // counted from 1
	Text string // one line
}

// Error names the line.
func (e *LineError) Error() string {
	return fmt.Sprintf("check: line %d of the history: %s", e.Line, e.Text)
}

// Is matches [ErrLine].
func (e *LineError) Is(target error) bool { return target == ErrLine }

// Read reads JSON lines, one object a line:
//
//	{"machine": "vm", "id": "v1", "version": "2", "sequence": 7, "operation": 3,
//	 "from": "Ready", "fromOrigin": "Ready", "to": "Updating", "origin": "Ready",
//	 "event": "update", "actor": "user", "at": "2026-01-02T15:04:05Z"}
//
// Only id and to must be there. null is as good as a missing field, other fields
// are ignored, empty lines too. A field of this form may not be there twice, and has
// the type that it has above; the case of letters counts. Times are RFC 3339.
//
// A line that cannot be read gives a [*LineError], and reading goes on with the
// next one. An error of r ends the history and is given as it is. What is kept of
// the past is a bounded number of names. The sequence can be used once.
func Read(r io.Reader) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		in := &lineReader{r: bufio.NewReaderSize(r, 64<<10)}
		p := lineParser{names: make(map[string]string)}
		for n := 1; ; n++ {
			line, whole, err := in.next()
			switch {
			case err != nil && !errors.Is(err, io.EOF):
				yield(Row{Line: n}, err)
				return
			case !whole:
				if !yield(Row{Line: n}, &LineError{n, fmt.Sprintf("more than %d bytes", MaxLine)}) {
					return
				}
			case len(bytes.TrimLeft(line, " \t\r\n")) > 0:
				row, fault := p.parse(line)
				row.Line = n
				var said error
				if fault != "" {
					row, said = Row{Line: n}, &LineError{n, fault}
				}
				if !yield(row, said) {
					return
				}
			}
			if err != nil {
				return
			}
		}
	}
}

// lineReader gives lines of bounded length.
type lineReader struct {
	r    *bufio.Reader
	long []byte // a line that is longer than the buffer of r
}

// next returns a line, which is valid until the next call. A line over the limit
// is passed over and not whole. The last one comes with io.EOF.
func (l *lineReader) next() (line []byte, whole bool, err error) {
	line, err = l.r.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, true, err
	}
	l.long = append(l.long[:0], line...)
	whole = true
	for errors.Is(err, bufio.ErrBufferFull) {
		line, err = l.r.ReadSlice('\n')
		if whole = whole && len(l.long)+len(line) <= MaxLine; whole {
			l.long = append(l.long, line...)
		}
	}
	return l.long, whole, err
}

// lineParser reads one line after the other. After the first fault of a line it
// reads nothing more of it.
type lineParser struct {
	b     []byte
	at    int
	fault string
	names map[string]string // so that a name that comes again needs no memory
}

// maxNames is how many names are kept, which is more than the largest table has.
const maxNames = 4 * fsm.MaxStates

func (p *lineParser) fail(format string, args ...any) {
	if p.fault == "" {
		p.fault = fmt.Sprintf(format, args...) + " at byte " + strconv.Itoa(p.at+1)
	}
}

// parse reads a line. With a fault, the row means nothing.
func (p *lineParser) parse(line []byte) (row Row, fault string) {
	p.b, p.at, p.fault = line, 0, ""
	if !utf8.Valid(line) {
		p.fail("not UTF-8")
		return row, p.fault
	}
	p.expect('{')
	seen := 0
	for more := p.peek() != '}'; more && p.fault == ""; more = p.peek() == ',' && p.skip() {
		p.field(&row, &seen)
	}
	p.expect('}')
	if p.peek(); p.fault == "" && p.at < len(p.b) {
		p.fail("something follows the object")
	}
	switch {
	case p.fault != "":
	case row.ID == "":
		p.fault = "no id"
	case row.To == "":
		p.fault = "no to"
	case len(row.ID) > MaxID:
		p.fault = fmt.Sprintf("an id of %d bytes, more than %d", len(row.ID), MaxID)
	}
	return row, p.fault
}

// peek returns the next byte that is no space, zero at the end.
func (p *lineParser) peek() byte {
	for ; p.at < len(p.b); p.at++ {
		switch c := p.b[p.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

func (p *lineParser) skip() bool {
	p.at++
	return true
}

func (p *lineParser) expect(c byte) {
	if p.peek() != c {
		p.fail("want %q", c)
		return
	}
	p.at++
}

// field reads a key and its value. seen has a bit for every field of the form.
func (p *lineParser) field(row *Row, seen *int) {
	key := p.text()
	if p.expect(':'); p.fault != "" {
		return
	}
	var bit int
	var name *string
	switch string(key) {
	case "machine":
		bit, name = 0, &row.Machine
	case "version":
		bit, name = 1, &row.Version
	case "from":
		bit, name = 2, &row.From
	case "fromOrigin":
		bit, name = 3, &row.FromOrigin
	case "to":
		bit, name = 4, &row.To
	case "origin":
		bit, name = 5, &row.Origin
	case "event":
		bit, name = 6, &row.Event
	case "actor":
		bit, name = 7, (*string)(&row.Actor)
	case "id":
		bit = 8
	case "sequence":
		bit = 9
	case "operation":
		bit = 10
	case "at":
		bit = 11
	default:
		p.value()
		return
	}
	if *seen&(1<<bit) != 0 {
		p.fail("%s is there twice", key)
		return
	}
	*seen |= 1 << bit
	if p.peek() == 'n' {
		p.value()
		return
	}
	switch {
	case name != nil:
		*name = p.name(p.text())
	case bit == 8:
		row.ID = string(p.text())
	case bit == 9:
		row.Sequence = p.number()
	case bit == 10:
		row.Operation = p.number()
	case bit == 11:
		if at := p.text(); p.fault == "" && row.At.UnmarshalText(at) != nil {
			p.fail("no RFC 3339 time: %s", clip(string(at)))
		}
	}
}

// text reads a string. What it returns is valid until the next line.
func (p *lineParser) text() []byte {
	if p.expect('"'); p.fault != "" {
		return nil
	}
	start := p.at
	escaped := false
	for ; p.at < len(p.b); p.at++ {
		switch c := p.b[p.at]; {
		case c == '"':
			raw := p.b[start:p.at]
			p.at++
			if escaped {
				return p.unescape(raw)
			}
			return raw
		case c == '\\':
			escaped = true
			p.at++
		case c < ' ':
			p.fail("a control character in a string")
			return nil
		}
	}
	p.fail("the line ends in a string")
	return nil
}

// unescape resolves the escapes of a string without its quotes. An escaped
// surrogate without its other half is a fault: two ids that differ in it only
// would become one.
func (p *lineParser) unescape(raw []byte) []byte {
	var s string
	if err := json.Unmarshal(p.b[p.at-len(raw)-2:p.at], &s); err != nil {
		p.fail("a wrong escape in a string")
		return nil
	}
	replaced := strings.Count(s, string(utf8.RuneError))
	if replaced > bytes.Count(raw, []byte(string(utf8.RuneError)))+bytes.Count(bytes.ToLower(raw), []byte(`\ufffd`)) {
		p.fail("an escaped surrogate without its other half")
	}
	return []byte(s)
}

// name returns the string without a copy of its own if it came before.
func (p *lineParser) name(b []byte) string {
	if s, ok := p.names[string(b)]; ok {
		return s
	}
	s := string(b)
	if len(p.names) < maxNames && len(s) <= fsm.MaxName {
		p.names[s] = s
	}
	return s
}

func (p *lineParser) number() uint64 {
	p.peek()
	start := p.at
	for p.at < len(p.b) && p.b[p.at] >= '0' && p.b[p.at] <= '9' {
		p.at++
	}
	digits := string(p.b[start:p.at])
	n, err := strconv.ParseUint(digits, 10, 64)
	if c := p.peek(); err != nil || c != ',' && c != '}' && c != 0 || len(digits) > 1 && digits[0] == '0' {
		p.fail("no whole number of at most 64 bits")
	}
	return n
}

// value reads any value and forgets it.
func (p *lineParser) value() {
	p.peek()
	start, depth := p.at, 0
	for p.at < len(p.b) {
		switch p.b[p.at] {
		case '"':
			if p.text(); p.fault != "" {
				return
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case ',':
			if depth == 0 {
				depth = -1
			}
		}
		if depth < 0 {
			break
		}
		p.at++
	}
	if !json.Valid(p.b[start:p.at]) {
		p.fail("no JSON value")
	}
}
