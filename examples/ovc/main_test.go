package main

import (
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/lifecycle/ovc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The story, told in virtual time: nothing is stuck because the machine is busy.
func TestStory(t *testing.T) {
	want, err := os.ReadFile("testdata/story.txt")
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		require.NoError(t, run(t.Context(), &out, time.Hour))
		require.Equal(t, string(want), out.String())
	})
}

// verify and refusal are what makes the program fail, so they must see what is
// wrong.
func TestVerifySeesWhatIsWrong(t *testing.T) {
	s := newStory(t.Context(), io.Discard, time.Hour)
	defer s.end()
	s.must(s.cloud.Add(t.Context(), ovc.KindVM, "m1", ovc.Model{}))
	require.EqualError(t, s.verify(), "it ends with m1 VIRTUAL")

	s = newStory(t.Context(), io.Discard, time.Hour)
	defer s.end()
	s.must(s.cloud.Add(t.Context(), ovc.KindVM, "m1", ovc.Model{}))
	s.refused(ovc.KindVM, "m1", ovc.Deploy)
	require.EqualError(t, s.verify(), "what should be refused is not")
}
