package sqlstore

import (
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

// checkKey refuses a key that its table cannot keep.
func (s *shared) checkKey(key lifecycle.Key) error {
	if err := checkKey(key); err != nil {
		return err
	}
	return s.of(key.Machine).objects.checkTyped(vID, key.ID)
}

// checkChange refuses values that the engines would not return as they were given.
func (l *layout) checkChange(ch *lifecycle.StoredChange) error {
	to := &ch.To
	if err := checkKey(to.Key); err != nil {
		return err
	}
	for _, n := range []struct {
		what, name string
		most       int
	}{
		{"state", to.State, maxName},
		{"state", ch.From, maxName},
		{"origin", to.Origin, maxName},
		{"origin", ch.FromOrigin, maxName},
		{"target", to.Target, maxName},
		{"version", to.Version, maxName},
		{"owner", to.Owner, maxName},
		{"handler", to.Work, maxWord},
		{"actor", string(to.Actor), maxWord},
		{"event", to.Event, maxWord},
		{"request id", ch.Request, maxName},
		{"fingerprint", ch.Fingerprint, maxName},
	} {
		if err := checkName(n.what, n.name, n.most); err != nil {
			return err
		}
	}
	if err := l.checkTyped(ch); err != nil {
		return err
	}
	if max(to.Sequence, uint64(to.Operation), to.Epoch) > maxNumber {
		return fmt.Errorf("%w: a number of %q is above %d", lifecycle.ErrInvalid, to.ID, uint64(maxNumber))
	}
	if ch.Request != "" && l.history.column[vRequest] == "" {
		return errRequests
	}
	if l.removed != "" && (ch.From == l.removed || to.State == l.removed && !ch.Remove) {
		return fmt.Errorf("%w: state %q is the state of removed objects", lifecycle.ErrInvalid, l.removed)
	}
	return nil
}

// checkTyped refuses names and payloads that a type of a column cannot write. The history
// has the absent state too, and the row of a removed object its removed state.
func (l *layout) checkTyped(ch *lifecycle.StoredChange) error {
	to := &ch.To
	row := map[value]string{
		vID: to.ID, vState: to.State, vOrigin: to.Origin, vTarget: to.Target, vPayload: string(to.Payload), vSaved: string(to.Saved),
	}
	if ch.Remove {
		row = map[value]string{vID: to.ID, vState: l.removed}
	}
	for v, text := range row {
		if err := l.objects.checkTyped(v, text); err != nil {
			return err
		}
	}
	if err := l.objects.checkTyped(vState, ch.From); err != nil {
		return err
	}
	for v, text := range map[value]string{vID: to.ID, vFromState: ch.From, vFromOrigin: ch.FromOrigin, vTo: to.State, vToOrigin: to.Origin} {
		if err := l.history.checkTyped(v, text); err != nil {
			return fmt.Errorf("history: %w", err)
		}
	}
	return nil
}

// Lacks implements [lifecycle.Partial]: an existing table may have no column for a field.
func (s *shared) Lacks(machine string) (fields []string) {
	l := s.of(machine)
	if !l.objects.existing {
		return nil
	}
	for v, name := range map[value]string{
		vVersion: "Version", vOrigin: "Origin", vOperation: "Operation", vOwner: "Owner", vEpoch: "Epoch", vWork: "Work", vArgs: "Args",
		vWorkOptions: "WorkOptions", vDeadline: "Deadline", vPayload: "Payload", vSaved: "Saved",
	} {
		if l.objects.column[v] == "" && (v != vPayload || len(l.objects.fields) == 0) {
			fields = append(fields, name)
		}
	}
	return fields
}

// CheckState implements [lifecycle.Partial]: the type of a column may lack a state.
func (s *shared) CheckState(machine, state string, absent bool) error {
	l := s.of(machine)
	if !absent {
		if state == l.removed {
			return fmt.Errorf("%w: it is the state of removed objects", lifecycle.ErrInvalid)
		}
		if err := l.objects.checkTyped(vState, state); err != nil {
			return err
		}
	}
	return l.history.checkTyped(vTo, state)
}

// keeps refuses a change that sets a field for which the table has no column, if the loss
// of the field would be unsound. The store's own table lacks columns in older versions.
func (l *layout) keeps(ch *lifecycle.StoredChange) error {
	to := &ch.To
	for _, field := range []struct {
		v   value
		set bool
	}{
		{vOrigin, to.Origin != "" && to.Origin != to.State},
		{vFence, to.Fence != 0},
		{vVersion, to.Version != ""},
		{vOperation, to.Operation != 0},
		{vOwner, to.Owner != ""},
		{vEpoch, to.Epoch != 0},
		{vWork, to.Work != ""},
		{vArgs, len(to.Args) > 0},
		{vWorkOptions, len(to.WorkOptions) > 0},
		{vDeadline, ch.Timeout > 0},
		{vPayload, !ch.Remove && len(to.Payload) > 0 && len(l.objects.fields) == 0},
		{vSaved, !ch.Remove && to.Saved != nil},
	} {
		if field.set && l.objects.column[field.v] == "" {
			return fmt.Errorf("%w: change of %q: the table has no column for %s", errors.ErrUnsupported, to.ID, columnNames[field.v])
		}
	}
	return nil
}

// cleaned replaces what is not UTF-8, and NUL, in a text for people: the text of an
// error must not keep the outcome from being written.
func cleaned(text string) string {
	if utf8.ValidString(text) && strings.IndexByte(text, 0) < 0 {
		return text
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\x00", "\ufffd")
}
