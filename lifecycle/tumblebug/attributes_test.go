package tumblebug_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/tumblebug"
)

// attributeCloud keeps the attributes that the provider receives.
type attributeCloud struct {
	*cloud
	mu   sync.Mutex
	seen map[string]string // by request
}

func (c *attributeCloud) Create(ctx context.Context, vm tumblebug.VMRef) error {
	c.mu.Lock()
	c.seen["create "+vm.VMID] = string(vm.Attributes)
	c.mu.Unlock()
	return c.cloud.Create(ctx, vm)
}

func (c *attributeCloud) Validate(ctx context.Context, g tumblebug.SubGroup) error {
	c.mu.Lock()
	c.seen["validate "+g.Name] = string(g.Attributes)
	c.mu.Unlock()
	return c.cloud.Validate(ctx, g)
}

// The attributes of an MCI and of a SubGroup are in the records of the MCI and of the
// VMs, and in the requests to the provider. What the caller does to its own slice
// afterwards changes nothing.
func TestAttributes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, clouds := t.Context(), &attributeCloud{cloud: newCloud(), seen: map[string]string{}}
		s := tumblebug.Must(lifecycle.NewMemoryStore(), clouds, nil)
		attributes := json.RawMessage(`{"team": "shop"}`)
		_, err := s.CreateMci(ctx, "ns", tumblebug.MciReq{Name: "m", Attributes: attributes, SubGroups: []tumblebug.SubGroup{
			{Name: "a", Size: 2, Provider: "aws", Region: "r", Attributes: json.RawMessage(`{"disk":80}`)},
			{Name: "b", Provider: "aws", Region: "r"},
		}})
		require.NoError(t, err)
		copy(attributes, bytes.Repeat([]byte("x"), len(attributes)))
		wait(ctx, t, s)
		_, err = s.HandleMciAction(ctx, "ns", "m", "suspend", false)
		require.NoError(t, err)
		require.Equal(t, tumblebug.Suspended, wait(ctx, t, s).State)

		mci, err := s.MCIs().Get(ctx, "ns/m")
		require.NoError(t, err)
		require.JSONEq(t, `{"team":"shop"}`, string(mci.Payload.Attributes))
		for id, want := range map[string]json.RawMessage{"a-1": json.RawMessage(`{"disk":80}`), "a-2": json.RawMessage(`{"disk":80}`), "b-1": nil} {
			vm, err := s.VMs().Get(ctx, "ns/m/"+id)
			require.NoError(t, err)
			require.Equal(t, want, vm.Payload.Attributes, id)
		}
		require.Equal(t, map[string]string{
			"validate a": `{"disk":80}`, "validate b": "", "create a-1": `{"disk":80}`, "create a-2": `{"disk":80}`, "create b-1": "",
		}, clouds.seen)
		require.NoError(t, s.Close(ctx))
	})
}

// Attributes that are not JSON, or too long, create nothing.
func TestAttributesAreChecked(t *testing.T) {
	ctx, clouds := t.Context(), newCloud()
	s := tumblebug.Must(lifecycle.NewMemoryStore(), clouds, nil)
	for name, bad := range map[string]json.RawMessage{
		"not JSON": json.RawMessage("{"), "two values": json.RawMessage("1 2"), "too long": longAttributes(1 << 20),
	} {
		t.Run(name, func(t *testing.T) {
			for _, req := range []tumblebug.MciReq{
				{Name: "m", Attributes: bad, SubGroups: []tumblebug.SubGroup{{Name: "a", Provider: "aws", Region: "r"}}},
				{Name: "m", SubGroups: []tumblebug.SubGroup{{Name: "a", Provider: "aws", Region: "r", Attributes: bad}}},
			} {
				_, err := s.CreateMci(ctx, "ns", req)
				require.ErrorIs(t, err, lifecycle.ErrInvalid)
				_, err = s.MCIs().Get(ctx, "ns/m")
				require.ErrorIs(t, err, lifecycle.ErrNotFound)
				require.Empty(t, clouds.newCalls())
			}
		})
	}
	require.NoError(t, s.Close(ctx))
}

func longAttributes(n int) json.RawMessage {
	return json.RawMessage(`"` + strings.Repeat("x", n-2) + `"`)
}

// The longest attributes that the record of an MCI has room for fit into the records of
// its VMs too: an MCI that was accepted is not left in Creating.
func TestLongestAttributes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, ns := t.Context(), strings.Repeat("n", 63)
		s := tumblebug.Must(lifecycle.NewMemoryStore(), newCloud(), nil)
		group := tumblebug.SubGroup{Name: "a", Provider: "aws", Region: "r", Attributes: longAttributes(2)}
		spec, err := json.Marshal(tumblebug.MCISpec{
			MciReq: tumblebug.MciReq{Name: "m", SubGroups: []tumblebug.SubGroup{group}}, Life: strings.Repeat("l", 26),
		})
		require.NoError(t, err)
		for _, c := range []struct {
			extra int
			err   error
		}{{1, lifecycle.ErrInvalid}, {0, nil}} {
			group.Attributes = longAttributes(2 + 1<<20 - len(spec) + c.extra)
			_, err = s.CreateMci(ctx, ns, tumblebug.MciReq{Name: "m", SubGroups: []tumblebug.SubGroup{group}})
			require.ErrorIs(t, err, c.err)
		}
		ctx, stop := context.WithTimeout(ctx, time.Hour)
		defer stop()
		status, err := s.Wait(ctx, ns, "m")
		require.NoError(t, err)
		require.Equal(t, tumblebug.Running, status.State)
		require.NoError(t, s.Close(t.Context()))
	})
}
