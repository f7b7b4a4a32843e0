package lifecycle

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestASCII puts every byte at every place of texts of every length up to three
// times what is looked at in one go, beside such neighbours as could hide it.
func TestASCII(t *testing.T) {
	for _, around := range []byte{1, 'a', 0x7f} {
		for length := range 25 {
			text := bytes.Repeat([]byte{around}, length)
			require.True(t, ascii(string(text)))
			for i := range text {
				for b := range 256 {
					text[i] = byte(b)
					require.Equal(t, 0 < b && b < 0x80, ascii(string(text)), "%q", text)
				}
				text[i] = around
			}
		}
	}
}

// TestTokensAreCounted: what one beginning gives differs from all else, and goes
// round without touching the rest.
func TestTokensAreCounted(t *testing.T) {
	var a, b Token
	seen := map[Token]bool{{}: true}
	for range 1000 {
		for _, from := range []*Token{&a, &b} {
			next := from.next()
			require.False(t, seen[next])
			seen[next] = true
		}
	}
	last := Token{1, 2, 3, 4, 5, 6, 7, 8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	require.Equal(t, Token{1, 2, 3, 4, 5, 6, 7, 8}, last.next())
}
