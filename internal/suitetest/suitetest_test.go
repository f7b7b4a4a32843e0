package suitetest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/suitetest"
)

func TestRecord(t *testing.T) {
	var cleaned []int
	for name, c := range map[string]struct {
		run             func(testing.TB)
		failed, skipped bool
		text            string
	}{
		"nothing":          {func(testing.TB) {}, false, false, ""},
		"log":              {func(t testing.TB) { t.Log("a", 1); t.Logf("%d", 2) }, false, false, "a 1\n2"},
		"error":            {func(t testing.TB) { t.Error("a"); t.Log("b") }, true, false, "a\nb"},
		"fatal":            {func(t testing.TB) { t.Fatalf("%s", "a"); t.Log("b") }, true, false, "a"},
		"fatal list":       {func(t testing.TB) { t.Helper(); t.Fatal("a", 1) }, true, false, "a 1"},
		"skip with format": {func(t testing.TB) { t.Skipf("%d", 1) }, false, true, "1"},
		"context":          {func(t testing.TB) { t.Log(t.Context().Err()) }, false, false, "<nil>"},
		"skip":             {func(t testing.TB) { t.Skip("why"); t.Error("b") }, false, true, "why"},
		"panic":            {func(testing.TB) { panic("out") }, true, false, "panic: out"},
		"cleanup": {func(t testing.TB) {
			for i := range 3 {
				t.Cleanup(func() { cleaned = append(cleaned, i) })
			}
			t.FailNow()
		}, true, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := suitetest.Record(t, c.run)
			require.Equal(t, c.failed, r.Failed())
			require.Equal(t, c.skipped, r.Skipped())
			require.Equal(t, c.text, r.Text())
		})
	}
	require.Equal(t, []int{2, 1, 0}, cleaned)
}
