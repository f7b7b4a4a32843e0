package ovc_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/ovc"
	"github.com/interlock-go/interlock/queue"
)

// TestScripts runs the stories of testdata/*.story: what is asked for, and all that
// happens, in virtual time. Every method takes a minute, unless it is said
// otherwise. The commands:
//
//	add KIND ID [label=TEXT]
//	run KIND ID ACTION [with=ID]            a request, and wait until it is done
//	do KIND ID ACTION [with=ID] [admin]     a request
//	migrate VM
//	method KIND ID ACTION [takes=DURATION] [fails=(TEXT)]
//	update KIND ID STATUS NEW
//	search KIND LABEL STATUS NEW            of the object with the label
//	validate KIND STATUS NEW
//	queue KIND ID | stop KIND ID | terminate
//	heal
//	advance DURATION
//	states | queues
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.story")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".story"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript()
				datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
					t.Helper()
					return s.run(t, d)
				})
				require.NoError(t, s.service.Queuer().Terminate(t.Context()))
			})
		})
	}
}

// script is the world of one file.
type script struct {
	service *ovc.Service
	start   time.Time

	mu    sync.Mutex
	quiet bool
	// healing: reasons are left out. The sweep of the disks and the action that the
	// sweep of the machines has ended race to put a disk back, each with its reason.
	healing bool
	out     []told
	takes   map[string]time.Duration
	fails   map[string]string
}

// told is a line. What a method's goroutine says by itself has no order with what
// others say at the same moment: it comes last there, by name.
type told struct {
	at   time.Duration
	late string
	text string
}

func inOrder(a, b told) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.late, b.late)) }

func newScript() *script {
	s := &script{start: time.Now(), takes: map[string]time.Duration{}, fails: map[string]string{}}
	s.service = ovc.New(lifecycle.NewMemoryStore(), &ovc.Config{
		Method: s.method,
		Observer: lifecycle.Observer{Changed: func(_ context.Context, row lifecycle.HistoryRow) {
			if row.From == "" {
				return
			}
			// A sweep takes an action away, and that puts back what took part in it.
			say := s.printf
			if row.Event == string(ovc.Stuck) {
				say = s.late
			}
			say("%s %s: %s -> %s%s", kind(row.Machine), row.ID, row.From, row.To, s.because(row))
		}},
	})
	return s
}

func (s *script) because(row lifecycle.HistoryRow) string {
	if row.Actor != fsm.Sweeper {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if row.Reason == "" || s.healing {
		return ", " + row.Event
	}
	return ", " + row.Event + ": " + row.Reason
}

func kind(machine string) string { return strings.TrimPrefix(machine, "ovc-") }

func (s *script) method(ctx context.Context, call ovc.Call) error {
	name := fmt.Sprintf("%s %s %s", call.Kind, call.ID, call.Method)
	s.mu.Lock()
	takes, ok := s.takes[name]
	fails := s.fails[name]
	s.mu.Unlock()
	if !ok {
		takes = time.Minute
	}
	with := ""
	if len(call.Disks) > 0 {
		with = " with disk " + strings.Join(call.Disks, ", ")
	}
	s.late("%s() of %s %s%s begins", call.Method, call.Kind, call.ID, with)
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		s.late("%s() of %s %s is told to end", call.Method, call.Kind, call.ID)
		return context.Cause(ctx)
	}
	if fails != "" {
		s.printf("%s() of %s %s fails", call.Method, call.Kind, call.ID)
		return errors.New(fails)
	}
	s.printf("%s() of %s %s ends", call.Method, call.Kind, call.ID)
	return nil
}

func (s *script) printf(format string, args ...any) { s.tell("", format, args...) }

func (s *script) late(format string, args ...any) {
	s.tell(fmt.Sprintf(format, args...), format, args...)
}

func (s *script) tell(late, format string, args ...any) {
	now := time.Since(s.start)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.quiet {
		s.out = append(s.out, told{now, late, fmt.Sprintf("%8s  ", "+"+now.String()) + fmt.Sprintf(format, args...)})
	}
}

func (s *script) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out = append(s.out, told{time.Since(s.start), "", fmt.Sprintf(format, args...)})
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	var words []string
	values := map[string]string{}
	for _, a := range d.CmdArgs {
		if len(a.Vals) == 0 {
			words = append(words, a.Key)
		}
		values[a.Key] = strings.Join(a.Vals, ", ")
	}
	word := func(i int) string {
		require.Less(t, i, len(words), "%s: a word is missing", d.Pos)
		return words[i]
	}
	s.command(t, d.Cmd, word, values)
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.SortStableFunc(s.out, inOrder)
	var out strings.Builder
	for _, line := range s.out {
		out.WriteString(line.text + "\n")
	}
	s.out, s.quiet, s.healing = nil, false, false
	return cmp.Or(out.String(), "nothing\n")
}

