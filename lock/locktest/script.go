package locktest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/lock"
)

// step is one call of a script, with its expected answer.
type step struct {
	system  string // each has a locker of its own; count and idle: empty for all
	client  string // the owner of its requests; "-" is anonymous
	op      string
	rs      []lock.Request
	bad     bool // a path or mode could not be parsed
	random  bool // skip an acquisition of a client that holds or waits
	id      string
	mode    lock.Mode // of a conversion
	path    lock.Path // of holders
	held    int       // of count
	waiting int

	// The expected answer. Scripts and vectors state it; random steps do not.
	want    string // "": not stated
	names   []string
	granted []string // the clients whose waits the step grants, in this order
}

// operations are what a step can do.
var operations = strings.Fields("try lock unlock cancel upgrade downgrade convert check revoke break holders count idle")

// kinds are the answers that are errors. The others are "ok" and "waiting".
var kinds = []struct {
	err  error
	kind string
}{
	{lock.ErrInvalid, "invalid"},
	{lock.ErrIDInUse, "in-use"},
	{lock.ErrQueueFull, "queue-full"},
	{lock.ErrConflict, "conflict"},
	{lock.ErrLost, "lost"},
	{lock.ErrRevoked, "revoked"},
	{lock.ErrNotHeld, "not-held"},
	{errCancelled, "cancelled"},
}

// kindOf returns the answer that an error stands for.
func kindOf(err error) string {
	if err == nil {
		return "ok"
	}
	for _, known := range kinds {
		if errors.Is(err, known.err) {
			return known.kind
		}
	}
	return "unexpected"
}

// parseScript reads a script, one call in each line:
//
//	client operation [MODE PATH ...] [id=ID] [: ANSWER [names]] [; grants names]
//
// The answer is "ok" where none is stated. The names are those of the clients that
// a refusal lists, and of those that a wait waits for. A step that grants waits
// states them, in order.
func parseScript(text string) ([]step, error) {
	var steps []step
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		s, err := parseStep(line)
		if err != nil {
			return nil, fmt.Errorf("locktest: parse %q: %w", line, err)
		}
		steps = append(steps, s)
	}
	return steps, nil
}

func parseStep(line string) (step, error) {
	line, grants, _ := strings.Cut(line, "; grants ")
	call, want, _ := strings.Cut(line, ": ")
	words := strings.Fields(call)
	if len(words) < 2 {
		return step{}, errors.New("a client and an operation are required")
	}
	s := step{client: words[0], op: words[1], want: "ok", granted: strings.Fields(grants)}
	if list := strings.Fields(want); len(list) > 0 {
		s.want = list[0]
		if len(list) > 1 {
			s.names = list[1:]
		}
	}
	var err error
	for args := words[2:]; len(args) > 0 && err == nil; args = args[1:] {
		id, isID := strings.CutPrefix(args[0], "id=")
		switch {
		case isID:
			s.id = id
		case s.op == "holders":
			s.path, err = lock.Parse(args[0])
		case s.op == "count" && len(args) == 2:
			s.held, _ = strconv.Atoi(args[0])
			s.waiting, err = strconv.Atoi(args[1])
			args = args[1:]
		case s.op == "try" && len(args) > 1, s.op == "lock" && len(args) > 1:
			var r lock.Request
			if r.Mode, err = lock.ParseMode(args[0]); err == nil {
				r.Path, err = lock.Parse(args[1])
			}
			s.rs = append(s.rs, r)
			args = args[1:]
		default:
			s.mode, err = lock.ParseMode(args[0])
		}
	}
	return s, err
}

// String returns the call in the form of a script.
func (s step) String() string {
	text := s.client + " " + s.op
	for _, r := range s.rs {
		text += fmt.Sprintf(" %s %s", r.Mode, r.Path)
	}
	if s.id != "" {
		text += " id=" + s.id
	}
	if s.mode.Valid() {
		text += " " + s.mode.String()
	}
	if s.path.Valid() {
		text += " " + s.path.String()
	}
	return text
}
