package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/internal/instruments"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// names returns the tables of the README with the names of metrics, spans and messages.
func names() string {
	var b strings.Builder
	row := func(cells ...string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	row("Prometheus", "OpenTelemetry", "kind", "labels", "")
	row("---", "---", "---", "---", "---")
	for _, m := range instruments.All {
		row(code(m.Prometheus), code(m.Name), string(m.Kind), code(m.Labels...), m.Help)
	}
	b.WriteString("\n")
	row("in traces", "name", "")
	row("---", "---", "---")
	row("span", code(instruments.WorkSpan+" HANDLER"), "An attempt of work, with a link to the span of its request.")
	row("event", code(instruments.TransitionEvent), "A change, in the span of the request.")
	row("event", code(instruments.RefusalEvent), "An error, in the span of the request.")
	b.WriteString("\n")
	row("log message", "level", "attributes")
	row("---", "---", "---")
	for _, m := range messages() {
		row(m.text, strings.Join(m.levels, ", "), code(m.keys...))
	}
	return b.String()
}

func code(words ...string) string { return "`" + strings.Join(words, "` `") + "`" }

// messages logs every event of a manager, as success and as failure, and returns what it
// has logged.
func messages() []*message {
	var log capture
	o := lifecycle.Log(slog.New(&log))
	ctx, failure := context.Background(), &lifecycle.Error{Err: lifecycle.ErrUnavailable}
	o.Changed(ctx, lifecycle.CommittedChange{})
	o.Refused(ctx, &lifecycle.Error{Err: lifecycle.ErrInvalid})
	o.Refused(ctx, failure)
	o.Reported(ctx, lifecycle.Reported{})
	o.Reported(ctx, lifecycle.Reported{Verdict: lifecycle.Refused, Err: failure})
	o.Retried(ctx, lifecycle.FailedAttempt{Err: failure})
	o.Finished(ctx, lifecycle.Finished{})
	o.Finished(ctx, lifecycle.Finished{Err: failure})
	o.Finished(ctx, lifecycle.Finished{Err: &queue.PanicError{}})
	o.Swept(ctx, lifecycle.Swept{Results: []lifecycle.SweepResult{
		{Resolution: lifecycle.Moved}, {Resolution: lifecycle.NotMoved, Err: failure},
	}})
	o.Swept(ctx, lifecycle.Swept{Err: failure})
	return log.messages
}

type message struct {
	text         string
	levels, keys []string
}

// capture is a handler that keeps messages.
type capture struct{ messages []*message }

func (c *capture) Enabled(context.Context, slog.Level) bool { return true }
func (c *capture) WithAttrs([]slog.Attr) slog.Handler       { return c }
func (c *capture) WithGroup(string) slog.Handler            { return c }

func (c *capture) Handle(_ context.Context, r slog.Record) error {
	i := slices.IndexFunc(c.messages, func(m *message) bool { return m.text == r.Message })
	if i < 0 {
		i = len(c.messages)
		c.messages = append(c.messages, &message{text: r.Message})
	}
	m := c.messages[i]
	if level := fmt.Sprint(r.Level); !slices.Contains(m.levels, level) {
		m.levels = append(m.levels, level)
	}
	r.Attrs(func(a slog.Attr) bool {
		if a.Key != "" && !slices.Contains(m.keys, a.Key) {
			m.keys = append(m.keys, a.Key)
		}
		return true
	})
	return nil
}
