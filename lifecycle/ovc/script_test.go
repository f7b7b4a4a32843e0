package ovc_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/scripttest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/ovc"
	"github.com/interlock-go/interlock/queue"
)

// TestScripts runs testdata/*.script. The trace has every change and every method, with the
// virtual time since the start. A method takes a minute by default. The commands beside
// those of scripttest:
//
//	add KIND ID
//	run KIND ID ACTION [with=ID]            requests an action and waits for its end, without a trace
//	do KIND ID ACTION [with=ID] [admin]     requests an action
//	migrate VM
//	method KIND ID ACTION [takes=DURATION] [fails=(TEXT)]
//	update KIND ID STATUS NEW
//	validate KIND STATUS NEW
//	stop KIND ID | terminate
//	heal
//	states | queues
func TestScripts(t *testing.T) {
	scripttest.Run(t, "testdata/*.script", func(*testing.T) scripttest.Harness {
		s := &script{start: time.Now(), takes: map[string]time.Duration{}, fails: map[string]string{}}
		s.service = ovc.Must(lifecycle.NewMemoryStore(), &ovc.Config{
			Method: s.method, Observer: lifecycle.Observer{Changed: s.changed},
		})
		return scripttest.Harness{
			Commands: s.commands(), Trace: s.trace,
			Close: func(t *testing.T) { require.NoError(t, s.service.Queuer().Terminate(t.Context())) },
		}
	})
}

type script struct {
	service *ovc.Service
	start   time.Time

	mu      sync.Mutex
	quiet   bool // no trace
	healing bool // no reasons: two writers may move a disk back, each with a reason of its own
	lines   []traceLine
	takes   map[string]time.Duration
	fails   map[string]string
}

// traceLine is a line of the trace. Lines of concurrent goroutines have a sort key: they
// follow the others of the same time, in its order.
type traceLine struct {
	at        time.Duration
	key, text string
}

func (s *script) changed(_ context.Context, row lifecycle.CommittedChange) {
	if row.From == "" {
		return
	}
	text := fmt.Sprintf("%s %s: %s -> %s", kindName(row.Machine), row.ID, row.From, row.To)
	s.mu.Lock()
	healing := s.healing
	s.mu.Unlock()
	if row.Actor == fsm.Sweeper || row.Actor == ovc.Observer {
		text += ", " + row.Event
		if row.Reason != "" && !healing {
			text += ": " + row.Reason
		}
	}
	// A sweep cancels an action, and the end of the action moves other objects.
	s.print(text, row.Event == string(ovc.Stuck))
}

func kindName(machine string) string { return strings.TrimPrefix(machine, "ovc-") }

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
	text := fmt.Sprintf("%s() of %s %s", call.Method, call.Kind, call.ID)
	s.print(text+with+" starts", true)
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		s.print(text+" is canceled", true)
		return context.Cause(ctx)
	}
	if fails != "" {
		s.print(text+" fails", false)
		return errors.New(fails)
	}
	s.print(text+" ends", false)
	return nil
}

func (s *script) print(text string, concurrent bool) {
	line := traceLine{at: time.Since(s.start), text: text}
	if concurrent {
		line.key = text
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.quiet {
		s.lines = append(s.lines, line)
	}
}

func (s *script) trace() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.SortStableFunc(s.lines, func(a, b traceLine) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.key, b.key)) })
	var out strings.Builder
	for _, line := range s.lines {
		fmt.Fprintf(&out, "%8s  %s\n", "+"+line.at.String(), line.text)
	}
	s.lines, s.quiet, s.healing = nil, false, false
	return out.String()
}

