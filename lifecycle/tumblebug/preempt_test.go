package tumblebug_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/tumblebug"
)

// An MCI is terminated by force while a process creates its resources, which ends the
// context of that request. The provider creates the resource nevertheless. The process
// releases it, also if the MCI was Terminated or removed before that.
func TestForceDuringAPreparation(t *testing.T) {
	for end, ends := range map[string]func(ctx context.Context, t *testing.T, s *tumblebug.System){
		"at once": func(context.Context, *testing.T, *tumblebug.System) {},
		"terminated": func(ctx context.Context, t *testing.T, s *tumblebug.System) {
			status, err := s.GetMciStatus(ctx, "ns", "m")
			require.NoError(t, err)
			require.Equal(t, tumblebug.Terminated, status.State)
		},
		"deleted": func(ctx context.Context, t *testing.T, s *tumblebug.System) {
			require.NoError(t, s.DelMci(ctx, "ns", "m"))
		},
	} {
		for answer, err := range map[string]error{"created": nil, "no answer": context.Canceled} {
			t.Run(end+", "+answer, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, clouds := t.Context(), &slowCloud{cloud: newCloud(), resume: make(chan struct{}), answer: err}
					s := tumblebug.Must(lifecycle.NewMemoryStore(), clouds, nil)
					requestMci(t, s, 1)
					synctest.Wait()
					require.Len(t, clouds.list(), 2)
					_, err := s.HandleMciAction(ctx, "ns", "m", "terminate", true)
					require.NoError(t, err)
					ends(ctx, t, s)
					close(clouds.resume)
					synctest.Wait()
					require.Empty(t, clouds.list())
					if end != "deleted" {
						require.Equal(t, tumblebug.Terminated, wait(ctx, t, s).State)
					} else {
						_, err = s.GetMciStatus(ctx, "ns", "m")
						require.ErrorIs(t, err, lifecycle.ErrNotFound)
					}
					require.NoError(t, s.Close(ctx))
				})
			})
		}
	}
}

// A process creates the resources of an MCI while another one removes the MCI and creates
// one of the same name, whose VM runs. The process releases what it has created for the
// first one.
func TestPreparationUntilTheNextMCI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, clouds := t.Context(), &slowCloud{cloud: newCloud(), resume: make(chan struct{})}
		store := lifecycle.NewMemoryStore()
		slow, other := tumblebug.Must(store, clouds, nil), tumblebug.Must(store, clouds.cloud, nil)
		requestMci(t, slow, 1)
		synctest.Wait()
		_, err := other.HandleMciAction(ctx, "ns", "m", "terminate", true)
		require.NoError(t, err)
		require.Equal(t, tumblebug.Terminated, wait(ctx, t, other).State)
		require.NoError(t, other.DelMci(ctx, "ns", "m"))
		require.Equal(t, tumblebug.Running, createOne(t, other, 1).State)
		ofNext := clouds.list()
		close(clouds.resume)
		synctest.Wait()
		require.Equal(t, ofNext, clouds.list())
		require.NoError(t, slow.Close(ctx))
		require.NoError(t, other.Close(ctx))
	})
}

// The process that prepared an MCI releases its resources after a forced terminate, and the
// provider does not answer. The terminate gets its turn nevertheless.
func TestForceDuringAPreparationWithoutAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, clouds := t.Context(), &silentCloud{slowCloud: slowCloud{cloud: newCloud(), resume: make(chan struct{})}}
		s := tumblebug.Must(lifecycle.NewMemoryStore(), clouds, nil)
		requestMci(t, s, 1)
		synctest.Wait()
		_, err := s.HandleMciAction(ctx, "ns", "m", "terminate", true)
		require.NoError(t, err)
		clouds.silent.Store(true)
		close(clouds.resume)
		ctx, stop := context.WithTimeout(ctx, time.Hour)
		defer stop()
		require.Equal(t, tumblebug.Terminated, wait(ctx, t, s).State)
		require.Empty(t, clouds.list())
		require.NoError(t, s.Close(ctx))
	})
}

// silentCloud does not answer the first request to release a resource while silent is true.
type silentCloud struct {
	slowCloud
	silent atomic.Bool
}

func (c *silentCloud) Release(ctx context.Context, r tumblebug.Resource) error {
	if c.silent.Swap(false) {
		<-ctx.Done()
		return ctx.Err()
	}
	return c.slowCloud.Release(ctx, r)
}

// slowCloud creates keys only after resume, and does not regard the end of their contexts.
type slowCloud struct {
	*cloud
	resume chan struct{}
	answer error // to the request for a key
}

func (c *slowCloud) Prepare(ctx context.Context, r tumblebug.Resource) error {
	if r.Kind != tumblebug.SSHKey {
		return c.cloud.Prepare(ctx, r)
	}
	<-c.resume
	return errors.Join(c.cloud.Prepare(ctx, r), c.answer)
}
