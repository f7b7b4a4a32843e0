package terminal

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestNoTerminal: a pipe, a file and a buffer get no line.
func TestNoTerminal(t *testing.T) {
	read, write, err := os.Pipe()
	require.NoError(t, err)
	defer read.Close()
	defer write.Close()
	file, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer file.Close()
	for name, w := range map[string]io.Writer{"pipe": write, "file": file, "buffer": &bytes.Buffer{}, "nil": nil} {
		t.Run(name, func(t *testing.T) {
			show, clear := Progress(w)
			require.Nil(t, show)
			clear()
		})
	}
	info, err := file.Stat()
	require.NoError(t, err)
	require.Zero(t, info.Size())
}

// TestLine compares what a terminal receives.
func TestLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := &line{w: &out}
		written := func() string {
			defer out.Reset()
			return out.String()
		}
		l.clear()
		require.Empty(t, written(), "there is no line yet")
		l.show("explore", 5, 12)
		require.Equal(t, "\rexplore: 5 of 12", written())
		l.show("explore", 6, 12)
		require.Empty(t, written(), "too soon")
		time.Sleep(pause)
		l.show("trim", 7, 0)
		require.Equal(t, "\rtrim: 7         ", written())
		l.clear()
		require.Equal(t, "\r       \r", written())
		l.show("a\x1b[2Jb\nc", 1, 0)
		require.Equal(t, "\ra?[2Jb?c: 1", written(), "no control characters")
		time.Sleep(pause)
		l.show(strings.Repeat("ü", 200), 1, 0)
		require.Equal(t, "\r"+strings.Repeat("ü", width), written())
	})
}
