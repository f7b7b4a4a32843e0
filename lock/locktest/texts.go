package locktest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lock"
)

// alike are texts that an engine could fold, trim, cut or quote. No two are equal. Most are
// valid paths without the first slash.
var alike = []string{
	"a/b", "A", "a ", " a", "á", "a\u0301", "à", "ａ", "a.", "a:", "a,", "a;", "a*", "a?", "[a]", "{a}", "a%", "a_", "a+", "a#", "a&",
	"a'", `a"`, `a\`, `a\b`, "a:b", "a.b", "a%2Fb", "$a", "-a", "null", "日本", "日", "🔒", "ß", "ss", "SS", "i", "I", "ı", "0", "0 ", " 0", "00", "1e3", "1000",
	strings.Repeat("n", 255), strings.Repeat("n", 254), strings.Repeat("n", 254) + "m",
	"a\n", "\t", "\x7f", strings.Repeat("é", lock.MaxText/2),
}

// keptTexts also changes its arguments after every call, and the answers of Requests.
func keptTexts(e *env) {
	var held []*lock.Grant
	for i, text := range alike {
		path, err := lock.Parse("/" + text)
		if err != nil {
			path = lock.MustParse(fmt.Sprint("/text ", i))
		}
		var both [2]*lock.Grant
		for k := range both {
			rs, o := []lock.Request{{Path: path, Mode: lock.X}}, textsOf(text)
			both[k], err = e.l.TryLockAll(e.Context(), rs, o)
			require.NoError(e, err, "call %d of TryLockAll of %q with the id %q, which conflicts with no other path", k+1, path, text)
			rs[0], *o = at(lock.IS, "/changed"), *textsOf("changed")
			both[k].Requests()[0] = rs[0]
		}
		require.Equal(e, both[0].Token(), both[1].Token(), "the token of the repeated id %q", text)
		require.Equal(e, []lock.Request{{Path: path, Mode: lock.X}}, both[0].Requests(), "Requests after the caller has changed its list, and the one that Requests returned")
		held = append(held, both[0])
	}
	for i, g := range held {
		path := g.Requests()[0].Path
		_, err := e.l.TryLock(e.Context(), at(lock.IS, path.String()+"/below"), nil)
		refused, ok := errors.AsType[*lock.ConflictError](err)
		require.True(e, ok && len(refused.Holders) == 1, "one holder of %q is in the way below it: %v", path, err)
		h := refused.Holders[0]
		require.Equal(e, path, h.Path, "the path of a holder")
		require.Equal(e, *textsOf(alike[i]), lock.Options{ID: h.ID, Owner: h.Owner, Reason: h.Reason}, "the texts of a holder")
		e.unlock(g)
	}
	e.idle()
}

func textsOf(text string) *lock.Options { return &lock.Options{ID: text, Owner: text, Reason: text} }
