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

// The output is compared in virtual time, so that nothing is stuck because the
// computer is busy.
func TestStory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		require.NoError(t, run(t.Context(), &out, time.Hour))
		if os.Getenv("UPDATE_DOCS") != "" {
			require.NoError(t, os.WriteFile("testdata/story.txt", []byte(out.String()), 0o666))
		}
		want, err := os.ReadFile("testdata/story.txt")
		require.NoError(t, err)
		require.Equal(t, string(want), out.String())
	})
}

// verify and refusal make the program fail, so they must find every fault.
func TestVerifySeesWhatIsWrong(t *testing.T) {
	s := newStory(t.Context(), io.Discard, time.Hour)
	defer s.end()
	s.must(s.cloud.Add(t.Context(), ovc.KindVM, "m1", ovc.Model{}))
	require.EqualError(t, s.verify(), "it ends with m1 VIRTUAL")

	s = newStory(t.Context(), io.Discard, time.Hour)
	defer s.end()
	s.must(s.cloud.Add(t.Context(), ovc.KindVM, "m1", ovc.Model{}))
	s.refused(ovc.KindVM, "m1", ovc.Deploy)
	require.EqualError(t, s.verify(), "a request was not refused")
}
