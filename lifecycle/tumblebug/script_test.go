package tumblebug_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/scripttest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/tumblebug"
)

// TestScripts runs testdata/*.script. The commands beside those of scripttest:
//
//	create MCI GROUP:SIZE:PROVIDER:REGION... [hold]
//	action MCI ACTION [force]
//	vm MCI VM ACTION [force]
//	status MCI [json]     requests the status from the provider
//	record MCI            prints the record of the MCI and of all VMs
//	wait MCI
//	history MCI [VM]
//	fault REQUEST... KIND see cloud; none removes the fault
//	show VM STATUS...     the next answers of the provider about a VM
//	set VM STATUS         changes a VM at the provider
//	delay DURATION        of actions at the provider
//	calls                 requests to the provider since the last time, without those for a status
//	statuses              requests for a status since the last time
//	resources             that exist at the provider
//	sweep, recover
//	delete MCI
//	die after=COMMITS     the process dies after so many more commits
//	restart               the process ends without notice, and another one starts
func TestScripts(t *testing.T) {
	scripttest.Run(t, "testdata/*.script", func(t *testing.T) scripttest.Harness {
		s := &script{cloud: newCloud(), store: &lifecycle.MemoryStore{KeepHistory: -1}}
		s.base, s.end = context.WithCancel(t.Context())
		s.restart(t)
		return scripttest.Harness{Commands: s.commands(), Close: s.close}
	})
}

type script struct {
	base    context.Context // of all processes
	end     context.CancelFunc
	cloud   *cloud
	store   *lifecycle.MemoryStore
	process *scripttest.Store
	system  *tumblebug.System
	stop    context.CancelFunc // of the context of the process
}

func (s *script) close(t *testing.T) {
	s.end()
	require.NoError(t, s.system.Close(context.Background()))
}

func (s *script) restart(t *testing.T) {
	if s.process != nil {
		s.process.Die(0)
		s.stop()
	}
	base, stop := context.WithCancel(s.base)
	s.stop, s.process = stop, &scripttest.Store{MemoryStore: s.store}
	owner, err := lifecycle.Join(s.base, s.process, "tb", time.Hour)
	require.NoError(t, err)
	s.system, err = tumblebug.New(s.process, s.cloud, &tumblebug.Config{Base: base, Owner: owner})
	require.NoError(t, err)
	synctest.Wait()
}

const scriptNS = "ns"

func (s *script) commands() map[string]scripttest.Command {
	// command makes a command whose output is that of a function, or its error.
	command := func(f func(ctx context.Context, a *scripttest.Args) (string, error)) scripttest.Command {
		return func(t *testing.T, a *scripttest.Args) string {
			out, err := f(t.Context(), a)
			if err != nil {
				out += scripttest.Error(err)
			}
			return out
		}
	}
	// change makes a command that changes the cloud.
	change := func(f func(c *cloud, a *scripttest.Args)) scripttest.Command {
		return func(_ *testing.T, a *scripttest.Args) string {
			s.cloud.mu.Lock()
			defer s.cloud.mu.Unlock()
			f(s.cloud, a)
			return ""
		}
	}
	return map[string]scripttest.Command{
		"create": command(s.create),
		"action": command(func(ctx context.Context, a *scripttest.Args) (string, error) {
			force := a.Flag("force")
			return s.system.HandleMciAction(ctx, scriptNS, a.Word(), a.Word(), force)
		}),
		"vm": command(func(ctx context.Context, a *scripttest.Args) (string, error) {
			force := a.Flag("force")
			return s.system.HandleMciVmAction(ctx, scriptNS, a.Word(), a.Word(), a.Word(), force)
		}),
		"status": command(func(ctx context.Context, a *scripttest.Args) (string, error) {
			asJSON := a.Flag("json")
			status, err := s.system.GetMciStatus(ctx, scriptNS, a.Word())
			if err != nil || !asJSON {
				return render(status, err)
			}
			text, err := json.MarshalIndent(status, "", "  ")
			return string(text), err
		}),
		"wait": command(func(ctx context.Context, a *scripttest.Args) (string, error) {
			return render(s.system.Wait(ctx, scriptNS, a.Word()))
		}),
		"record":  command(s.record),
		"history": command(s.history),
		"sweep": command(func(ctx context.Context, _ *scripttest.Args) (string, error) {
			return lines(s.system.Sweep(ctx))
		}),
		"recover": command(func(ctx context.Context, _ *scripttest.Args) (string, error) {
			return lines(s.system.Recover(ctx))
		}),
		"delete": command(func(ctx context.Context, a *scripttest.Args) (string, error) {
			return "", s.system.DelMci(ctx, scriptNS, a.Word())
		}),
		"fault": change(func(c *cloud, a *scripttest.Args) {
			words := a.Words()
			c.faults[strings.Join(words[:len(words)-1], " ")] = words[len(words)-1]
		}),
		"show": change(func(c *cloud, a *scripttest.Args) {
			vm := a.Word()
			for _, state := range a.Words() {
				c.shows[vm] = append(c.shows[vm], tumblebug.State(state))
			}
		}),
		"set": change(func(c *cloud, a *scripttest.Args) {
			c.vms[a.Word()] = &machine{then: tumblebug.State(a.Word()), at: time.Now()}
		}),
		"delay": command(func(_ context.Context, a *scripttest.Args) (string, error) {
			delay, err := time.ParseDuration(a.Word())
			s.cloud.change(func() { s.cloud.delay = delay })
			return "", err
		}),
		"calls":     command(func(context.Context, *scripttest.Args) (string, error) { return lines(s.cloud.newCalls(), nil) }),
		"statuses":  command(func(context.Context, *scripttest.Args) (string, error) { return s.cloud.newStatuses(), nil }),
		"resources": command(func(context.Context, *scripttest.Args) (string, error) { return lines(s.cloud.list(), nil) }),
		"die": func(_ *testing.T, a *scripttest.Args) string {
			s.process.Die(a.Number("after"))
			return ""
		},
		"restart": func(t *testing.T, _ *scripttest.Args) string {
			s.restart(t)
			return ""
		},
	}
}

