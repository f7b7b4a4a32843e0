package ovc_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/scripttest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/ovc"
)

// The attributes are a part of the model: an action may replace them, and if it fails,
// those from before are restored.
func TestAttributes(t *testing.T) {
	ctx := t.Context()
	var answer error
	s := ovc.Must(lifecycle.NewMemoryStore(), &ovc.Config{Method: func(context.Context, ovc.Call) error { return answer }})
	add(t, s, ovc.KindVM, "m", ovc.Model{Attributes: json.RawMessage(`{"size":1}`)})
	perform(t, s, ovc.KindVM, "m", ovc.Deploy, nil)
	require.Equal(t, `{"size":1}`, string(get(t, s, ovc.KindVM, "m").Payload.Attributes))
	vm := perform(t, s, ovc.KindVM, "m", ovc.Reset, &ovc.Options{Attributes: json.RawMessage(`{"size":2}`)})
	require.Equal(t, `{"size":2}`, string(vm.Payload.Attributes))
	answer = errors.New("power cut")
	ticket, err := s.Do(ctx, ovc.KindVM, "m", ovc.Stop, &ovc.Options{
		Attributes: json.RawMessage(`{"size":3}`), Args: json.RawMessage(`{"force":true}`),
	})
	require.NoError(t, err)
	require.Equal(t, `{"size":3}`, string(ticket.Admitted().Payload.Attributes))
	_, err = ticket.Wait(ctx)
	require.ErrorIs(t, err, answer)
	require.Equal(t, ovc.Model{Attributes: json.RawMessage(`{"size":2}`)}, get(t, s, ovc.KindVM, "m").Payload)
}

// Every method of an action has its arguments, and so have the record of the object, for
// every process, and the function that looks at stuck objects.
func TestArgs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, store := t.Context(), lifecycle.NewMemoryStore()
		var calls []string
		hangs := make(chan struct{})
		s := ovc.Must(store, &ovc.Config{Method: func(_ context.Context, c ovc.Call) error {
			calls = append(calls, string(c.Method)+" "+string(c.Args))
			if c.Method == ovc.Reboot {
				<-hangs
			}
			return nil
		}})
		running(t, s, "m")
		add(t, s, ovc.KindDisk, "d", ovc.Model{})
		perform(t, s, ovc.KindDisk, "d", ovc.Assign, &ovc.Options{With: "m", Args: json.RawMessage(`{"slot": 3}`)})
		require.NoError(t, migrate(t, s, "m", &ovc.Options{Args: json.RawMessage(`{"node":"n2"}`)}).Wait(ctx))
		_, err := s.Do(ctx, ovc.KindVM, "m", ovc.Reboot, &ovc.Options{Args: json.RawMessage(`"soft"`)})
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, []string{"deploy ", `add_disk {"slot":3}`, `migrate {"node":"n2"}`, `reboot "soft"`}, calls)
		require.Equal(t, `{"slot":3}`, string(get(t, s, ovc.KindDisk, "d").Payload.Args))

		var seen ovc.Model
		other := ovc.Must(store, &ovc.Config{Observe: func(_ context.Context, stuck lifecycle.StoredRecord) (ovc.Event, fsm.Actor, error) {
			return "", "", json.Unmarshal(stuck.Payload, &seen)
		}})
		require.Equal(t, `"soft"`, string(get(t, other, ovc.KindVM, "m").Payload.Args))
		time.Sleep(time.Hour)
		_, err = other.SelfHeal(ctx)
		require.NoError(t, err)
		require.Equal(t, `"soft"`, string(seen.Args))
		vm := get(t, other, ovc.KindVM, "m")
		require.Equal(t, ovc.Running, vm.State)
		require.Empty(t, vm.Payload.Args)
		close(hangs)
		synctest.Wait()
		calls = nil
		perform(t, s, ovc.KindVM, "m", ovc.Destroy, &ovc.Options{Args: json.RawMessage(`1`)})
		require.Equal(t, []string{"stop 1", "delete 1", "destroy 1"}, calls)
	})
}

