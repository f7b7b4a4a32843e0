package visible

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestText(t *testing.T) {
	for s, want := range map[string]string{
		"":           "<empty>",
		"vm \"1\" ☂": "vm \"1\" ☂",
		"a\u202eb\n": "a<U+202E>b<U+000A>",
		"\xff":       "\ufffd",
	} {
		t.Run(s, func(t *testing.T) { require.Equal(t, want, Text(s)) })
	}
}
