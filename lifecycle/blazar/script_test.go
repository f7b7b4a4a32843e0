package blazar_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/blazar"
)

// TestScripts runs the stories of testdata/*.story.txt, in virtual time. What is
// printed are the commits, one a line with everything that changed in it, and then
// what the caller got. Times are durations since the story began. The commands:
//
//	create ID [start=T] end=T [before=T] [reserve=(TYPE[:N], ...)]
//	update ID [name=X] [start=T] [end=T] [before=T] [amount=(N:AMOUNT)]
//	start ID | end ID | delete ID
//	show ID
//	flag ID N [missing] [changed]
//	process          what is due
//	sweep            what is stuck
//	pass DURATION    time passes; what was begun and did not end goes on
//	plugin CALL ok|fails|refuses|hangs|is-deaf|panics
//	fire ID CALL by=ACTOR    past the methods, by the manager of leases
//
// A command with "aside" is not waited for; what it came to is printed once it
// has ended. A plugin that hangs looks at its context, one that is deaf does not.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.story.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".story.txt"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStory()
				datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
					t.Helper()
					return s.run(t, d)
				})
				close(s.wake)
				synctest.Wait()
				s.store.ends(t)
			})
		})
	}
}

type story struct {
	store   *watched
	service *blazar.Service
	began   time.Time
	wake    chan struct{} // closed at the end

	mu     sync.Mutex
	does   map[string]string // by call of the plugin
	called []string
	aside  []string // what commands came to that nobody waited for
}

var errBroken = errors.New("it is broken")

func newStory() *story {
	s := &story{store: watch(), began: time.Now(), wake: make(chan struct{}), does: map[string]string{}}
	plugin := func(kind string) blazar.Plugin {
		call := func(name string) func(context.Context, blazar.Allocation) error {
			return func(ctx context.Context, a blazar.Allocation) error { return s.plugin(ctx, kind, name, a) }
		}
		return blazar.Plugin{
			Reserve: func(ctx context.Context, a blazar.Allocation) (string, error) {
				err := s.plugin(ctx, kind, "reserve", a)
				return "", err
			},
			Update: call("update"), OnStart: call("on-start"), BeforeEnd: call("before-end"), OnEnd: call("on-end"),
		}
	}
	s.service = blazar.New(s.store, &blazar.Config{Plugins: map[string]blazar.Plugin{
		"host": plugin("host"), "network": plugin("network"),
	}})
	return s
}

func (s *story) plugin(ctx context.Context, kind, name string, a blazar.Allocation) error {
	s.mu.Lock()
	does := or(s.does[name+" of "+kind], s.does[name])
	s.called = append(s.called, fmt.Sprintf("%s: %s %s of %d", a.Lease, name, shortName(a.Reservation), a.Amount))
	s.mu.Unlock()
	switch does {
	case "fails":
		return errBroken
	case "refuses":
		return fmt.Errorf("%w: no more %ss", blazar.ErrRefused, kind)
	case "hangs":
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.wake:
		}
	case "is-deaf":
		<-s.wake
	case "panics":
		panic(errBroken)
	}
	return nil
}

func (s *story) run(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	ctx := t.Context()
	id := ""
	if len(d.CmdArgs) > 0 && len(d.CmdArgs[0].Vals) == 0 {
		id = d.CmdArgs[0].Key
	}
	var do func() string
	show := func(lease blazar.LeaseInfo, err error) string {
		if err != nil {
			return s.say(err)
		}
		return fmt.Sprintf("%s is %s\n", id, lease.Status)
	}
	switch d.Cmd {
	case "create":
		spec := blazar.LeaseSpec{Name: id, Start: s.at(t, d, "start"), End: s.at(t, d, "end"), BeforeEnd: s.at(t, d, "before")}
		spec.Reservations = requests(t, d)
		do = func() string { return show(s.service.CreateLease(ctx, id, spec)) }
	case "update":
		update := blazar.LeaseUpdate{Start: s.at(t, d, "start"), End: s.at(t, d, "end"), BeforeEnd: s.at(t, d, "before")}
		d.MaybeScanArgs(t, "name", &update.Name)
		update.Amounts = s.amounts(t, d, id)
		do = func() string { return show(s.service.UpdateLease(ctx, id, update)) }
	case "start":
		do = func() string { return show(s.service.StartLease(ctx, id)) }
	case "end":
		do = func() string { return show(s.service.EndLease(ctx, id)) }
	case "delete":
		do = func() string {
			if err := s.service.DeleteLease(ctx, id); err != nil {
				return s.say(err)
			}
			return id + " is gone\n"
		}
	case "show":
		do = func() string { return s.show(ctx, id) }
	case "flag":
		do = func() string {
			lease, err := s.service.GetLease(ctx, id)
			require.NoError(t, err)
			n, err := strconv.Atoi(d.CmdArgs[1].Key)
			require.NoError(t, err)
			return s.say(s.service.Flag(ctx, lease.Reservations[n-1].ID, blazar.Flags{
				MissingResources: d.HasArg("missing"), ResourcesChanged: d.HasArg("changed"),
			}))
		}
	case "process":
		do = func() string {
			handled, err := s.service.Process(ctx)
			text := s.say(err)
			for _, h := range handled {
				text += fmt.Sprintf("%s of %s: %s", h.Type, h.Lease, h.Status)
				if h.Err != nil {
					text += ": " + h.Err.Error()
				}
				text += "\n"
			}
			return text
		}
	case "sweep":
		do = func() string {
			cases, err := s.service.Sweep(ctx)
			text := s.say(err)
			for _, c := range cases {
				text += fmt.Sprintf("%s in %s: %v %s\n", c.ID, c.From, c.Resolution, c.To)
			}
			return text
		}
	case "pass":
		passes, err := time.ParseDuration(id)
		require.NoError(t, err)
		do = func() string { time.Sleep(passes); return "" }
	case "plugin":
		do = func() string {
			s.mu.Lock()
			defer s.mu.Unlock()
			name := strings.Join(strings.Fields(strings.ReplaceAll(id, "_", " ")), " ")
			s.does[name] = d.CmdArgs[1].Key
			return ""
		}
	case "fire":
		var actor string
		d.ScanArgs(t, "by", &actor)
		do = func() string {
			rec, err := s.service.Leases.Fire(ctx, id, blazar.Call(d.CmdArgs[1].Key), fsm.Actor(actor), nil)
			return show(blazar.LeaseInfo{Status: rec.State}, err)
		}
	default:
		t.Fatalf("no command %q", d.Cmd)
	}
	return s.perform(d, do)
}

