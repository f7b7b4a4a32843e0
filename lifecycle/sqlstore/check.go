package sqlstore

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/interlock-go/interlock/lifecycle"
)

const (
	maxName   = 255           // bytes of a column that is in an index
	maxWord   = 1023          // bytes of the other names
	maxNumber = math.MaxInt64 // of a column on all engines
)

// checkName refuses names that the engines would not keep alike.
func checkName(what, name string, most int) error {
	if len(name) > most || strings.IndexByte(name, 0) >= 0 || !utf8.ValidString(name) {
		return fmt.Errorf("%w: %s %.300q is not up to %d bytes of UTF-8 without NUL", lifecycle.ErrInvalid, what, name, most)
	}
	return nil
}

func checkKey(key lifecycle.Key) error {
	if key.Machine == "" || key.ID == "" {
		return fmt.Errorf("%w: key without a machine or an id", lifecycle.ErrInvalid)
	}
	if err := checkName("machine", key.Machine, maxName); err != nil {
		return err
	}
	return checkName("id", key.ID, maxName)
}

// check refuses values that the engines would not return as they were given, and fields that
// the table has no column for, if their loss would be unsound. The store's own table lacks a
// column in version 1.
func (ch *change) check() error {
	to, l := &ch.To, ch.l
	if err := checkKey(to.Key); err != nil {
		return err
	}
	for v, c := range columns {
		set := false
		switch x := ch.vals[v].(type) {
		case string:
			if set = x != ""; c.most > 0 {
				if err := checkName(cmp.Or(c.objects, c.history), x, c.most); err != nil {
					return err
				}
			}
		case int64:
			if set = x != 0; x < 0 && value(v) != vExpect {
				return fmt.Errorf("%w: %s of %q is above %d", lifecycle.ErrInvalid, c.objects, to.ID, uint64(maxNumber))
			}
		case []byte:
			set = len(x) > 0 || x != nil && value(v) == vSaved
		}
		if value(v) == vOrigin && to.Origin == to.State {
			continue // it is read so
		}
		if set && c.field != "" && l.objects.col(value(v)) == "" {
			return fmt.Errorf("%w: change of %q: the table has no column for %s", errors.ErrUnsupported, to.ID, c.objects)
		}
	}
	if ch.Request != "" && l.history.col(vRequest) == "" {
		return errRequests
	}
	_, err := ch.write.bind(ch.vals)
	if err == nil && l.st.addRow != nil && !ch.MetadataOnly {
		_, err = l.st.addRow.bind(ch.vals)
	}
	return err
}

// Lacks implements [lifecycle.Partial]: an existing table may have no column for a field.
func (s *shared) Lacks(machine string) (fields []string) {
	o := &s.of(machine).objects
	for v, c := range columns {
		if o.existing && c.field != "" && o.col(value(v)) == "" && (value(v) != vPayload || len(o.column) == int(values)) {
			fields = append(fields, c.field)
		}
	}
	return fields
}

// CheckState implements [lifecycle.Partial]: the type of a column may lack a state.
func (s *shared) CheckState(machine, state string, absent bool) error {
	l := s.of(machine)
	if !absent {
		if _, err := l.objects.column[vState].write(state); err != nil {
			return err
		}
	}
	_, err := l.history.column[vTo].write(state)
	return err
}

// cleaned replaces what is not UTF-8, and NUL, in a text for people: the text of an
// error must not keep the outcome from being written.
func cleaned(text string) string {
	if utf8.ValidString(text) && strings.IndexByte(text, 0) < 0 {
		return text
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\x00", "\ufffd")
}