func (s *script) create(ctx context.Context, a *scripttest.Args) (string, error) {
	req := tumblebug.MciReq{Hold: a.Flag("hold"), Name: a.Word()}
	for _, group := range a.Words() {
		part := append(strings.Split(group, ":"), "", "", "")
		size, err := strconv.Atoi(part[1])
		if err != nil {
			return "", err
		}
		req.SubGroups = append(req.SubGroups, tumblebug.SubGroup{Name: part[0], Size: size, Provider: part[2], Region: part[3]})
	}
	return render(s.system.CreateMci(ctx, scriptNS, req))
}

func (s *script) record(ctx context.Context, a *scripttest.Args) (string, error) {
	mci, err := s.system.MCIs().Get(ctx, scriptNS+"/"+a.Word())
	if err != nil {
		return "", err
	}
	out := fmt.Sprintf("%s operation %d\n", mci.State, mci.Operation)
	for vm, err := range s.system.VMs().All(ctx, lifecycle.Select[tumblebug.State]{}) {
		if err != nil {
			return out, err
		}
		out += fmt.Sprintf("  %s %s\n", vm.ID, vm.State)
	}
	return out, nil
}

func (s *script) history(ctx context.Context, a *scripttest.Args) (string, error) {
	get, words := s.system.MCIs().History, a.Words()
	if len(words) > 1 {
		get = s.system.VMs().History
	}
	return lines(get(ctx, scriptNS+"/"+strings.Join(words, "/"), 0, 0))
}

func lines[T any](list []T, err error) (string, error) {
	var out strings.Builder
	for _, x := range list {
		fmt.Fprintf(&out, "%v\n", x)
	}
	return out.String(), err
}

func render(status tumblebug.MciStatus, err error) (string, error) {
	if err != nil {
		return "", err
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s, %s to %s\n", status.Status, status.TargetAction, status.TargetStatus)
	if status.SystemMessage != "" {
		fmt.Fprintf(&out, "  reason: %s\n", status.SystemMessage)
	}
	for _, vm := range status.Vm {
		fmt.Fprintf(&out, "  %s %s", vm.ID, vm.Status)
		if vm.TargetAction != tumblebug.ActionComplete {
			fmt.Fprintf(&out, ", %s to %s", vm.TargetAction, vm.TargetStatus)
		}
		if vm.SystemMessage != "" {
			fmt.Fprintf(&out, " reason: %s", vm.SystemMessage)
		}
		out.WriteString("\n")
	}
	return out.String(), nil
}