// An object that takes part in the action of another one keeps no arguments of an earlier
// action: a function that looks at stuck objects would take them for those of this one.
func TestArgsOfOthers(t *testing.T) {
	s, _ := attached(t)
	args := &ovc.Options{Args: json.RawMessage(`"soft"`)}
	perform(t, s, ovc.KindVM, "m", ovc.Reboot, args)
	require.Equal(t, `"soft"`, string(get(t, s, ovc.KindVM, "m").Payload.Args))
	perform(t, s, ovc.KindDisk, "d", ovc.Detach, args)
	require.Empty(t, get(t, s, ovc.KindVM, "m").Payload.Args)
	perform(t, s, ovc.KindVM, "m", ovc.AttachDisk, &ovc.Options{With: "d"})
	require.Empty(t, get(t, s, ovc.KindDisk, "d").Payload.Args)
	perform(t, s, ovc.KindDisk, "e", ovc.Attach, &ovc.Options{With: "m", Args: args.Args})
	perform(t, s, ovc.KindVM, "m", ovc.Delete, nil)
	require.Empty(t, get(t, s, ovc.KindDisk, "e").Payload.Args)
}

// Content that cannot be recorded is refused, and nothing changes.
func TestBadContent(t *testing.T) {
	ctx := t.Context()
	s := ovc.Must(lifecycle.NewMemoryStore(), nil)
	running(t, s, "m")
	before := get(t, s, ovc.KindVM, "m")
	do := func(o *ovc.Options) error { _, err := s.Do(ctx, ovc.KindVM, "m", ovc.Stop, o); return err }
	moves := func(o *ovc.Options) error { _, err := s.Migrate(ctx, "m", o); return err }
	none := func(context.Context) error { return nil }
	bad, large := json.RawMessage("{"), json.RawMessage(`"`+strings.Repeat("x", 1<<20)+`"`)
	deep := json.RawMessage(strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000))
	for name, err := range map[string]error{
		"arguments":                  do(&ovc.Options{Args: bad}),
		"large arguments":            do(&ovc.Options{Args: large}),
		"arguments of a function":    do(&ovc.Options{Args: json.RawMessage("1"), Run: none}),
		"arguments of migrate":       moves(&ovc.Options{Args: bad}),
		"large arguments of migrate": moves(&ovc.Options{Args: large}),
		"deep arguments of migrate":  moves(&ovc.Options{Args: deep}),
		"attributes":                 do(&ovc.Options{Attributes: bad}),
		"large attributes":           do(&ovc.Options{Attributes: large}),
		"attributes of migrate":      moves(&ovc.Options{Attributes: json.RawMessage("1")}),
	} {
		t.Run(name, func(t *testing.T) { require.ErrorIs(t, err, lifecycle.ErrInvalid) })
	}
	require.Equal(t, before, get(t, s, ovc.KindVM, "m"))
	require.Empty(t, s.Queuer().Inspect(ovc.KindVM.Key("m")))
}

// Objects that exist already are added in a static state, and then are like others.
func TestAdd(t *testing.T) {
	ctx := t.Context()
	s := ovc.Must(lifecycle.NewMemoryStore(), nil)
	for kind := range ovc.Kinds() {
		for state := range kind.Machine().States() {
			rec, err := s.Add(ctx, kind, string(state), state, ovc.Model{})
			if kind.Machine().Kind(state) == fsm.Transitional {
				require.ErrorIs(t, err, lifecycle.ErrInvalid)
				require.ErrorContains(t, err, string(state))
				continue
			}
			require.NoError(t, err)
			require.Equal(t, state, rec.State)
		}
	}
	_, err := s.Add(ctx, ovc.KindVM, "m", ovc.Running, ovc.Model{Disks: []string{"d"}})
	require.NoError(t, err)
	_, err = s.Add(ctx, ovc.KindDisk, "d", ovc.Assigned, ovc.Model{VM: "m"})
	require.NoError(t, err)
	perform(t, s, ovc.KindVM, "m", ovc.Delete, nil)
	require.Equal(t, ovc.ToBeDeleted, get(t, s, ovc.KindDisk, "d").State)
}