func (s *script) command(t *testing.T, cmd string, word func(int) string, values map[string]string) {
	ctx := t.Context()
	object := func() (ovc.Kind, string) { return ovc.Kind(word(0)), word(1) }
	switch cmd {
	case "add":
		k, id := object()
		rec, err := s.service.Add(ctx, k, id, ovc.Model{Labels: map[string]string{"label": values["label"]}})
		s.answer(string(rec.State), err)
	case "do", "run":
		_, admin := values["admin"]
		k, id := object()
		s.mu.Lock()
		s.quiet = cmd == "run"
		s.mu.Unlock()
		h, err := s.service.Do(ctx, k, id, ovc.Event(word(2)), &ovc.Options{With: values["with"], Administrator: admin})
		if err == nil && cmd == "run" {
			_, err = h.Wait(ctx)
			require.NoError(t, err)
		}
		rec, _ := s.service.Get(ctx, k, id)
		s.answer(string(rec.State), err)
	case "migrate":
		_, err := s.service.Migrate(ctx, word(0), nil)
		s.answer("accepted", err)
	case "method":
		name := strings.Join([]string{word(0), word(1), word(2)}, " ")
		s.mu.Lock()
		defer s.mu.Unlock()
		if text, ok := values["takes"]; ok {
			takes, err := time.ParseDuration(text)
			require.NoError(t, err)
			s.takes[name] = takes
		}
		s.fails[name] = values["fails"]
	case "update":
		k, id := object()
		rec, err := s.service.UpdateStatus(ctx, k, id, ovc.State(word(2)), ovc.State(word(3)))
		s.answer(string(rec.State), err)
	case "search":
		match := func(r ovc.Record) bool { return r.Payload.Labels["label"] == word(1) }
		rec, err := s.service.UpdateSearch(ctx, ovc.Kind(word(0)), match, ovc.State(word(2)), ovc.State(word(3)))
		s.answer(rec.ID+" "+string(rec.State), err)
	case "validate":
		s.say("%v", ovc.ValidateTransition(ovc.Kind(word(0)), ovc.State(word(1)), ovc.State(word(2))))
	case "heal":
		s.mu.Lock()
		s.healing = true
		s.mu.Unlock()
		h, err := s.service.SelfHeal(ctx)
		for _, c := range h.Stuck {
			s.say("stuck: %s %s was %s, %v to %s", kind(c.Machine), c.ID, c.From, c.Resolution, c.To)
		}
		s.answer(fmt.Sprintf("%d stuck, %d expired", len(h.Stuck), len(h.Expired)), err)
	case "advance":
		d, err := time.ParseDuration(word(0))
		require.NoError(t, err)
		time.Sleep(d) // of the bubble
	case "states":
		s.states(t)
	default:
		s.queues(t, cmd, object)
	}
}

func (s *script) queues(t *testing.T, cmd string, object func() (ovc.Kind, string)) {
	q := s.service.Queuer()
	switch cmd {
	case "queue":
		created, err := q.Queue(object())
		s.answer(fmt.Sprintf("created: %v", created), err)
	case "stop":
		k, id := object()
		go func() { s.printf("the queue of %s %s is stopped: %v", k, id, q.Stop(context.Background(), k, id)) }()
	case "terminate":
		go func() { s.printf("all queues are terminated: %v", q.Terminate(context.Background())) }()
	case "queues":
		for _, ref := range q.All() {
			var names []string
			for _, a := range q.Actions(ref.Kind, ref.ID) {
				names = append(names, fmt.Sprintf("%s %v", a.Name, a.State))
			}
			s.say("%s %s: %s", ref.Kind, ref.ID, strings.Join(names, ", "))
		}
	default:
		t.Fatalf("no command %q", cmd)
	}
}

func (s *script) states(t *testing.T) {
	for k := range ovc.Kinds() {
		for rec, err := range s.service.Objects(k).All(t.Context(), lifecycle.Select[ovc.State]{}) {
			require.NoError(t, err)
			line := fmt.Sprintf("%s %s: %s", k, rec.ID, rec.State)
			if rec.Payload.VM != "" {
				line += " at vm " + rec.Payload.VM
			}
			if len(rec.Payload.Disks) > 0 {
				line += " with disk " + strings.Join(rec.Payload.Disks, ", ")
			}
			s.say("%s", line)
		}
	}
}

var sentinels = []struct {
	name string
	err  error
}{
	{"ErrBusy", ovc.ErrBusy},
	{"ErrOtherAction", ovc.ErrOtherAction},
	{"ErrMoreThanOne", ovc.ErrMoreThanOne},
	{"lifecycle.ErrNotFound", lifecycle.ErrNotFound},
	{"lifecycle.ErrExists", lifecycle.ErrExists},
	{"lifecycle.ErrInvalid", lifecycle.ErrInvalid},
	{"lifecycle.ErrPrecondition", lifecycle.ErrPrecondition},
	{"fsm.ErrNotAllowed", fsm.ErrNotAllowed},
	{"fsm.ErrWrongActor", fsm.ErrWrongActor},
	{"fsm.ErrUnknownState", fsm.ErrUnknownState},
	{"fsm.ErrUnknownEvent", fsm.ErrUnknownEvent},
	{"queue.ErrStopping", queue.ErrStopping},
	{"queue.ErrTerminated", queue.ErrTerminated},
}

// answer says what came back: of a refusal its text, what it matches, and the
// status code.
func (s *script) answer(text string, err error) {
	if err == nil {
		s.say("= %s", text)
		return
	}
	var is []string
	for _, of := range sentinels {
		if errors.Is(err, of.err) {
			is = append(is, of.name)
		}
	}
	slices.Sort(is)
	s.say("! %v", err)
	s.say("! %s, status %d", strings.Join(is, ", "), lifecycle.HTTPStatus(err))
}
