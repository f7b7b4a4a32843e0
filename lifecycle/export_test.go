package lifecycle

import (
	"context"

	"github.com/interlock-go/interlock/fsm"
)

// ReportUnfenced is Report without the comparison of operations: it reports about
// whatever operation the object is in.
func (m *Manager[S, E, T]) ReportUnfenced(ctx context.Context, id string, _ OpID, e E, actor fsm.Actor, change *Change[T]) (Verdict, error) {
	now, err := m.core.store.Get(ctx, m.core.key(id))
	if err != nil {
		return Refused, err
	}
	return m.Report(ctx, id, now.Operation, e, actor, change)
}

// KeepRemoved sets how many removed objects the store keeps; negative: none. Tests of what it
// has forgotten are short with few.
func (s *MemoryStore) KeepRemoved(n int) *MemoryStore {
	s.keepRemoved = n
	return s
}

// Watching returns the number of keys that Await and Watch wait for.
func Watching(m AnyManager) int { return len(m.untyped().watchers.keys) }

// Replies returns the table of [Problem] in its order.
func Replies() (list []ProblemDetails) {
	for _, r := range replies {
		list = append(list, r.problem(""))
	}
	return list
}
