package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/scripttest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// TestScripts runs the files testdata/manager-*.txt. All objects of a file are in one
// memory store. An OBJECT is machine/id. The commands:
//
//	create OBJECT EVENT by=ACTOR [n=N] [label=X]
//	add    OBJECT by=ACTOR [n=N] [label=X]
//	fire   OBJECT EVENT by=ACTOR [n=N] [label=X] [fail=(TEXT)] [force] [reason=(TEXT)]
//	              [require=(OBJECT, STATE...)] [message=(TOPIC, KEY, TEXT)]
//	report OBJECT EVENT by=ACTOR op=N [reason=(TEXT)]
//	get OBJECT
//	list MACHINE [states=(STATE, ...)] [unchanged=DURATION] [overdue] [after=ID] [limit=N]
//	history OBJECT [after=N] [limit=N]
//	verdicts MACHINE
//	sweep MACHINE
//	messages
//	advance DURATION
//
// n and label edit the payload, fail makes the edit fail.
func TestScripts(t *testing.T) {
	scripttest.Run(t, "testdata/manager-*.txt", func(*testing.T) scripttest.Harness {
		s := newScript()
		return scripttest.Harness{Commands: s.commands(), Trace: func() string { defer s.out.Reset(); return s.out.String() }}
	})
}

// script is the world of one file. Its commands print to out.
type script struct {
	store *lifecycle.MemoryStore
	start time.Time
	out   *strings.Builder
	kinds map[string]kind
}

// kind is a manager without its type parameters.
type kind interface {
	create(t *testing.T, a *scripttest.Args, id string)
	add(t *testing.T, a *scripttest.Args, id string)
	fire(t *testing.T, a *scripttest.Args, id string)
	report(t *testing.T, a *scripttest.Args, id string)
	get(t *testing.T, a *scripttest.Args, id string)
	list(t *testing.T, a *scripttest.Args, id string)
	history(t *testing.T, a *scripttest.Args, id string)
	verdicts(t *testing.T, a *scripttest.Args, id string)
	sweep(t *testing.T, a *scripttest.Args, id string)
	require(id string, states []string) lifecycle.Precondition
}

func newScript() *script {
	s := &script{store: lifecycle.NewMemoryStore(), start: time.Now(), out: &strings.Builder{}}
	editSize := func(p *size, n int, _ string) { p.N = n }
	editBox := func(p *box, n int, label string) {
		if n != 0 {
			p.N = n
		}
		if label != "" {
			p.Tags = append(p.Tags, label)
		}
	}
	editCluster := func(p *edgecloud.ClusterSpec, n int, label string) { p.Nodes, p.Flavor = n, label }
	editApp := func(p *edgecloud.AppSpec, n int, label string) { p.Replicas, p.Image = n, label }
	s.kinds = map[string]kind{
		"vm":          manage(s, boxedVM, editBox, "undo"),
		"lease":       manage(s, lease, editSize),
		"note":        manage(s, note, editSize),
		"clusterinst": manage(s, edgecloud.ClusterInst, editCluster, edgecloud.Undo),
		"appinst":     manage(s, edgecloud.AppInst, editApp, edgecloud.Undo),
	}
	return s
}

func (s *script) commands() map[string]scripttest.Command {
	commands := map[string]scripttest.Command{
		"advance": func(_ *testing.T, a *scripttest.Args) string {
			d, err := time.ParseDuration(a.Word())
			if err != nil {
				a.Fatalf("%v", err)
			}
			time.Sleep(d) // virtual time
			s.printf("now +%s", time.Since(s.start))
			return ""
		},
		"messages": func(t *testing.T, _ *scripttest.Args) string {
			messages, err := s.store.Messages(t.Context(), 100)
			require.NoError(t, err)
			for _, m := range messages {
				s.printf("%d: %s %s %q", m.Number, m.Topic, m.Key, m.Payload)
			}
			return ""
		},
	}
	for name, method := range map[string]func(kind, *testing.T, *scripttest.Args, string){
		"create": kind.create, "add": kind.add, "fire": kind.fire, "report": kind.report,
		"get": kind.get, "list": kind.list, "history": kind.history, "verdicts": kind.verdicts,
		"sweep": kind.sweep,
	} {
		commands[name] = func(t *testing.T, a *scripttest.Args) string {
			machine, id, _ := strings.Cut(a.Word(), "/")
			k := s.kinds[machine]
			require.NotNil(t, k, "machine %q", machine)
			method(k, t, a, id)
			return ""
		}
	}
	return commands
}