func TestAddRefusals(t *testing.T) {
	s := ovc.Must(lifecycle.NewMemoryStore(), nil)
	for _, c := range []struct {
		name  string
		kind  ovc.Kind
		state ovc.State
		model ovc.Model
		want  error
		text  string
	}{
		{"unknown state", ovc.KindVM, "FLYING", ovc.Model{}, fsm.ErrUnknownState, "FLYING"},
		{"state of another kind", ovc.KindVM, ovc.Assigned, ovc.Model{}, fsm.ErrUnknownState, "ASSIGNED"},
		{"attributes are not JSON", ovc.KindVM, ovc.Running, ovc.Model{Attributes: json.RawMessage("{")}, lifecycle.ErrInvalid, ""},
		{"arguments are no object", ovc.KindVM, ovc.Running, ovc.Model{Args: json.RawMessage("1")}, lifecycle.ErrInvalid, "arguments"},
		{"VM of a VM", ovc.KindVM, ovc.Running, ovc.Model{VM: "m"}, lifecycle.ErrInvalid, `"m"`},
		{"disks without a state", ovc.KindVM, "", ovc.Model{Disks: []string{"d"}}, lifecycle.ErrInvalid, `VIRTUAL has no disks, such as "d"`},
		{"VM of an unassigned disk", ovc.KindDisk, ovc.Created, ovc.Model{VM: "m"}, lifecycle.ErrInvalid, `"m"`},
		{"a disk twice", ovc.KindVM, ovc.Running, ovc.Model{Disks: []string{"d", "e", "d"}}, lifecycle.ErrInvalid, `"d"`},
		{"a disk without an id", ovc.KindVM, ovc.Running, ovc.Model{Disks: []string{""}}, lifecycle.ErrInvalid, "empty"},
		{"id of a disk", ovc.KindVM, ovc.Running, ovc.Model{Disks: []string{"a\x00"}}, lifecycle.ErrInvalid, "NUL"},
		{"id of a VM", ovc.KindDisk, ovc.ToBeDeleted, ovc.Model{VM: "\xff"}, lifecycle.ErrInvalid, "UTF-8"},
		{"disks of a disk", ovc.KindDisk, ovc.Assigned, ovc.Model{Disks: []string{"d"}}, lifecycle.ErrInvalid, `"d"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := s.Add(t.Context(), c.kind, "x", c.state, c.model)
			require.ErrorIs(t, err, c.want)
			require.ErrorContains(t, err, c.text)
			_, err = s.Get(t.Context(), c.kind, "x")
			require.ErrorIs(t, err, lifecycle.ErrNotFound)
		})
	}
}

// A record that cannot be read keeps no other object in the recycle bin.
func TestExpiryWithForeignRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, store := t.Context(), lifecycle.NewMemoryStore()
		s := ovc.Must(store, nil)
		for _, id := range []string{"a", "b"} {
			_, err := s.Add(ctx, ovc.KindImage, id, ovc.Deleted, ovc.Model{})
			require.NoError(t, err)
		}
		scripttest.Plant(t, store, ovc.KindImage.Key("a"), func(c *lifecycle.StoredChange) {
			c.To.Payload, c.Timeout = []byte(`"of another version"`), time.Hour
		})
		time.Sleep(2 * ovc.Retention)
		h, err := s.SelfHeal(ctx)
		require.ErrorIs(t, err, lifecycle.ErrForeign)
		require.Len(t, h.Expired, 1)
		_, err = h.Expired[0].Wait(ctx)
		require.NoError(t, err)
		require.Equal(t, ovc.Destroyed, get(t, s, ovc.KindImage, "b").State)
	})
}