// perform does a command and tells what happened.
func (s *story) perform(d *datadriven.TestData, do func() string) string {
	result := ""
	if d.HasArg("aside") {
		what := d.Cmd + " " + d.CmdArgs[0].Key
		go func() {
			text := what + " came to: " + do()
			s.mu.Lock()
			s.aside = append(s.aside, text)
			s.mu.Unlock()
		}()
	} else {
		result = do()
	}
	synctest.Wait() // for what goes on
	s.mu.Lock()
	defer s.mu.Unlock()
	calls, aside := s.called, s.aside
	s.called, s.aside = nil, nil
	var out strings.Builder
	commits := s.store.take()
	// Leases that are at work side by side are told one after the other.
	byLease := func(a, b string) int {
		a, _, _ = strings.Cut(a, ":")
		b, _, _ = strings.Cut(b, ":")
		return strings.Compare(a, b)
	}
	slices.SortStableFunc(commits, byLease)
	slices.SortStableFunc(calls, byLease)
	for _, c := range commits {
		fmt.Fprintf(&out, "  %s\n", c)
	}
	for _, c := range calls {
		fmt.Fprintf(&out, "  plugin for %s\n", c)
	}
	out.WriteString(strings.Join(aside, ""))
	out.WriteString(result)
	return out.String()
}

// say tells an error, with its status code.
func (s *story) say(err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprintf("HTTP %d: %s\n", lifecycle.HTTPStatus(err), strings.ReplaceAll(err.Error(), "\n", "; "))
}

func (s *story) show(ctx context.Context, id string) string {
	lease, err := s.service.GetLease(ctx, id)
	if err != nil {
		return s.say(err)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s %q", lease.Status, lease.Spec.Name)
	if lease.Degraded {
		out.WriteString(", degraded")
	}
	if lease.Reason != "" {
		fmt.Fprintf(&out, " (%s)", strings.ReplaceAll(lease.Reason, "\n", "; "))
	}
	if len(lease.Never) > 0 {
		fmt.Fprintf(&out, ", never to %v", lease.Never)
	}
	out.WriteString("\n")
	for _, r := range lease.Reservations {
		fmt.Fprintf(&out, "  %s of %d %s: %s", shortName(r.ID), r.Amount, r.Resource, r.Status)
		if r.MissingResources {
			out.WriteString(", missing resources")
		}
		if r.ResourcesChanged {
			out.WriteString(", resources changed")
		}
		out.WriteString("\n")
	}
	for _, e := range lease.Events {
		fmt.Fprintf(&out, "  %s at %v: %s\n", e.Type, e.Time.Sub(s.began), e.Status)
	}
	return out.String()
}

// at reads a time.
func (s *story) at(t *testing.T, d *datadriven.TestData, name string) (at time.Time) {
	var text string
	if d.MaybeScanArgs(t, name, &text); text == "" {
		return at
	}
	after, err := time.ParseDuration(text)
	require.NoError(t, err)
	return s.began.Add(after)
}

func requests(t *testing.T, d *datadriven.TestData) (list []blazar.Request) {
	arg, ok := d.Arg("reserve")
	if !ok {
		return nil
	}
	for _, text := range arg.Vals {
		kind, amount, _ := strings.Cut(text, ":")
		n, err := strconv.Atoi(or(amount, "1"))
		require.NoError(t, err)
		list = append(list, blazar.Request{Resource: kind, Amount: n})
	}
	return list
}

// amounts reads which reservations are to be of another amount.
func (s *story) amounts(t *testing.T, d *datadriven.TestData, id string) map[string]int {
	arg, ok := d.Arg("amount")
	if !ok {
		return nil
	}
	lease, err := s.service.GetLease(t.Context(), id)
	require.NoError(t, err)
	list := map[string]int{}
	for _, text := range arg.Vals {
		n, amount, _ := strings.Cut(text, ":")
		i, err := strconv.Atoi(n)
		require.NoError(t, err)
		a, err := strconv.Atoi(amount)
		require.NoError(t, err)
		if i > len(lease.Reservations) {
			list["unknown"] = a
			continue
		}
		list[lease.Reservations[i-1].ID] = a
	}
	return list
}