func (s *script) printf(format string, args ...any) { fmt.Fprintf(s.out, format+"\n", args...) }

// managed is the implementation of kind.
type managed[S, E ~string, T any] struct {
	s    *script
	m    *lifecycle.Manager[S, E, T]
	edit func(p *T, n int, label string)

	count [lifecycle.Refused + 1]int // of reports, by verdict
}

func manage[S, E ~string, T any](s *script, m *fsm.Machine[S, E, T], edit func(*T, int, string), undo ...E) kind {
	k := &managed[S, E, T]{s: s, edit: edit}
	k.m = lifecycle.Must(m, s.store, &lifecycle.Config[E]{
		Undo: undo,
		Observer: lifecycle.Observer{
			Changed: func(_ context.Context, row lifecycle.CommittedChange) { s.printf("changed: %v", row) },
			Refused: func(_ context.Context, err error) { s.printf("refused: %v", err) },
			Reported: func(_ context.Context, r lifecycle.Reported) {
				k.count[r.Verdict]++
				s.printf("reported: %s %q %s by %s for operation %d, is %q in operation %d: %v: %v",
					r.Machine, r.ID, r.Event, r.Actor, r.Operation, r.State, r.Present, r.Verdict, r.Err)
			},
		},
	})
	return k
}

func by(a *scripttest.Args) fsm.Actor { return fsm.Actor(a.Value("by")) }

func (k *managed[S, E, T]) payload(a *scripttest.Args) (p T) {
	k.edit(&p, a.Number("n"), a.Value("label"))
	return p
}

func (k *managed[S, E, T]) create(t *testing.T, a *scripttest.Args, id string) {
	k.answer(k.m.Create(t.Context(), id, E(a.Word()), by(a), k.payload(a), nil))
}

func (k *managed[S, E, T]) add(t *testing.T, a *scripttest.Args, id string) {
	k.answer(k.m.Add(t.Context(), id, initial(k.m), by(a), k.payload(a), nil))
}

func (k *managed[S, E, T]) fire(t *testing.T, a *scripttest.Args, id string) {
	e := E(a.Word())
	c := &lifecycle.Change[T]{Reason: a.Value("reason"), Force: a.Flag("force")}
	n, label, fail := a.Number("n"), a.Value("label"), a.Value("fail")
	if n != 0 || label != "" || fail != "" {
		c.Edit = func(p *T) error {
			k.edit(p, n, label)
			if fail != "" {
				return errors.New(fail)
			}
			return nil
		}
	}
	if of := a.Values("require"); of != nil {
		machine, other, _ := strings.Cut(of[0], "/")
		c.Require = append(c.Require, k.s.kinds[machine].require(other, of[1:]))
	}
	if m := a.Values("message"); m != nil {
		c.Messages = append(c.Messages, lifecycle.Message{Topic: m[0], Key: m[1], Payload: []byte(m[2])})
	}
	k.answer(k.m.Fire(t.Context(), id, e, by(a), c))
}

func (k *managed[S, E, T]) require(id string, states []string) lifecycle.Precondition {
	return k.m.Require(id, statesOf[S](states)...)
}

func statesOf[S ~string](names []string) (list []S) {
	for _, name := range names {
		list = append(list, S(name))
	}
	return list
}

func (k *managed[S, E, T]) report(t *testing.T, a *scripttest.Args, id string) {
	e, op := E(a.Word()), lifecycle.OpID(a.Number("op"))
	verdict, err := k.m.Report(t.Context(), id, op, e, by(a), &lifecycle.Change[T]{Reason: a.Value("reason")})
	k.refused(err)
	k.s.printf("%v", verdict)
}

func (k *managed[S, E, T]) get(t *testing.T, _ *scripttest.Args, id string) {
	k.answer(k.m.Get(t.Context(), id))
}

func (k *managed[S, E, T]) list(t *testing.T, a *scripttest.Args, _ string) {
	records, err := k.m.List(t.Context(), lifecycle.Select[S]{
		Overdue: a.Flag("overdue"), After: a.Value("after"), Limit: a.Number("limit"),
		States: statesOf[S](a.Values("states")), UnchangedFor: a.Duration("unchanged"),
	})
	for _, rec := range records {
		k.answer(rec, nil)
	}
	k.refused(err)
}

