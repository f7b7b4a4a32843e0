package locktest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lock"
)

// The demands of this file pass texts that an engine could fold, trim, cut or quote.

// alike are texts of valid segments. No two are equal.
var alike = []string{
	"a", "A", "a ", " a", "á", "a\u0301", "à", "ａ", "a.", "a:", "a,", "a;", "a*", "a?", "[a]", "{a}", "a%", "a_", "a+", "a#", "a&",
	"a'", `a"`, `a\`, `a\b`, "a:b", "a.b", "a%2Fb", "$a", "-a", "null", "日本", "日", "🔒", "ß", "ss", "SS", "i", "I", "ı", "0", "00", "1e3", "1000",
	strings.Repeat("n", 255), strings.Repeat("n", 254), strings.Repeat("n", 254) + "m",
}

func alikePaths(e *env) {
	paths := []lock.Path{lock.MustParse("/a/b")}
	for _, segment := range alike[1:] { // the first one is above /a/b
		paths = append(paths, lock.MustParse("/"+segment))
	}
	var held []*lock.Grant
	for i, p := range paths {
		g, err := e.l.TryLock(e.Context(), lock.Request{Path: p, Mode: lock.X}, by(fmt.Sprint("holder ", i)))
		require.NoError(e, err, "TryLock of %q, which conflicts with no other path", p)
		held = append(held, g)
	}
	for i, p := range paths {
		below := at(lock.IS, p.String()+"/below")
		_, err := e.l.TryLock(e.Context(), below, nil)
		require.Equal(e, []string{fmt.Sprintf("%s by holder %d", p, i)}, pathsOf(err), "the holders of the refusal of %q", below.Path)
		e.unlock(held[i])
	}
	e.idle()
}

// pathsOf returns the path and the owner of every holder of a refusal.
func pathsOf(err error) (texts []string) {
	if refused, ok := err.(*lock.ConflictError); ok {
		for _, h := range refused.Holders {
			texts = append(texts, fmt.Sprintf("%s by %s", h.Path, h.Owner))
		}
	}
	return texts
}

func deepPaths(e *env) {
	path, above := lock.Root(), []lock.Path{lock.Root()}
	for range 32 {
		path, _ = path.Child("d")
		above = append(above, path)
	}
	deepest := above[len(above)-1]
	g := e.take("holder", lock.Request{Path: deepest, Mode: lock.X})
	for _, p := range above {
		_, err := e.l.TryLock(e.Context(), lock.Request{Path: p, Mode: lock.S}, nil)
		require.ErrorIs(e, err, lock.ErrConflict, "TryLock of S at %q, with X held at %q", p, deepest)
	}
	parent, _ := deepest.Parent()
	beside, _ := parent.Child("e")
	e.unlock(e.take("neighbour", lock.Request{Path: beside, Mode: lock.X}))
	e.unlock(g)
	e.idle()
}

func alikeTexts(e *env) {
	texts := append(slices.Clone(alike), "a\n", "\t", "\x7f", "a/b", strings.Repeat("é", lock.MaxText/2))
	var held []*lock.Grant
	for i, text := range texts {
		o := &lock.Options{ID: text, Owner: text, Reason: text}
		r := at(lock.X, fmt.Sprint("/", i))
		g, err := e.l.TryLock(e.Context(), r, o)
		require.NoError(e, err, "TryLock with the new id %q", text)
		again, err := e.l.TryLock(e.Context(), r, o)
		require.NoError(e, err, "TryLock with the id %q once more", text)
		require.Equal(e, g.Token(), again.Token(), "the token of the repeated id %q", text)
		held = append(held, g)
	}
	s, err := e.l.Snapshot(e.Context())
	require.NoError(e, err, "Snapshot")
	require.Len(e, s.Holders, len(texts), "the holders of the snapshot")
	for i, text := range texts {
		h := s.Holders[i]
		require.Equal(e, lock.Options{ID: text, Owner: text, Reason: text}, lock.Options{ID: h.ID, Owner: h.Owner, Reason: h.Reason}, "the texts of a holder")
		e.unlock(held[i])
	}
	e.idle()
}

func arguments(e *env) {
	rs, o := []lock.Request{at(lock.X, "/a"), at(lock.S, "/b")}, &lock.Options{ID: "id", Owner: "owner", Reason: "reason"}
	g, err := e.l.TryLockAll(e.Context(), rs, o)
	require.NoError(e, err, "TryLockAll without a conflict")
	rs[0], *o = at(lock.IS, "/c"), lock.Options{ID: "changed", Owner: "changed", Reason: "changed"}
	g.Requests()[0] = at(lock.IS, "/c")
	require.Equal(e, []lock.Request{at(lock.X, "/a"), at(lock.S, "/b")}, g.Requests(), "Requests after the caller has changed its list, and the one that Requests returned")
	s, err := e.l.Snapshot(e.Context())
	require.NoError(e, err, "Snapshot")
	for _, h := range s.Holders {
		require.Equal(e, lock.Options{ID: "id", Owner: "owner", Reason: "reason"}, lock.Options{ID: h.ID, Owner: h.Owner, Reason: h.Reason},
			"the texts of a holder after the caller has changed its Options")
	}
	e.unlock(g)
	e.idle()
}
