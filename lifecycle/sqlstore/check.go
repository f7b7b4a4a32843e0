package sqlstore

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/interlock-go/interlock/lifecycle"
)

const (
	maxName   = 255           // bytes of what is in an index
	maxWord   = 1023          // bytes of other names
	maxNumber = math.MaxInt64 // what a column of the three engines holds
)

// name refuses what the three engines do not keep alike.
func name(what, s string, most int) error {
	if len(s) > most || strings.IndexByte(s, 0) >= 0 || !utf8.ValidString(s) {
		return fmt.Errorf("%w: %s %.300q is not up to %d bytes of UTF-8 without NUL", lifecycle.ErrInvalid, what, s, most)
	}
	return nil
}

func (s *keeper) checkKey(key lifecycle.Key) error {
	switch {
	case key.Machine == "" || key.ID == "":
		return fmt.Errorf("%w: a key without machine or id", lifecycle.ErrInvalid)
	case s.l.machine != "" && key.Machine != s.l.machine:
		return fmt.Errorf("%w: %s are kept in this table, not %s", lifecycle.ErrInvalid, s.l.machine, key.Machine)
	}
	if err := name("machine", key.Machine, maxName); err != nil {
		return err
	}
	return name("id", key.ID, maxName)
}

// checkNames refuses what would not come back as it was given.
func (s *keeper) checkNames(ch *lifecycle.StoredChange) error {
	to := &ch.To
	if err := s.checkKey(to.Key); err != nil {
		return err
	}
	for _, n := range []struct {
		what, is string
		most     int
	}{
		{"state", to.State, maxName},
		{"state", ch.From, maxName},
		{"origin", to.Origin, maxName},
		{"origin", ch.FromOrigin, maxName},
		{"target", to.Target, maxName},
		{"owner", to.Owner, maxName},
		{"handler", to.Work, maxWord},
		{"actor", string(to.Actor), maxWord},
		{"event", to.Event, maxWord},
	} {
		if err := name(n.what, n.is, n.most); err != nil {
			return err
		}
	}
	if max(to.Sequence, uint64(to.Operation), to.Epoch) > maxNumber {
		return fmt.Errorf("%w: a number of %q is above %d", lifecycle.ErrInvalid, to.ID, uint64(maxNumber))
	}
	if s.l.removed != "" && (ch.From == s.l.removed || to.State == s.l.removed && !ch.Remove) {
		return fmt.Errorf("%w: state %q is that of removed objects", lifecycle.ErrInvalid, s.l.removed)
	}
	return nil
}

// prose is text for people, such as the error of work that failed: that it is
// not UTF-8 must not keep an outcome from being written.
func prose(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "\ufffd")
}
