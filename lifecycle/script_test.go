package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// TestScripts runs the stories of testdata/manager-*.txt: calls in, the full
// trace out. All objects of a file live in one memory store, and time is that
// of a bubble. Objects are named machine/id. The commands:
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
//	messages
//	advance DURATION
//
// n and label edit the payload, fail makes the edit fail.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/manager-*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript()
				datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
					t.Helper()
					return s.run(&line{t: t, d: d})
				})
			})
		})
	}
}

// script is the world of one file.
type script struct {
	store *lifecycle.MemoryStore
	start time.Time
	out   *strings.Builder
	kinds map[string]kind
}

// kind is a manager without its type parameters.
type kind interface {
	create(s *script, l *line, id string)
	add(s *script, l *line, id string)
	fire(s *script, l *line, id string)
	report(s *script, l *line, id string)
	get(s *script, id string)
	list(s *script, l *line)
	history(s *script, l *line, id string)
	verdicts(s *script)
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

func (s *script) printf(format string, args ...any) { fmt.Fprintf(s.out, format+"\n", args...) }

func (s *script) run(l *line) string {
	s.out.Reset()
	defer l.done()
	switch l.d.Cmd {
	case "advance":
		d, err := time.ParseDuration(l.word())
		require.NoError(l.t, err)
		time.Sleep(d) // of the bubble
		s.printf("now +%s", time.Since(s.start))
	case "messages":
		messages, err := s.store.Messages(l.t.Context(), 100)
		require.NoError(l.t, err)
		for _, m := range messages {
			s.printf("%d: %s %s %q", m.Number, m.Topic, m.Key, m.Payload)
		}
	default:
		machine, id, _ := strings.Cut(l.word(), "/")
		k := s.kinds[machine]
		require.NotNil(l.t, k, "machine %q", machine)
		switch l.d.Cmd {
		case "create":
			k.create(s, l, id)
		case "add":
			k.add(s, l, id)
		case "fire":
			k.fire(s, l, id)
		case "report":
			k.report(s, l, id)
		case "get":
			k.get(s, id)
		case "list":
			k.list(s, l)
		case "history":
			k.history(s, l, id)
		case "verdicts":
			k.verdicts(s)
		default:
			l.t.Fatalf("no command %q", l.d.Cmd)
		}
	}
	if s.out.Len() == 0 {
		return "nothing\n"
	}
	return s.out.String()
}

// managed is the one kind of kind.
type managed[S, E ~string, T any] struct {
	m    *lifecycle.Manager[S, E, T]
	edit func(p *T, n int, label string)

	count [lifecycle.Refused + 1]int // of reports, by verdict
}

func manage[S, E ~string, T any](s *script, m *fsm.Machine[S, E, T], edit func(*T, int, string), undo ...E) kind {
	k := &managed[S, E, T]{edit: edit}
	k.m = lifecycle.Must(m, s.store, &lifecycle.Config[E]{
		Undo: undo,
		Observer: lifecycle.Observer{
			Changed: func(_ context.Context, row lifecycle.HistoryRow) { s.printf("changed: %v", row) },
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

func (k *managed[S, E, T]) create(s *script, l *line, id string) {
	e, payload := E(l.word()), k.payload(l)
	k.answer(s)(k.m.Create(l.t.Context(), id, e, l.actor(), payload))
}

func (k *managed[S, E, T]) add(s *script, l *line, id string) {
	payload := k.payload(l)
	k.answer(s)(k.m.Add(l.t.Context(), id, l.actor(), payload))
}

func (k *managed[S, E, T]) payload(l *line) (p T) {
	k.edit(&p, l.number("n"), l.value("label"))
	return p
}

func (k *managed[S, E, T]) fire(s *script, l *line, id string) {
	e := E(l.word())
	c := &lifecycle.Change[T]{Reason: l.value("reason"), Force: l.flag("force")}
	fail := l.value("fail")
	n, label := l.number("n"), l.value("label")
	if n != 0 || label != "" || fail != "" {
		c.Edit = func(p *T) error {
			k.edit(p, n, label)
			if fail != "" {
				return errors.New(fail)
			}
			return nil
		}
	}
	if of := l.values("require"); of != nil {
		machine, other, _ := strings.Cut(of[0], "/")
		c.Require = append(c.Require, s.kinds[machine].require(other, of[1:]))
	}
	if m := l.values("message"); m != nil {
		c.Messages = append(c.Messages, lifecycle.Message{Topic: m[0], Key: m[1], Payload: []byte(m[2])})
	}
	k.answer(s)(k.m.Fire(l.t.Context(), id, e, l.actor(), c))
}

func (k *managed[S, E, T]) require(id string, states []string) lifecycle.Precondition {
	typed := make([]S, len(states))
	for i, st := range states {
		typed[i] = S(st)
	}
	return k.m.Require(id, typed...)
}

func (k *managed[S, E, T]) report(s *script, l *line, id string) {
	e, op := E(l.word()), lifecycle.OpID(l.number("op"))
	verdict, err := k.m.Report(l.t.Context(), id, op, e, l.actor(), l.value("reason"))
	if err != nil {
		k.answer(s)(lifecycle.Record[S, T]{}, err)
	}
	s.printf("%v", verdict)
}

func (k *managed[S, E, T]) get(s *script, id string) {
	k.answer(s)(k.m.Get(context.Background(), id))
}

func (k *managed[S, E, T]) list(s *script, l *line) {
	sel := lifecycle.Select[S]{Overdue: l.flag("overdue"), After: l.value("after"), Limit: l.number("limit")}
	for _, st := range l.values("states") {
		sel.States = append(sel.States, S(st))
	}
	if d := l.value("unchanged"); d != "" {
		var err error
		sel.UnchangedFor, err = time.ParseDuration(d)
		require.NoError(l.t, err)
	}
	records, err := k.m.List(l.t.Context(), sel)
	for _, rec := range records {
		k.answer(s)(rec, nil)
	}
	if err != nil {
		k.answer(s)(lifecycle.Record[S, T]{}, err)
	}
}

func (k *managed[S, E, T]) history(s *script, l *line, id string) {
	rows, err := k.m.History(l.t.Context(), id, uint64(l.number("after")), l.number("limit"))
	for _, row := range rows {
		s.printf("%v", row)
	}
	if err != nil {
		k.answer(s)(lifecycle.Record[S, T]{}, err)
	}
}

func (k *managed[S, E, T]) verdicts(s *script) {
	s.printf("{Applied:%d Repeated:%d Stale:%d Refused:%d}", k.count[0], k.count[1], k.count[2], k.count[3])
}

// answer prints a record or an error: its text, the sentinels that it matches,
// its status code and the record that won, if any.
func (k *managed[S, E, T]) answer(s *script) func(lifecycle.Record[S, T], error) {
	return func(rec lifecycle.Record[S, T], err error) {
		if err == nil {
			s.printf("%s", recordText(s.start, rec))
			return
		}
		s.printf("error: %v\n  %s, status %d", err, strings.Join(matches(err), ", "), lifecycle.HTTPStatus(err))
		if winner, ok := k.m.Current(err); ok {
			s.printf("  winner: %s", recordText(s.start, winner))
		}
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
	fmt.Fprintf(&b, ", %+v", r.Payload)
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
	{"ErrBusy", lifecycle.ErrBusy},
	{"ErrNotFound", lifecycle.ErrNotFound},
	{"ErrExists", lifecycle.ErrExists},
	{"ErrStale", lifecycle.ErrStale},
	{"ErrPrecondition", lifecycle.ErrPrecondition},
	{"ErrInvalid", lifecycle.ErrInvalid},
	{"ErrForeign", lifecycle.ErrForeign},
	{"ErrClosed", lifecycle.ErrClosed},
	{"ErrUnknownOutcome", lifecycle.ErrUnknownOutcome},
	{"fsm.ErrNotAllowed", fsm.ErrNotAllowed},
	{"fsm.ErrWrongActor", fsm.ErrWrongActor},
	{"fsm.ErrGuard", fsm.ErrGuard},
	{"fsm.ErrForcedOnly", fsm.ErrForcedOnly},
	{"fsm.ErrUnknownState", fsm.ErrUnknownState},
	{"fsm.ErrUnknownEvent", fsm.ErrUnknownEvent},
}

// line is one command. What it does not read is a mistake in the file.
type line struct {
	t    *testing.T
	d    *datadriven.TestData
	read []int
}

// word returns the next argument that is not key=value.
func (l *line) word() string {
	for i, arg := range l.d.CmdArgs {
		if len(arg.Vals) == 0 && !slices.Contains(l.read, i) {
			l.read = append(l.read, i)
			return arg.Key
		}
	}
	l.d.Fatalf(l.t, "a word is missing")
	return ""
}

func (l *line) values(key string) []string {
	for i, arg := range l.d.CmdArgs {
		if arg.Key == key {
			l.read = append(l.read, i)
			return arg.Vals
		}
	}
	return nil
}

func (l *line) value(key string) string { return strings.Join(l.values(key), ", ") }

func (l *line) flag(key string) bool {
	before := len(l.read)
	l.values(key)
	return len(l.read) > before
}

func (l *line) actor() fsm.Actor { return fsm.Actor(l.value("by")) }

func (l *line) number(key string) int {
	text := l.value(key)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	require.NoError(l.t, err)
	return n
}

func (l *line) done() {
	for i, arg := range l.d.CmdArgs {
		if !slices.Contains(l.read, i) {
			l.d.Fatalf(l.t, "argument %s means nothing", arg.Key)
		}
	}
}
