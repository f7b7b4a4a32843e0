package visible

import (
	"encoding/json"
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

func TestEscaped(t *testing.T) {
	require.Equal(t, `a\u202eb\u000a☂`, Escaped("a\u202eb\n☂"))
	require.Equal(t, "a\\u202e\nb\n", EscapedLines("a\u202e\nb\n"))

	names := "\x1b\u0085\u00ad\u2028\U000e0001"
	text, err := json.Marshal(names)
	require.NoError(t, err)
	var again string
	require.NoError(t, json.Unmarshal([]byte(Escaped(string(text))), &again))
	require.Equal(t, names, again)
}
