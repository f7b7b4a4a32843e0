package lifecycle

import (
	"context"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/decide"
)

// ReportUnfenced is Report without the comparison of operations: what it decides
// on is the request of Report, put into whatever operation is the present one.
// Nothing in the package itself can switch the comparison off.
func (m *Manager[S, E, T]) ReportUnfenced(ctx context.Context, id string, _ OpID, e E, actor fsm.Actor, reason string) (Verdict, error) {
	c := m.call("report", id, actor)
	c.event, c.reason = e, reason
	c.q.Verb, c.q.Event = decide.Report, m.machine.EventIndex(e)
	if err := m.read(ctx, m.key(id), &c.before); err != nil {
		return Refused, c.fail(err)
	}
	c.told, c.q.Operation = true, uint64(c.before.Operation)
	if err := c.report(ctx); err != nil {
		return Refused, c.fail(err)
	}
	return Verdict(c.d.Verdict), nil
}
