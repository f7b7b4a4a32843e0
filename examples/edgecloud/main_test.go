package main

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// The story, told in virtual time: it does not depend on how busy the machine is.
func TestStory(t *testing.T) {
	want, err := os.ReadFile("testdata/story.txt")
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		require.NoError(t, run(t.Context(), &out))
		require.Equal(t, string(want), out.String())
	})
}

// What makes the program fail must see what is wrong.
func TestTheStorySeesWhatIsWrong(t *testing.T) {
	tell := func() *story {
		s := &story{ctx: t.Context(), out: io.Discard, store: lifecycle.NewMemoryStore(), sites: map[string]*site{}}
		s.restart()
		s.connect("berlin", "v1")
		s.connect("oslo", "v1")
		require.NoError(t, s.err)
		return s
	}
	for name, wrong := range map[string]func(s *story){
		"there are":                             func(s *story) { s.note(s.verify()) },
		"is NotPresent with 0 nodes, not Ready": func(s *story) { s.is("c1", edgecloud.Ready, 2) },
		"is refused, not applied":               func(s *story) { s.report("c1", 1, edgecloud.Ready, lifecycle.Applied) },
		"was to be refused": func(s *story) {
			_, err := s.c.Clusters.Create(s.ctx, "c1", edgecloud.ClusterSpec{Cloudlet: "berlin"}, nil)
			s.refused(err, lifecycle.ErrPrecondition)
		},
		"no quota": func(s *story) { s.note(errors.New("no quota")) },
		"oslo 1": func(s *story) {
			s.sites["oslo"].there[appKey("x")] = edgecloud.Order{}
			for _, id := range []string{"c1"} {
				_, err := s.c.Clusters.Create(s.ctx, id, edgecloud.ClusterSpec{Cloudlet: "berlin", Nodes: 2}, nil)
				s.note(err)
			}
			s.serve("berlin")
			_, err := s.c.Apps.Create(s.ctx, "a1", edgecloud.AppSpec{ClusterInst: "c1", Replicas: 3}, nil)
			s.note(err)
			s.serve("berlin")
			s.note(s.verify())
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := tell()
			wrong(s)
			require.ErrorContains(t, s.err, name)
		})
	}
	ended, stop := context.WithCancel(t.Context())
	stop()
	require.ErrorIs(t, run(ended, io.Discard), context.Canceled)
}
