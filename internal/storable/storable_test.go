package storable

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"":            "",
		"ten bytes.":  "ten bytes.",
		"eleven byte": "eleven ...",
		"in runñe it": "in run...", // byte 7 is in the middle of a character
		"a\xffb\x00c": "a\uFFFDb\uFFFDc",
	} {
		t.Run(text, func(t *testing.T) { require.Equal(t, want, Text(text, 10)) })
	}
	require.Equal(t, strings.Repeat("x", MaxReason-3)+"...", Reason(strings.Repeat("x", MaxReason+1)))
}

// A text of any bytes becomes one that fits, and one that fits stays as it is.
func TestTextFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(3, 20).Draw(t, "limit")
		got := Text(string(rapid.SliceOfN(rapid.Byte(), 0, 30).Draw(t, "text")), limit)
		if len(got) > limit || !utf8.ValidString(got) || strings.Contains(got, "\x00") || Text(got, limit) != got {
			t.Fatalf("%q of at most %d bytes", got, limit)
		}
	})
}