func (k *managed[S, E, T]) history(t *testing.T, a *scripttest.Args, id string) {
	rows, err := k.m.History(t.Context(), id, uint64(a.Number("after")), a.Number("limit"))
	for _, row := range rows {
		k.s.printf("%v", row)
	}
	k.refused(err)
}

func (k *managed[S, E, T]) verdicts(*testing.T, *scripttest.Args, string) {
	k.s.printf("{Applied:%d Repeated:%d Stale:%d Refused:%d}", k.count[0], k.count[1], k.count[2], k.count[3])
}

func (k *managed[S, E, T]) sweep(t *testing.T, _ *scripttest.Args, _ string) {
	results, err := k.m.Sweep(t.Context())
	require.NoError(t, err)
	for _, r := range results {
		k.s.printf("%v", r)
	}
}

// answer prints a record or an error.
func (k *managed[S, E, T]) answer(rec lifecycle.Record[S, T], err error) {
	if err == nil {
		k.s.printf("%s", recordText(k.s.start, rec))
		return
	}
	k.refused(err)
}

// refused prints an error: its text, the sentinels that it matches, its status code and
// the record that won, if any. It prints nothing for nil.
func (k *managed[S, E, T]) refused(err error) {
	if err == nil {
		return
	}
	k.s.printf("error: %v\n  %s, status %d", err, strings.Join(matches(err), ", "), lifecycle.HTTPStatus(err))
	if winner, ok := lifecycle.Current(k.m, err); ok {
		k.s.printf("  winner: %s", recordText(k.s.start, winner))
	}
}

func recordText[S ~string, T any](start time.Time, r lifecycle.Record[S, T]) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", r.ID, r.State)
	if r.Origin != r.State {
		fmt.Fprintf(&b, " from %s", r.Origin)
	}
	if r.Target != "" {
		fmt.Fprintf(&b, " to %s", r.Target)
	}
	fmt.Fprintf(&b, ", revision %s #%d operation %d", r.Revision, r.Sequence, r.Operation)
	if r.Owner != "" || r.Epoch != 0 {
		fmt.Fprintf(&b, " of %s %d", r.Owner, r.Epoch)
	}
	fmt.Fprintf(&b, ", changed +%s", r.ChangedAt.Sub(start))
	if !r.Deadline.IsZero() {
		fmt.Fprintf(&b, " until +%s", r.Deadline.Sub(start))
	}
	fmt.Fprintf(&b, ", %q by %s", r.Event, r.Actor)
	if r.Reason != "" {
		fmt.Fprintf(&b, " (%s)", r.Reason)
	}
	b.WriteString(", " + strings.NewReplacer(" Results:[]", "", " Attributes:[]", "").Replace(fmt.Sprintf("%+v", r.Payload))) // of edgecloud, if there are none
	return b.String()
}

// matches names the sentinels that an error matches.
func matches(err error) (names []string) {
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			names = append(names, s.name)
		}
	}
	if names == nil {
		return []string{"no sentinel"}
	}
	return names
}

var sentinels = []struct {
	name string
	err  error
}{
	{"ErrConflict", lifecycle.ErrConflict},
	{"ErrRevision", lifecycle.ErrRevision},
	{"ErrRepeated", lifecycle.ErrRepeated},
	{"ErrBusy", lifecycle.ErrBusy},
	{"ErrNotFound", lifecycle.ErrNotFound},
	{"ErrExists", lifecycle.ErrExists},
	{"ErrStale", lifecycle.ErrStale},
	{"ErrPrecondition", lifecycle.ErrPrecondition},
	{"ErrInvalid", lifecycle.ErrInvalid},
	{"ErrForeign", lifecycle.ErrForeign},
	{"ErrMisconfigured", lifecycle.ErrMisconfigured},
	{"ErrClosed", lifecycle.ErrClosed},
	{"ErrUnavailable", lifecycle.ErrUnavailable},
	{"ErrUnknownOutcome", lifecycle.ErrUnknownOutcome},
	{"fsm.ErrNotAllowed", fsm.ErrNotAllowed},
	{"fsm.ErrWrongActor", fsm.ErrWrongActor},
	{"fsm.ErrGuard", fsm.ErrGuard},
	{"fsm.ErrForcedOnly", fsm.ErrForcedOnly},
	{"fsm.ErrUnknownState", fsm.ErrUnknownState},
	{"fsm.ErrUnknownEvent", fsm.ErrUnknownEvent},
}
