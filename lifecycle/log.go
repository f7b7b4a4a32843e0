package lifecycle

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/interlock-go/interlock/queue"
)

// Log returns an observer that logs, with the context of the event. A nil logger is
// [slog.Default] at the time of the call. A level that is disabled costs no allocation. The
// messages, their levels and keys:
//
//	changed         Info   machine id operation sequence from to event actor reason inState
//	refused         Info   machine id verb state event actor code error
//	                Error  if the HTTP status of the error is 500 or more
//	reported        Debug  machine id operation state event actor verdict error
//	                Info   if the report was not applied
//	attempt failed  Warn   machine id operation event attempt pause error
//	work ended      Debug  machine id operation event took code error stack
//	                Warn   if the operation did not succeed
//	stuck           Info   machine id operation from to event owner resolution cause error
//	                Warn   if the sweep could not end it
//	swept           Debug  machine results took error
//	                Error  if the sweep failed
//
// An error that is nil is omitted, and so is the stack if there was no panic. The code is that
// of [Code]. In a refusal, id, event and actor may be texts of a client: the log has up to 300
// bytes of each. Calls of the store are not logged.
func Log(logger *slog.Logger) Observer {
	if logger == nil {
		logger = slog.Default()
	}
	l := eventLog{logger}
	return Observer{
		Changed: l.changed, Refused: l.refused, Reported: l.reported, Retried: l.retried, Finished: l.finished, Swept: l.swept,
	}
}

// errorAttr is an attribute that handlers drop if there is no error.
func errorAttr(err error) slog.Attr {
	if err == nil {
		return slog.Attr{}
	}
	return slog.Any("error", err)
}

// eventLog logs events. LogAttrs drops what its level disables, and building the attributes
// of these events allocates nothing.
type eventLog struct{ *slog.Logger }

func (l eventLog) changed(ctx context.Context, e CommittedChange) {
	l.LogAttrs(
		ctx, slog.LevelInfo, "changed", slog.String("machine", e.Machine), slog.String("id", e.ID),
		slog.Uint64("operation", uint64(e.Operation)), slog.Uint64("sequence", e.Sequence),
		slog.String("from", e.From), slog.String("to", e.To), slog.String("event", e.Event),
		slog.String("actor", string(e.Actor)), slog.String("reason", e.Reason), slog.Duration("inState", e.InState),
	)
}

func (l eventLog) refused(ctx context.Context, err error) {
	e, ok := err.(*Error) // the observer receives no other error
	if !ok {
		return
	}
	reply, _ := replyTo(err)
	if own, ok := reply.ofService(err); ok {
		reply.http = own.HTTPStatus()
	}
	level := slog.LevelInfo
	if reply.http >= http.StatusInternalServerError {
		level = slog.LevelError
	}
	l.LogAttrs(
		ctx, level, "refused", slog.String("machine", e.Machine), slog.String("id", shown(e.ID)), slog.String("verb", e.Verb),
		slog.String("state", e.From), slog.String("event", shown(e.Event)), slog.String("actor", shown(string(e.Actor))),
		slog.String("code", reply.code), errorAttr(err),
	)
}

func (l eventLog) reported(ctx context.Context, e Reported) {
	l.LogAttrs(
		ctx, unless(e.Verdict == Applied, slog.LevelInfo), "reported", slog.String("machine", e.Machine), slog.String("id", e.ID),
		slog.Uint64("operation", uint64(e.Operation)), slog.String("state", e.State), slog.String("event", e.Event),
		slog.String("actor", string(e.Actor)), slog.String("verdict", e.Verdict.String()), errorAttr(e.Err),
	)
}

func (l eventLog) retried(ctx context.Context, e FailedAttempt) {
	l.LogAttrs(
		ctx, slog.LevelWarn, "attempt failed", slog.String("machine", e.Machine), slog.String("id", e.ID),
		slog.Uint64("operation", uint64(e.Operation)), slog.String("event", e.Event), slog.Int("attempt", e.Attempt),
		slog.Duration("pause", e.Pause), errorAttr(e.Err),
	)
}

func (l eventLog) finished(ctx context.Context, e Finished) {
	l.LogAttrs(
		ctx, unless(e.Err == nil, slog.LevelWarn), "work ended", slog.String("machine", e.Machine), slog.String("id", e.ID),
		slog.Uint64("operation", uint64(e.Operation)), slog.String("event", e.Event), slog.Duration("took", e.Took),
		slog.String("code", Code(e.Err)), errorAttr(e.Err), l.stackAttr(ctx, e.Err),
	)
}

// stackAttr is an attribute that handlers drop if there was no panic.
func (l eventLog) stackAttr(ctx context.Context, err error) slog.Attr {
	if !l.Enabled(ctx, slog.LevelWarn) { // a search in the error allocates
		return slog.Attr{}
	}
	panicked, ok := errors.AsType[*queue.PanicError](err)
	if !ok {
		return slog.Attr{}
	}
	return slog.String("stack", string(panicked.Stack))
}

func (l eventLog) swept(ctx context.Context, e Swept) {
	for i := range e.Results {
		l.stuck(ctx, &e.Results[i])
	}
	l.LogAttrs(
		ctx, unless(e.Err == nil, slog.LevelError), "swept", slog.String("machine", e.Machine), slog.Int("results", len(e.Results)),
		slog.Duration("took", e.Took), errorAttr(e.Err),
	)
}

func (l eventLog) stuck(ctx context.Context, r *SweepResult) {
	level := slog.LevelWarn
	if r.Resolution == Moved || r.Resolution == Redone || r.Resolution == Overtaken {
		level = slog.LevelInfo
	}
	l.LogAttrs(
		ctx, level, "stuck", slog.String("machine", r.Machine), slog.String("id", r.ID),
		slog.Uint64("operation", uint64(r.Operation)), slog.String("from", r.From), slog.String("to", r.To),
		slog.String("event", r.Event), slog.String("owner", r.Owner), slog.String("resolution", string(r.Resolution)),
		slog.String("cause", r.Cause), errorAttr(r.Err),
	)
}

// unless returns the level of an event that is logged for debugging only if it is usual.
func unless(usual bool, level slog.Level) slog.Level {
	if usual {
		return slog.LevelDebug
	}
	return level
}
