package tumblebug

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// emptyCloud has no VMs.
type emptyCloud struct{ Provider }

func (emptyCloud) Status(context.Context, VMRef) (State, error) { return "", ErrNoVM }

// What looks at a VM have shown is forgotten when the VM is removed.
func TestRemovedVMLeavesNoDoubt(t *testing.T) {
	ctx, s := t.Context(), Must(lifecycle.NewMemoryStore(), emptyCloud{}, nil)
	_, err := s.AddMci(ctx, "ns", ExistingMci{Name: "m", VMs: []ExistingVM{
		{Name: "a", State: Undefined, VMSpec: VMSpec{SubGroup: "g", Provider: "aws", Region: "r"}},
	}})
	require.NoError(t, err)
	_, err = s.GetMciStatus(ctx, "ns", "m")
	require.NoError(t, err)
	require.Len(t, s.doubts, 1)
	_, err = s.HandleMciAction(ctx, "ns", "m", "refine", false)
	require.NoError(t, err)
	require.Empty(t, s.doubts)
	require.NoError(t, s.Close(ctx))
}
