package tumblebug_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/tumblebug"
)

// TestScripts runs the stories of testdata/*.script: requests in, answers out, in
// the virtual time of a bubble. What was asked for goes on while time passes. The
// commands:
//
//	create MCI GROUP:SIZE:PROVIDER:REGION... [policy=P] [hold]
//	action MCI ACTION [force]
//	vm MCI VM ACTION [force]
//	status MCI [json]     as the provider says
//	record MCI            as it is recorded
//	wait MCI
//	history MCI [VM]
//	explain MCI VM
//	advance DURATION      from a moment when nobody runs
//	fault WHAT... KIND    see cloud; none: no fault any more
//	lie VM STATUS...      the next answers about a VM
//	set VM STATUS         behind everybody's back
//	delay DURATION        of what the cloud does
//	told                  what the cloud was asked for since the last time
//	resources
//	stats
//	sweep
//	delete MCI
//	die COMMITS           the process dies after so many more of them
//	restart               another process, of which nobody has told the first
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.script")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".script"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, end := context.WithCancel(t.Context())
				s := &script{t: t, base: ctx, cloud: newCloud(), store: &lifecycle.MemoryStore{KeepHistory: -1}}
				s.restart()
				datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
					s.out.Reset()
					if err := s.run(t.Context(), d); err != nil {
						s.printf("%d: %v", lifecycle.HTTPStatus(err), err)
					}
					synctest.Wait() // what was begun is where it waits for time to pass
					return s.out.String()
				})
				end()
				require.NoError(t, s.system.Close(context.Background()))
			})
		})
	}
}

type script struct {
	t      *testing.T
	base   context.Context
	cloud  *cloud
	store  *lifecycle.MemoryStore
	system *tumblebug.System
	life   context.CancelFunc
	left   atomic.Int64
	out    strings.Builder
	number int
}

func (s *script) printf(format string, args ...any) { fmt.Fprintf(&s.out, format+"\n", args...) }

// link is the way of a process to the store, for as long as it lives.
type link struct {
	*lifecycle.MemoryStore
	life context.Context
	die  context.CancelFunc
	left *atomic.Int64 // commits until it dies, if it is above zero
}

func (l *link) Get(ctx context.Context, k lifecycle.Key) (lifecycle.StoredRecord, error) {
	if l.life.Err() != nil {
		return lifecycle.StoredRecord{}, l.life.Err()
	}
	return l.MemoryStore.Get(ctx, k)
}

func (l *link) Commit(ctx context.Context, c *lifecycle.Commit) error {
	if l.life.Err() != nil {
		return l.life.Err()
	}
	if err := l.MemoryStore.Commit(ctx, c); err != nil {
		return err
	}
	if l.left.Load() > 0 && l.left.Add(-1) == 0 {
		l.die()
	}
	return nil
}

// restart ends the process without warning, and starts the next one.
func (s *script) restart() {
	if s.life != nil {
		s.life()
	}
	s.number++
	life, end := context.WithCancel(s.base)
	s.life = end
	store := &link{s.store, life, end, &s.left}
	owner, err := lifecycle.Join(s.base, store, "tb", time.Hour)
	require.NoError(s.t, err)
	s.system, err = tumblebug.New(store, s.cloud, &tumblebug.Config{Base: life, Owner: owner})
	require.NoError(s.t, err)
}

