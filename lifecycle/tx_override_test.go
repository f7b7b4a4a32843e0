package lifecycle_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// An override in a transaction moves the object with the other changes, or not at all.
func TestTxOverride(t *testing.T) {
	ctx := t.Context()
	m := lifecycle.Must(edgecloud.ClusterInst, lifecycle.NewMemoryStore(), edgecloud.ManagerConfig())
	before := create(t, m, "c", edgecloud.Create, edgecloud.User, edgecloud.ClusterSpec{Cloudlet: "b"})
	for name, tt := range map[string]struct {
		id     string
		to     edgecloud.State
		actor  fsm.Actor
		reason string
		want   error
	}{
		"applied":       {"c", edgecloud.Ready, "operator", "test", nil},
		"no object":     {"d", edgecloud.Ready, "operator", "test", lifecycle.ErrNotFound},
		"no reason":     {"c", edgecloud.Ready, "operator", " ", lifecycle.ErrInvalid},
		"no actor":      {"c", edgecloud.Ready, "", "test", lifecycle.ErrInvalid},
		"unknown state": {"c", "Asleep", "operator", "test", fsm.ErrUnknownState},
		"sweeper":       {"c", edgecloud.Ready, fsm.Sweeper, "test", fsm.ErrWrongActor},
	} {
		t.Run(name, func(t *testing.T) {
			var tx lifecycle.Tx
			moved := m.In(&tx).Override(tt.id, tt.to, tt.actor, tt.reason, nil)
			m.In(&tx).Create("new "+name, edgecloud.Create, edgecloud.User, edgecloud.ClusterSpec{Cloudlet: "b"}, nil)
			require.ErrorIs(t, tx.Commit(ctx), tt.want)
			_, err := m.Get(ctx, "new "+name)
			if tt.want != nil {
				require.ErrorIs(t, err, lifecycle.ErrNotFound)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.to, moved.Record().State)
			require.Equal(t, before.Operation+1, moved.Record().Operation)
		})
	}
}
