package ovc_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/ovc"
)

// TestPutBackByAnother: another process takes what is stuck here for stuck. What
// the method says later counts for nothing, whatever it is, and who asked is told
// that somebody else has ended the action.
func TestPutBackByAnother(t *testing.T) {
	for name, outcome := range map[string]error{"done": nil, "failed": errors.New("no such node")} {
		for kind, with := range map[ovc.Kind]string{ovc.KindVM: "m", ovc.KindDisk: "d"} {
			t.Run(name+" "+string(kind), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, store := attached(t)
					other := ovc.New(store, nil)
					end := make(chan struct{})
					h := must(s.Do(t.Context(), kind, with, ovc.Delete, &ovc.Options{Run: func(context.Context) error {
						<-end
						return outcome
					}}))(t)
					time.Sleep(ovc.StuckAfter + time.Second)
					require.NotEmpty(t, must(other.SelfHeal(t.Context()))(t).Stuck)
					close(end)
					_, err := h.Wait(t.Context())
					require.ErrorIs(t, err, lifecycle.ErrStale)
					failed, _ := errors.AsType[*lifecycle.OutcomeError](err)
					require.Equal(t, lifecycle.Lost, failed.Outcome)
					require.NoError(t, failed.Unwritten)
					require.Equal(t, ovc.Running, must(s.Get(t.Context(), ovc.KindVM, "m"))(t).State)
					require.Equal(t, ovc.Assigned, must(s.Get(t.Context(), ovc.KindDisk, "d"))(t).State)
				})
			})
		}
	}
}

// TestPartPutBackByAnother: somebody else puts back one of two objects that an
// action moves. The action ends for the other one all the same.
func TestPartPutBackByAnother(t *testing.T) {
	for name, part := range map[string]struct {
		kind ovc.Kind
		id   string
	}{
		"the disk":    {ovc.KindDisk, "d"},
		"the machine": {ovc.KindVM, "m"},
	} {
		t.Run(name, func(t *testing.T) {
			s, store := attached(t)
			other := ovc.New(store, nil)
			begun, end := make(chan struct{}), make(chan struct{})
			h := must(s.Do(t.Context(), ovc.KindVM, "m", ovc.DetachDisk, &ovc.Options{With: "d", Run: func(context.Context) error {
				close(begun)
				<-end
				return errors.New("no such node")
			}}))(t)
			<-begun
			must(other.Objects(part.kind).Fire(t.Context(), part.id, ovc.Stuck, fsm.Sweeper, nil))(t)
			close(end)
			_, err := h.Wait(t.Context())
			failed, _ := errors.AsType[*lifecycle.OutcomeError](err)
			require.NotNil(t, failed)
			require.NoError(t, failed.Unwritten)
			require.Equal(t, ovc.Running, must(s.Get(t.Context(), ovc.KindVM, "m"))(t).State)
			require.Equal(t, ovc.Assigned, must(s.Get(t.Context(), ovc.KindDisk, "d"))(t).State)
			require.NoError(t, consistent(t.Context(), s))
		})
	}
}