func (s *script) run(ctx context.Context, d *datadriven.TestData) error {
	words, force := []string{}, false
	opts := map[string]string{}
	for _, arg := range d.CmdArgs {
		switch {
		case arg.Key == "force":
			force = true
		case len(arg.Vals) > 0:
			opts[arg.Key] = arg.Vals[0]
		default:
			words = append(words, arg.Key)
		}
	}
	word := func(i int) string {
		if i >= len(words) {
			s.t.Fatalf("%s: %s needs more", d.Pos, d.Cmd)
		}
		return words[i]
	}
	const ns = "ns"
	switch d.Cmd {
	case "create":
		req := tumblebug.MciReq{Name: word(0), Policy: tumblebug.Policy(opts["policy"])}
		for _, w := range words[1:] {
			if w == "hold" {
				req.Hold = true
				continue
			}
			part := append(strings.Split(w, ":"), "", "", "")
			size, err := strconv.Atoi(part[1])
			if err != nil {
				return err
			}
			req.SubGroups = append(req.SubGroups, tumblebug.SubGroup{Name: part[0], Size: size, Provider: part[2], Region: part[3]})
		}
		status, err := s.system.CreateMci(ctx, ns, req)
		if err == nil {
			s.status(status)
		}
		return err
	case "action":
		said, err := s.system.HandleMciAction(ctx, ns, word(0), word(1), force)
		if err == nil {
			s.printf("%s", said)
		}
		return err
	case "vm":
		said, err := s.system.HandleMciVmAction(ctx, ns, word(0), word(1), word(2), force)
		if err == nil {
			s.printf("%s", said)
		}
		return err
	case "status", "wait":
		get := s.system.GetMciStatus
		if d.Cmd == "wait" {
			get = s.system.Wait
		}
		status, err := get(ctx, ns, word(0))
		if err != nil {
			return err
		}
		if len(words) > 1 {
			text, err := json.MarshalIndent(status, "", "  ")
			s.printf("%s", text)
			return err
		}
		s.status(status)
	case "record":
		mci, err := s.system.MCIs().Get(ctx, ns+"/"+word(0))
		if err != nil {
			return err
		}
		s.printf("%s operation %d", mci.State, mci.Operation)
		for vm, err := range s.system.VMs().All(ctx, lifecycle.Select[tumblebug.State]{}) {
			if err != nil {
				return err
			}
			s.printf("  %s %s", vm.ID, vm.State)
		}
	case "history":
		get, id := s.system.MCIs().History, ns+"/"+strings.Join(words, "/")
		if len(words) > 1 {
			get = s.system.VMs().History
		}
		rows, err := get(ctx, id, 0, 0)
		for _, row := range rows {
			s.printf("%v", row)
		}
		return err
	case "explain":
		x, err := s.system.Explain(ctx, ns, word(0), word(1))
		if err == nil {
			s.printf("%s: %s; %v", x.State, x.NextMove, x.Blocked)
		}
		return err
	case "advance":
		d, err := time.ParseDuration(word(0))
		if err != nil {
			return err
		}
		time.Sleep(d)
		synctest.Wait()
	case "fault":
		s.cloud.mu.Lock()
		s.cloud.faults[strings.Join(words[:len(words)-1], " ")] = words[len(words)-1]
		s.cloud.mu.Unlock()
	case "lie":
		s.cloud.mu.Lock()
		for _, w := range words[1:] {
			s.cloud.lies[word(0)] = append(s.cloud.lies[word(0)], tumblebug.State(w))
		}
		s.cloud.mu.Unlock()
	case "set":
		s.cloud.set(word(0), tumblebug.State(word(1)))
	case "delay":
		delay, err := time.ParseDuration(word(0))
		s.cloud.mu.Lock()
		s.cloud.delay = delay
		s.cloud.mu.Unlock()
		return err
	case "told":
		for _, call := range s.cloud.told() {
			s.printf("%s", call)
		}
	case "resources":
		for _, name := range s.cloud.list() {
			s.printf("%s", name)
		}
	case "stats":
		st := s.system.Stats()
		s.printf("asked %d times, saved %d times", st.Fetched, st.Saved)
	case "sweep", "recover":
		sweep := s.system.Sweep
		if d.Cmd == "recover" {
			sweep = s.system.Recover
		}
		cases, err := sweep(ctx)
		for _, c := range cases {
			s.printf("%v", c)
		}
		synctest.Wait()
		return err
	case "die":
		n, err := strconv.Atoi(word(0))
		s.left.Store(int64(n))
		return err
	case "delete":
		return s.system.DelMci(ctx, ns, word(0))
	case "restart":
		s.restart()
		synctest.Wait()
	default:
		return errors.New("no command " + d.Cmd)
	}
	return nil
}

func (s *script) status(status tumblebug.MciStatus) {
	s.printf("%s, %s to %s", status.Status, status.TargetAction, status.TargetStatus)
	if status.SystemMessage != "" {
		s.printf("  because: %s", status.SystemMessage)
	}
	for _, vm := range status.Vm {
		line := fmt.Sprintf("  %s %s", vm.ID, vm.Status)
		if vm.TargetAction != tumblebug.ActionComplete {
			line += fmt.Sprintf(", %s to %s", vm.TargetAction, vm.TargetStatus)
		}
		if vm.SystemMessage != "" {
			line += " because: " + vm.SystemMessage
		}
		s.printf("%s", line)
	}
}
