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
	text   string // the call as a script states it
	system string // each has a locker of its own; count and idle: "" for all
	client string // the owner of its requests; "-" is anonymous
	op     string // one of operations
	ended  bool   // the context of the call has ended

	requests []lock.Request // of try and lock; an invalid one has a zero field
	options  lock.Options   // of try and lock
	mode     lock.Mode      // of a conversion
	path     lock.Path      // of holders

	held, waiting int // of count

	// The expected answer. Scripts and vectors state it.
	want    string   // "": "ok"
	with    []string // the clients that a refusal lists; nil: not stated
	granted []string // the clients whose waits the step grants, in this order

	// A random step states no answer. A client that holds or waits makes no acquisition.
	random bool
}

// operations are what a step can do.
var operations = strings.Fields("try lock unlock cancel upgrade downgrade convert check admit revoke break holders snapshot count idle")

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
	return "unexpected: " + err.Error()
}

// parseStep reads a line of a script:
//
//	client operation [MODE PATH ...] [id=ID] [ended] [: ANSWER [names]] [; grants names]
//
// The answer is "ok" where none is stated. The names are those of the clients that
// a refusal lists, and of those that a wait waits for. A step that grants waits
// states them, in order. The context of a call that is "ended" has ended before.
func parseStep(line string) (step, error) {
	line, grants, _ := strings.Cut(line, "; grants ")
	line, want, _ := strings.Cut(line, ": ")
	words := strings.Fields(line)
	if len(words) < 2 {
		return step{}, errors.New("a client and an operation are required")
	}
	s := step{text: strings.Join(words, " "), client: words[0], op: words[1], granted: strings.Fields(grants)}
	if list := strings.Fields(want); len(list) > 0 {
		s.want = list[0]
		if len(list) > 1 {
			s.with = list[1:]
		}
	}
	id := ""
	var args []string
	for _, word := range words[2:] {
		switch value, isID := strings.CutPrefix(word, "id="); {
		case isID:
			id = value
		case word == "ended":
			s.ended = true
		default:
			args = append(args, word)
		}
	}
	s.options = optionsOf(s.client, id)
	var err error
	switch rest := strings.Join(args, " "); s.op {
	case "try", "lock":
		for pair := range slices.Chunk(args, 2) {
			s.requests = append(s.requests, request(pair[0], strings.Join(pair[1:], "")))
		}
	case "holders":
		s.path, err = lock.Parse(rest)
	case "count":
		_, err = fmt.Sscan(rest, &s.held, &s.waiting)
	default:
		s.mode, _ = lock.ParseMode(rest)
	}
	return s, err
}

// request parses a request. What cannot be parsed is the zero Mode or Path.
func request(mode, path string) (r lock.Request) {
	r.Mode, _ = lock.ParseMode(mode)
	r.Path, _ = lock.Parse(path)
	return r
}

func optionsOf(client, id string) lock.Options {
	if client == "-" {
		return lock.Options{ID: id}
	}
	return lock.Options{ID: id, Owner: client, Reason: "reason of " + client}
}
