package check

import (
	"slices"
	"strings"
	"unicode"

	"github.com/interlock-go/interlock/fsm"
)

// Role is what an event is for, as far as the lints of lifecycles care.
type Role uint8

const (
	RoleNone   Role = iota
	RoleAbort       // somebody calls off what is under way
	RoleDelete      // somebody wants the object to go
	RoleFail        // what is under way went wrong, or nobody answers
)

var roles = [...]string{"none", "abort", "delete", "fail"}

// String returns "none", "abort", "delete" or "fail".
func (r Role) String() string {
	if int(r) < len(roles) {
		return roles[r]
	}
	return "role?"
}

// Vocabulary has the words by which the role of an event is recognised, in lower
// case, and that of a state where the events that lead there say nothing. They are
// compared with the whole words of its name, which end where a letter is followed
// by something else than one, and before a capital. A name that has words of
// several roles is the first of fail, abort and delete: "delete failed" is a
// failure. An outcome is not a request: "deleted" is no word of the default. The
// zero Vocabulary recognises nothing by name.
type Vocabulary struct{ Abort, Delete, Fail []string }

// DefaultVocabulary returns the words that [Lint] knows, for who wants to add some.
func DefaultVocabulary() *Vocabulary {
	return &Vocabulary{
		Abort: []string{
			"abandon", "abandoned", "abort", "aborted", "aborting", "cancel", "canceled", "cancelled", "canceling",
			"cancelling", "cancellation", "interrupt", "kill", "killed", "killing", "revoke", "rst", "undo", "void",
			"withdraw",
		},
		Delete: []string{
			"decommission", "decommissioning", "delete", "deleting", "deprovision", "destroy", "destroying",
			"erase", "expunge", "expunging", "purge", "remove", "removing", "teardown", "terminate", "terminating", "undeploy", "uninstall",
		},
		Fail: []string{
			"crash", "crashed", "dead", "deadline", "decline", "declined", "denied", "deny", "died", "error", "errored",
			"expire", "expired", "expires", "expiry", "fail", "failed", "failing", "fails", "failure", "fault", "lost",
			"nack", "nak", "overdue",
			"panic", "refuse", "refused", "reject", "rejected", "rejecting", "stalled", "stuck", "timed", "timeout",
		},
	}
}

// RoleOf returns the role of an event by its name.
func (v *Vocabulary) RoleOf(event string) Role {
	role := RoleNone
	for _, word := range words(event) {
		switch {
		case slices.Contains(v.Fail, word):
			return RoleFail
		case slices.Contains(v.Abort, word):
			role = RoleAbort
		case role == RoleNone && slices.Contains(v.Delete, word):
			role = RoleDelete
		}
	}
	return role
}

// words splits a name into its words, in lower case.
func words(name string) (list []string) {
	start, before := -1, ' '
	end := func(at int) {
		if start >= 0 {
			list = append(list, strings.ToLower(name[start:at]))
			start = -1
		}
	}
	for i, r := range name {
		switch {
		case !unicode.IsLetter(r):
			end(i)
		case unicode.IsUpper(r) && unicode.IsLower(before):
			end(i)
			start = i
		case start < 0:
			start = i
		}
		before = r
	}
	end(len(name))
	return list
}

// roleOf returns the role of a row that leads from a state to another one. Words
// of the event come first, then the kind of the target: what leads into a failed
// state without being asked for is a failure, and so is a deadline. Last come the
// words of the target, unless the state that is left is called likewise: from
// there it is the way on.
func (l *linter) roleOf(row *fsm.TableRow, from int) Role {
	role := l.events[row.Event]
	move := row.Then == fsm.ThenMove && l.a.declared(row.To)
	switch {
	case role != RoleNone:
	case move && l.kind(row.To) == fsm.Failed, l.isDeadline(row):
		role = RoleFail
	case move && l.named[row.To] != l.named[from]:
		role = l.named[row.To]
	}
	return role
}

// isDeadline reports whether the row is taken when nobody reports in time.
func (l *linter) isDeadline(row *fsm.TableRow) bool {
	sweeper, ok := l.t.ActorIndex(fsm.Sweeper)
	return row.Timeout > 0 || ok && len(row.Actors) == 1 && row.Actors[0] == sweeper
}
