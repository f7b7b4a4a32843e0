package conform

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestNotation(t *testing.T) {
	for notation, row := range map[string]Row{
		"a --e by u--> b":      {From: "a", Event: "e", Actor: "u", To: "b"},
		"a --e by anyone--> b": {From: "a", Event: "e", To: "b"},
		"a --e by u--> b if g": {From: "a", Event: "e", Actor: "u", To: "b", Guard: "g"},
		"does-not-exist --stand by by the user--> in a [return] if so": {
			From: "does-not-exist", Event: "stand by", Actor: "the user", To: "in a", Return: true, Guard: "so",
		},
		"a --set x (to y), z by u--> b [ignored; forced; supersedes; origin c, d]": {
			From: "a", Event: "set x (to y), z", Actor: "u", To: "b",
			Ignored: true, Forced: true, Supersedes: true, Origin: "c, d",
		},
	} {
		parsed, err := ParseRow(notation)
		require.NoError(t, err, notation)
		require.Equal(t, row, parsed, notation)
		require.Equal(t, notation, row.String())
	}
}

func TestMalformedRows(t *testing.T) {
	for notation, want := range map[string]string{
		"":                               "is not of the form",
		"a -> b":                         "is not of the form",
		"a --e--> b":                     "is not of the form",
		"a --e by u-->":                  "is not of the form",
		"a e by u--> b":                  "is not of the form",
		" --e by u--> b":                 "lacks a source, an event or a target",
		"a -- by u--> b":                 "lacks a source, an event or a target",
		"a --e by u-->  if g":            "lacks a source, an event or a target",
		"a --e by u--> b [forced":        "do not end with ]",
		"a --e by u--> b [bent]":         `unknown mark "bent"`,
		"a --e by u--> b [forced, bent]": `unknown mark "forced, bent"`,
	} {
		_, err := ParseRow(notation)
		require.ErrorContains(t, err, want, "%q", notation)
		require.ErrorContains(t, err, "conform: row", "%q", notation)
		require.Panics(t, func() { Rows(notation) }, "%q", notation)
	}
}

// Whatever a row says, its notation says it too.
func TestNotationLosesNothing(t *testing.T) {
	name := rapid.StringMatching(`[a-z]([a-z_(),.-]{0,3}[a-z])?( [a-z]([a-z_(),.-]{0,3}[a-z])?){0,2}`).
		Filter(func(s string) bool {
			return !strings.Contains(s, "by") && !strings.Contains(s, "if") && s != anyone
		})
	optional := rapid.OneOf(rapid.Just(""), name)
	rapid.Check(t, func(t *rapid.T) {
		r := Row{
			From: name.Draw(t, "from"), Event: name.Draw(t, "event"), Actor: optional.Draw(t, "actor"), To: name.Draw(t, "to"),
			Guard: optional.Draw(t, "guard"), Origin: optional.Draw(t, "origin"),
			Return: rapid.Bool().Draw(t, "return"), Ignored: rapid.Bool().Draw(t, "ignored"),
			Forced: rapid.Bool().Draw(t, "forced"), Supersedes: rapid.Bool().Draw(t, "supersedes"),
		}
		parsed, err := ParseRow(r.String())
		require.NoError(t, err)
		require.Equal(t, r, parsed)
	})
}
