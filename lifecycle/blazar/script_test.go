package blazar_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/scripttest"
	"github.com/interlock-go/interlock/lifecycle/blazar"
)

// TestScripts runs testdata/*.script. The output has the commits, one a line with all
// changes in it, the calls of plugins, and the result of the command. Times are durations
// since the begin of the script. The commands:
//
//	create ID [start=T] end=T [reserve=(TYPE[:N], ...)]
//	update ID [name=X] [start=T] [end=T] [amount=(N:AMOUNT)]
//	start ID | end ID | delete ID
//	show ID
//	flag ID N [missing] [changed]
//	process
//	sweep
//	plugin CALL ok|fails|refuses|hangs|ignores-context|panics
//	fire ID CALL by=ACTOR    by the manager of leases
//
// A command with "async" does not wait; the result is printed once it has ended. A plugin
// that hangs ends with its context, one that ignores its context does not.
func TestScripts(t *testing.T) {
	scripttest.Run(t, "testdata/*.script", func(t *testing.T) scripttest.Harness {
		s := &script{store: newChecked(t), began: time.Now(), wake: make(chan struct{}), behaviour: map[string]string{}}
		s.service = newService(t, s.store, &blazar.Config{Plugins: map[string]blazar.Plugin{
			"host": s.plugin("host"), "network": s.plugin("network"),
		}})
		w := scripttest.Harness{Trace: s.trace, Commands: map[string]scripttest.Command{}, Close: func(t *testing.T) {
			close(s.wake)
			s.store.requireNoFaults(t)
		}}
		for name, prepare := range map[string]func(context.Context, *testing.T, *scripttest.Args) func() string{
			"create": s.create, "update": s.update, "start": s.start, "end": s.end, "delete": s.delete, "show": s.show,
			"flag": s.flag, "process": s.process, "sweep": s.sweep, "plugin": s.setPlugin, "fire": s.fire,
		} {
			w.Commands[name] = func(t *testing.T, a *scripttest.Args) string {
				async := a.Flag("async")
				do := prepare(t.Context(), t, a)
				if !async {
					return do()
				}
				go func() {
					text := a.Command() + " ended: " + do()
					s.mu.Lock()
					defer s.mu.Unlock()
					s.async = append(s.async, text+"\n")
				}()
				return ""
			}
		}
		return w
	})
}

// script is the world of one file.
type script struct {
	store   *checked
	service *blazar.Service
	began   time.Time
	wake    chan struct{} // closed at the end

	mu        sync.Mutex
	behaviour map[string]string // by call of the plugin
	calls     []string
	async     []string // results of async commands
}

var errBroken = errors.New("it is broken")

func (s *script) plugin(kind string) blazar.Plugin {
	call := func(name string) func(context.Context, blazar.Allocation) error {
		return func(ctx context.Context, a blazar.Allocation) error { return s.call(ctx, kind, name, a) }
	}
	return blazar.Plugin{
		Reserve: func(ctx context.Context, a blazar.Allocation) (string, error) { return "", call("reserve")(ctx, a) },
		Update:  call("update"), OnStart: call("on-start"), OnEnd: call("on-end"),
	}
}

func (s *script) call(ctx context.Context, kind, name string, a blazar.Allocation) error {
	s.mu.Lock()
	behaviour := cmp.Or(s.behaviour[name+"_of_"+kind], s.behaviour[name])
	s.calls = append(s.calls, fmt.Sprintf("%s: %s %s of %d", a.Lease, name, shortName(a.Reservation), a.Amount))
	s.mu.Unlock()
	switch behaviour {
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
	case "ignores-context":
		<-s.wake
	case "panics":
		panic(errBroken)
	}
	return nil
}

// trace returns the commits, the calls of plugins and the results of async commands.
// Those of leases that are at work at the same time are sorted by lease.
func (s *script) trace() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	byLease := func(a, b string) int {
		a, _, _ = strings.Cut(a, ":")
		b, _, _ = strings.Cut(b, ":")
		return strings.Compare(a, b)
	}
	var out strings.Builder
	for _, c := range slices.SortedStableFunc(slices.Values(s.store.take()), byLease) {
		fmt.Fprintf(&out, "  %s\n", c)
	}
	for _, c := range slices.SortedStableFunc(slices.Values(s.calls), byLease) {
		fmt.Fprintf(&out, "  plugin for %s\n", c)
	}
	out.WriteString(strings.Join(s.async, ""))
	s.calls, s.async = nil, nil
	return out.String()
}

func status(lease blazar.LeaseDetails, err error) string {
	if err != nil {
		return scripttest.Error(err)
	}
	return fmt.Sprintf("%s is %s", lease.ID, lease.Status)
}

// at returns the time of a key; zero if the key is missing.
func (s *script) at(a *scripttest.Args, key string) time.Time {
	after, err := time.ParseDuration(a.Value(key))
	if err != nil {
		return time.Time{}
	}
	return s.began.Add(after)
}

