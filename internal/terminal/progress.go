// Package terminal recognizes terminals, and shows on one how far a long call is.
package terminal

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"
)

const (
	width = 79 // columns of the line: a longer one would continue in the next
	pause = 100 * time.Millisecond
)

// Progress returns a function that shows how far a call is, for the Progress field of a
// configuration, and a function that removes the line. show is nil if w is not a terminal:
// the call then costs nothing, and clear does nothing. Both must be called from one
// goroutine at a time. show writes at most ten lines in a second.
func Progress(w io.Writer) (show func(what string, done, total int), clear func()) {
	if !Is(w) {
		return nil, func() {}
	}
	l := &line{w: w}
	return l.show, l.clear
}

// Is reports whether w is a file that is a character device.
func Is(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// line is a line on a terminal.
type line struct {
	w       io.Writer
	next    time.Time // no write before it
	columns int       // of the present text
}

func (l *line) show(what string, done, total int) {
	now := time.Now()
	if now.Before(l.next) {
		return
	}
	l.next = now.Add(pause)
	text := fmt.Sprintf("%s: %d", what, done)
	if total > 0 {
		text += fmt.Sprintf(" of %d", total)
	}
	l.write(text)
}

// write replaces the line. Spaces cover the rest of a longer one, because not every
// terminal has an escape sequence for that.
func (l *line) write(text string) {
	printable := []rune(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, text))
	printable = printable[:min(len(printable), width)]
	fmt.Fprintf(l.w, "\r%s%s", string(printable), strings.Repeat(" ", max(0, l.columns-len(printable))))
	l.columns = len(printable)
}

func (l *line) clear() {
	if l.columns > 0 {
		l.write("")
		fmt.Fprint(l.w, "\r")
	}
	l.next = time.Time{}
}
