package locktest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/lock"
)

// step is one call of a script, a vector or a random sequence, with its expected answer.
type step struct {
	System string // each has a locker of its own; count and idle: empty for all
	Client string `json:"h"` // the owner of its requests; "-" is anonymous
	Op     string
	ID     string `json:"-"` // vectors have none

	rawRequest              // the mode of a conversion, the path of holders, or the only request
	Locks      []rawRequest // the requests of try and lock; nil: the only one

	Held, Waiting int // of count

	// The expected answer. Scripts and vectors state it.
	Want    string   // "": "ok"
	With    []string // the clients that a refusal lists; nil: not stated
	Granted []string // the clients whose waits the step grants, in this order

	// A random step states no answer. A client that holds or waits makes no acquisition.
	random bool
}

// rawRequest is a request as scripts and vectors state it, valid or not.
type rawRequest struct{ Mode, Path string }

// operations are what a step can do.
var operations = strings.Fields("try lock unlock cancel upgrade downgrade convert check admit revoke break holders count idle")

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
	{lock.ErrStaleToken, "stale"},
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
	s := step{Client: words[0], Op: words[1], Granted: strings.Fields(grants)}
	if list := strings.Fields(want); len(list) > 0 {
		s.Want = list[0]
		if len(list) > 1 {
			s.With = list[1:]
		}
	}
	args := words[2:]
	if last := len(args) - 1; last >= 0 && strings.HasPrefix(args[last], "id=") {
		s.ID, args = strings.TrimPrefix(args[last], "id="), args[:last]
	}
	switch s.Op {
	case "try", "lock":
		for pair := range slices.Chunk(args, 2) {
			s.Locks = append(s.Locks, rawRequest{pair[0], strings.Join(pair[1:], "")})
		}
	case "holders":
		s.Path = strings.Join(args, " ")
	case "count":
		_, err := fmt.Sscan(strings.Join(args, " "), &s.Held, &s.Waiting)
		return s, err
	default:
		s.Mode = strings.Join(args, " ")
	}
	return s, nil
}

// requests parses the requests of a try or a lock.
func (s *step) requests() (rs []lock.Request, err error) {
	raw := s.Locks
	if raw == nil {
		raw = []rawRequest{s.rawRequest}
	}
	for _, r := range raw {
		mode, modeErr := lock.ParseMode(r.Mode)
		path, pathErr := lock.Parse(r.Path)
		rs, err = append(rs, lock.Request{Path: path, Mode: mode}), errors.Join(err, modeErr, pathErr)
	}
	return rs, err
}

// String returns the call in the form of a script.
func (s step) String() string {
	text := s.Client + " " + s.Op
	for _, r := range slices.Concat(s.Locks, []rawRequest{s.rawRequest}) {
		text += " " + r.Mode + " " + r.Path
	}
	if s.ID != "" {
		text += " id=" + s.ID
	}
	return strings.Join(strings.Fields(text), " ")
}