func (s *script) create(ctx context.Context, t *testing.T, a *scripttest.Args) func() string {
	id := a.Word()
	spec := blazar.LeaseSpec{Name: id, Start: s.at(a, "start"), End: s.at(a, "end")}
	for _, text := range a.Values("reserve") {
		kind, amount, _ := strings.Cut(text, ":")
		n, err := strconv.Atoi(cmp.Or(amount, "1"))
		require.NoError(t, err)
		spec.Reservations = append(spec.Reservations, blazar.Request{Resource: kind, Amount: n})
	}
	return func() string { return status(s.service.CreateLease(ctx, id, spec)) }
}

func (s *script) update(ctx context.Context, t *testing.T, a *scripttest.Args) func() string {
	id := a.Word()
	update := blazar.LeaseUpdate{Name: a.Value("name"), Start: s.at(a, "start"), End: s.at(a, "end"), Amounts: map[string]int{}}
	for _, text := range a.Values("amount") {
		lease, err := s.service.GetLease(ctx, id)
		require.NoError(t, err)
		n, amount, _ := strings.Cut(text, ":")
		i, err := strconv.Atoi(n)
		require.NoError(t, err)
		reservation := "unknown"
		if i <= len(lease.Reservations) {
			reservation = lease.Reservations[i-1].ID
		}
		update.Amounts[reservation], err = strconv.Atoi(amount)
		require.NoError(t, err)
	}
	return func() string { return status(s.service.UpdateLease(ctx, id, update)) }
}

func (s *script) start(ctx context.Context, _ *testing.T, a *scripttest.Args) func() string {
	id := a.Word()
	return func() string { return status(s.service.StartLease(ctx, id)) }
}

func (s *script) end(ctx context.Context, _ *testing.T, a *scripttest.Args) func() string {
	id := a.Word()
	return func() string { return status(s.service.EndLease(ctx, id)) }
}

func (s *script) delete(ctx context.Context, _ *testing.T, a *scripttest.Args) func() string {
	id := a.Word()
	return func() string {
		if err := s.service.DeleteLease(ctx, id); err != nil {
			return scripttest.Error(err)
		}
		return id + " is deleted"
	}
}

func (s *script) flag(ctx context.Context, t *testing.T, a *scripttest.Args) func() string {
	flags := blazar.Flags{MissingResources: a.Flag("missing"), ResourcesChanged: a.Flag("changed")}
	lease, err := s.service.GetLease(ctx, a.Word())
	require.NoError(t, err)
	n, err := strconv.Atoi(a.Word())
	require.NoError(t, err)
	return func() string {
		if err := s.service.Flag(ctx, lease.Reservations[n-1].ID, flags); err != nil {
			return scripttest.Error(err)
		}
		return ""
	}
}

func (s *script) process(ctx context.Context, t *testing.T, _ *scripttest.Args) func() string {
	return func() string {
		handled, err := s.service.Process(ctx)
		require.NoError(t, err)
		var out strings.Builder
		for _, h := range handled {
			fmt.Fprintf(&out, "%s of %s: %s", h.Type, h.Lease, h.Status)
			if h.Err != nil {
				fmt.Fprintf(&out, ": %v", h.Err)
			}
			out.WriteString("\n")
		}
		return out.String()
	}
}

func (s *script) sweep(ctx context.Context, t *testing.T, _ *scripttest.Args) func() string {
	return func() string {
		results, err := s.service.Sweep(ctx)
		require.NoError(t, err)
		var out strings.Builder
		for _, r := range results {
			fmt.Fprintf(&out, "%s in %s: %v to %s\n", r.ID, r.From, r.Resolution, r.To)
		}
		return out.String()
	}
}

func (s *script) setPlugin(_ context.Context, _ *testing.T, a *scripttest.Args) func() string {
	call, behaviour := a.Word(), a.Word()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behaviour[call] = behaviour
	return func() string { return "" }
}

func (s *script) fire(ctx context.Context, _ *testing.T, a *scripttest.Args) func() string {
	id, call, actor := a.Word(), blazar.Call(a.Word()), fsm.Actor(a.Value("by"))
	return func() string {
		rec, err := s.service.Leases.Fire(ctx, id, call, actor, nil)
		return status(blazar.LeaseDetails{ID: id, Status: rec.State}, err)
	}
}

func (s *script) show(ctx context.Context, _ *testing.T, a *scripttest.Args) func() string {
	id := a.Word()
	return func() string {
		lease, err := s.service.GetLease(ctx, id)
		if err != nil {
			return scripttest.Error(err)
		}
		var out strings.Builder
		fmt.Fprintf(&out, "%s %q", lease.Status, lease.Spec.Name)
		if lease.Degraded {
			out.WriteString(", degraded")
		}
		if lease.Reason != "" {
			fmt.Fprintf(&out, " (%s)", strings.ReplaceAll(lease.Reason, "\n", "; "))
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
}