func (s *script) commands() map[string]scripttest.Command {
	q := s.service.Queuer()
	return map[string]scripttest.Command{
		"add": func(t *testing.T, a *scripttest.Args) string {
			rec, err := s.service.Add(t.Context(), ovc.Kind(a.Word()), a.Word(), "", ovc.Model{})
			return answer(string(rec.State), err)
		},
		"do":  s.do,
		"run": s.do,
		"migrate": func(t *testing.T, a *scripttest.Args) string {
			_, err := s.service.Migrate(t.Context(), a.Word(), nil)
			return answer("accepted", err)
		},
		"method": func(_ *testing.T, a *scripttest.Args) string {
			name := strings.Join(a.Words(), " ")
			s.mu.Lock()
			defer s.mu.Unlock()
			if d := a.Duration("takes"); d > 0 {
				s.takes[name] = d
			}
			s.fails[name] = a.Value("fails")
			return ""
		},
		"update": func(t *testing.T, a *scripttest.Args) string {
			rec, err := s.service.UpdateStatus(t.Context(), ovc.Kind(a.Word()), a.Word(), ovc.State(a.Word()), ovc.State(a.Word()))
			return answer(string(rec.State), err)
		},
		"validate": func(_ *testing.T, a *scripttest.Args) string {
			return fmt.Sprint(ovc.ValidateTransition(ovc.Kind(a.Word()), ovc.State(a.Word()), ovc.State(a.Word())))
		},
		"heal": s.heal,
		"stop": func(_ *testing.T, a *scripttest.Args) string {
			kind, id := ovc.Kind(a.Word()), a.Word()
			go func() {
				err := q.Stop(context.Background(), kind.Key(id))
				s.print(fmt.Sprintf("the queue of %s %s is stopped: %v", kind, id, err), false)
			}()
			return ""
		},
		"terminate": func(*testing.T, *scripttest.Args) string {
			go func() {
				s.print(fmt.Sprintf("all queues are terminated: %v", q.Terminate(context.Background())), false)
			}()
			return ""
		},
		"queues": func(*testing.T, *scripttest.Args) string {
			var lines []string
			for key := range q.All() {
				var names []string
				for _, a := range q.Inspect(key) {
					names = append(names, fmt.Sprintf("%s %v", a.Name, a.State))
				}
				lines = append(lines, fmt.Sprintf("%s %s: %s", kindName(key.Machine), key.ID, strings.Join(names, ", ")))
			}
			slices.Sort(lines)
			return strings.Join(lines, "\n")
		},
		"states": s.states,
	}
}

// do is the command do, and run.
func (s *script) do(t *testing.T, a *scripttest.Args) string {
	options := &ovc.Options{Administrator: a.Flag("admin"), With: a.Value("with")}
	kind, id := ovc.Kind(a.Word()), a.Word()
	s.mu.Lock()
	s.quiet = a.Command() == "run"
	s.mu.Unlock()
	ticket, err := s.service.Do(t.Context(), kind, id, ovc.Event(a.Word()), options)
	if err == nil && a.Command() == "run" {
		_, err = ticket.Wait(t.Context())
		require.NoError(t, err)
	}
	rec, _ := s.service.Get(t.Context(), kind, id)
	return answer(string(rec.State), err)
}

func (s *script) heal(t *testing.T, _ *scripttest.Args) string {
	s.mu.Lock()
	s.healing = true
	s.mu.Unlock()
	h, err := s.service.SelfHeal(t.Context())
	out := ""
	for _, r := range h.Stuck {
		if r.Machine == ovc.Disk.Name() {
			continue // the end of its machine's action may be faster than the sweep; the trace has the change
		}
		out += fmt.Sprintf("stuck: %s %s was %s, %v to %s\n", kindName(r.Machine), r.ID, r.From, r.Resolution, r.To)
	}
	return out + answer(fmt.Sprintf("%d expired", len(h.Expired)), err)
}

func (s *script) states(t *testing.T, _ *scripttest.Args) string {
	var out strings.Builder
	for kind := range ovc.Kinds() {
		for rec, err := range s.service.Objects(kind).All(t.Context(), lifecycle.Select[ovc.State]{}) {
			require.NoError(t, err)
			fmt.Fprintf(&out, "%s %s: %s", kind, rec.ID, rec.State)
			if rec.Payload.VM != "" {
				fmt.Fprintf(&out, " at vm %s", rec.Payload.VM)
			}
			if len(rec.Payload.Disks) > 0 {
				fmt.Fprintf(&out, " with disk %s", strings.Join(rec.Payload.Disks, ", "))
			}
			out.WriteString("\n")
		}
	}
	return out.String()
}

var sentinels = []struct {
	name string
	err  error
}{
	{"ErrBusy", ovc.ErrBusy},
	{"ErrOtherAction", ovc.ErrOtherAction},
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

// answer returns the result of a request; of a refusal the text, the sentinels that it
// matches, and the status code.
func answer(text string, err error) string {
	if err == nil {
		return "= " + text
	}
	var matches []string
	for _, of := range sentinels {
		if errors.Is(err, of.err) {
			matches = append(matches, of.name)
		}
	}
	slices.Sort(matches)
	return fmt.Sprintf("! %v\n! %s, status %d", err, strings.Join(matches, ", "), lifecycle.HTTPStatus(err))
}
