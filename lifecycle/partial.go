package lifecycle

import (
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/fsm"
)

// Partial is a [Store] that cannot keep every field or every state of the records of some
// machines. [New] refuses a machine and a configuration that need such a field or state.
type Partial interface {
	// Lacks returns the names of the fields of [StoredRecord] that the store cannot keep
	// for objects of the machine. The result never changes. It is empty for the machines
	// of the library, whose names begin with "interlock.".
	Lacks(machine string) []string
	// CheckState returns why the store cannot keep objects in a state, or the history of
	// objects that enter an absent one; nil: it can.
	CheckState(machine, state string, absent bool) error
}

// checkStore refuses a store that cannot keep what the machine and the configuration need.
func (c *core) checkStore(payload bool) error {
	partial, ok := c.store.(Partial)
	if !ok {
		return nil
	}
	for _, s := range c.table.States {
		for _, name := range c.storedNames(s.Name) {
			if err := partial.CheckState(c.table.Name, name, s.Kind == fsm.Absent); err != nil {
				return fmt.Errorf("%w: New: the store cannot keep the state %s of machine %s: %w", ErrInvalid, name, c.table.Name, err)
			}
		}
	}
	var missing []string
	lacks := partial.Lacks(c.table.Name)
	transitional := slices.ContainsFunc(c.table.States, func(s fsm.TableState) bool { return s.Kind == fsm.Transitional })
	for _, need := range []struct {
		needed bool
		fields []string
		why    string
	}{
		{transitional, []string{"Origin", "Operation"}, "the machine has transitional states"},
		{c.timed(), []string{"Deadline"}, "the machine has rows with a timeout"},
		{transitional && c.owner != nil, []string{"Owner", "Epoch"}, "Config.Owner is set"},
		{c.worker != "", []string{"WorkOptions"}, "Config.WorkerActor is set"},
		{len(c.handlers) > 0, []string{"Work", "Args"}, "Config.Handlers is set"},
		{len(c.undo) > 0, []string{"Saved"}, "Config.Undo is set"},
		{c.version != "", []string{"Version"}, "Config.Version is set"},
		{len(c.older) > 0, []string{"Version"}, "Config.Older is set"},
		{payload, []string{"Payload"}, "objects have a payload"},
	} {
		for _, field := range need.fields {
			if need.needed && slices.Contains(lacks, field) {
				missing = append(missing, fmt.Sprintf("the field %s of machine %s: %s", field, c.table.Name, need.why))
			}
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: New: the store cannot keep %s", ErrInvalid, strings.Join(missing, "; "))
	}
	return nil
}
