package prose_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm/internal/prose"
)

func TestList(t *testing.T) {
	for want, names := range map[string][]string{
		"":                                 {},
		"a":                                {"a"},
		"a or b":                           {"a", "b"},
		"a, b or c":                        {"a", "b", "c"},
		"1, 2, 3, 4, 5, 6, 7, 8 or 1 more": {"1", "2", "3", "4", "5", "6", "7", "8", "9"},
	} {
		t.Run(want, func(t *testing.T) { require.Equal(t, want, prose.List(names, "or")) })
	}
}

func TestQuote(t *testing.T) {
	require.Equal(t, `"a\n"`, prose.Quote("a\n"))
	require.Equal(t, `"`+strings.Repeat("x", 80)+`"`, prose.Quote(strings.Repeat("x", 80)))
	require.Equal(t, `"`+strings.Repeat("x", 80)+`"...`, prose.Quote(strings.Repeat("x", 81)))
	require.Equal(t, `"`+strings.Repeat("€", 26)+`"...`, prose.Quote(strings.Repeat("€", 27)), "no character is cut")
}
