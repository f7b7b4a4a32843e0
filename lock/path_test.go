package lock_test

import (
	"cmp"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lock"
)

var goodPaths = []string{
	"/", "/a", "/ab", "/a-b", "/a!", "/a0", "/A", "/a/b", "/a b", "/ ", "/...", "/.a", "/a.", "/a/..b",
	"/\u00e9", "/e\u0301", "/\u00a0", "/\u2028", "/日本/語", "/a\\b", "/%2f", "/*", "/~",
	"/" + strings.Repeat("x", 255),
	"/" + strings.Repeat("é", 127),
	strings.Repeat("/a", 32),
}

var badPaths = []struct{ path, text string }{
	{"", `lock: path "" does not begin with a slash`},
	{"a", `lock: path "a" does not begin with a slash`},
	{"a/b", `lock: path "a/b" does not begin with a slash`},
	{" /a", `lock: path " /a" does not begin with a slash`},
	{"//", `lock: path "//" has a segment 1 that is empty`},
	{"//a", `lock: path "//a" has a segment 1 that is empty`},
	{"/a/", `lock: path "/a/" has a segment 2 that is empty`},
	{"//" + strings.Repeat("x", 78), `lock: path "//` + strings.Repeat("x", 78) + `" has a segment 1 that is empty`},
	{"/a//b", `lock: path "/a//b" has a segment 2 that is empty`},
	{"/.", `lock: path "/." has a segment 1 that is "."`},
	{"/a/../b", `lock: path "/a/../b" has a segment 2 that is ".."`},
	{"/a\x00", `lock: path "/a\x00" has a segment 1 that has a control character`},
	{"/a\n/b", `lock: path "/a\n/b" has a segment 1 that has a control character`},
	{"/\u007f", `lock: path "/\x7f" has a segment 1 that has a control character`},
	{"/\u0085", `lock: path "/\u0085" has a segment 1 that has a control character`},
	{"/a/\xff", `lock: path "/a/\xff" has a segment 2 that is not UTF-8`},
	{"/\xed\xa0\x80", `lock: path "/\xed\xa0\x80" has a segment 1 that is not UTF-8`},
	{
		"/b/" + strings.Repeat("x", 256),
		`lock: path "/b/` + strings.Repeat("x", 74) + `..." has a segment 2 that is longer than 255 bytes`,
	},
	{
		strings.Repeat("/a", 33),
		`lock: path "` + strings.Repeat("/a", 33) + `" has more than 32 segments`,
	},
}

func TestParse(t *testing.T) {
	for _, s := range goodPaths {
		t.Run(s, func(t *testing.T) {
			p, err := lock.Parse(s)
			require.NoError(t, err)
			require.Equal(t, s, p.String())
			require.True(t, p.Valid())
			require.Equal(t, p, lock.MustParse(s))
		})
	}
	for _, bad := range badPaths {
		t.Run(bad.text, func(t *testing.T) {
			p, err := lock.Parse(bad.path)
			require.EqualError(t, err, bad.text)
			require.ErrorIs(t, err, lock.ErrInvalid)
			require.Equal(t, lock.Path{}, p)
			var detail *lock.InvalidError
			require.ErrorAs(t, err, &detail)
			require.Equal(t, "path", detail.What)
			require.Equal(t, bad.path, detail.Value)
			require.PanicsWithValue(t, bad.text, func() { lock.MustParse(bad.path) })
		})
	}
}

func segments(p lock.Path) []string {
	if p == lock.Root() || !p.Valid() {
		return nil
	}
	return strings.Split(p.String()[1:], "/")
}

func TestChildRefuses(t *testing.T) {
	deep := lock.MustParse(strings.Repeat("/a", 32))
	for name, c := range map[string]struct {
		parent  lock.Path
		segment string
		text    string
	}{
		"no segment":        {lock.Root(), "", `lock: path "" is not one segment`},
		"two segments":      {lock.Root(), "a/b", `lock: path "a/b" is not one segment`},
		"two dots":          {lock.Root(), "..", `lock: path "/.." has a segment 1 that is ".."`},
		"control character": {lock.Root(), "a\tb", `lock: path "/a\tb" has a segment 1 that has a control character`},
		"zero path":         {lock.Path{}, "a", `lock: path "" is the zero Path`},
		"too deep":          {deep, "b", `lock: path "` + deep.String() + `/b" has more than 32 segments`},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := c.parent.Child(c.segment)
			require.EqualError(t, err, c.text)
			require.ErrorIs(t, err, lock.ErrInvalid)
			require.Equal(t, lock.Path{}, p)
		})
	}
}

func TestZeroPath(t *testing.T) {
	var zero lock.Path
	require.False(t, zero.Valid())
	require.Empty(t, zero.String())
	require.False(t, zero.Covers(zero))
	require.False(t, zero.Covers(lock.Root()))
	require.False(t, lock.Root().Covers(zero))
	for _, p := range []lock.Path{zero, lock.Root()} {
		_, ok := p.Parent()
		require.False(t, ok)
	}
	_, err := zero.MarshalText()
	require.ErrorIs(t, err, lock.ErrInvalid)
}

// Covers, and the order of paths, against lists of segments.
func TestCoversAndOrder(t *testing.T) {
	paths := make([]lock.Path, 0, len(goodPaths)+10)
	for _, s := range append(goodPaths, "/a/b/c", "/a/b0", "/a-b/a", "/a/b-/c", "/a!/z", "/b", "/a/a/a") {
		paths = append(paths, lock.MustParse(s))
	}
	for _, a := range paths {
		for _, b := range paths {
			x, y := segments(a), segments(b)
			covers := len(x) <= len(y) && slices.Equal(x, y[:len(x)])
			require.Equal(t, covers, a.Covers(b), "%v %v", a, b)
			require.Equal(t, slices.Compare(x, y), cmp.Compare(lock.ComparePaths(a, b), 0), "%v %v", a, b)
			require.Equal(t, a == b, lock.ComparePaths(a, b) == 0)
			if covers && a != b {
				require.Negative(t, lock.ComparePaths(a, b), "parents come first")
			}
			for _, c := range paths { // a subtree is one run of the order
				if a.Covers(c) && lock.ComparePaths(a, b) <= 0 && lock.ComparePaths(b, c) <= 0 {
					require.True(t, a.Covers(b), "%v %v %v", a, b, c)
				}
			}
		}
	}
	shuffled := slices.Clone(paths)
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	slices.SortFunc(shuffled, lock.ComparePaths)
	slices.SortFunc(paths, func(a, b lock.Path) int { return slices.Compare(segments(a), segments(b)) })
	require.Equal(t, paths, shuffled)
}

func TestPathAsText(t *testing.T) {
	type wire struct {
		Path lock.Path            `json:"path"`
		Keys map[lock.Path]string `json:"keys"`
	}
	for _, s := range goodPaths {
		p := lock.MustParse(s)
		text, err := json.Marshal(wire{p, map[lock.Path]string{p: "x"}})
		require.NoError(t, err)
		var back wire
		require.NoError(t, json.Unmarshal(text, &back))
		require.Equal(t, wire{p, map[lock.Path]string{p: "x"}}, back)
	}
	p := lock.MustParse("/kept")
	require.ErrorIs(t, p.UnmarshalText([]byte("kept")), lock.ErrInvalid)
	require.Equal(t, lock.MustParse("/kept"), p, "a failed parse changes nothing")
	_, err := json.Marshal(wire{})
	require.ErrorIs(t, err, lock.ErrInvalid)
}

// FuzzParse: a path keeps its text, is built by Child and taken apart by Parent, and
// equals another path if and only if they have the same segments.
func FuzzParse(f *testing.F) {
	for _, s := range goodPaths {
		f.Add(s, "/a")
	}
	for _, bad := range badPaths {
		f.Add(bad.path, "/a/b")
	}
	f.Fuzz(func(t *testing.T, s, other string) {
		p, err := lock.Parse(s)
		if err != nil {
			require.ErrorIs(t, err, lock.ErrInvalid)
			require.NotEmpty(t, err.Error())
			require.False(t, p.Valid())
			return
		}
		require.Equal(t, s, p.String())
		list := segments(p)
		again := lock.Root()
		for _, segment := range list {
			require.True(t, again.Covers(p))
			child, err := again.Child(segment)
			require.NoError(t, err)
			parent, ok := child.Parent()
			require.True(t, ok)
			require.Equal(t, again, parent)
			again = child
		}
		require.Equal(t, p, again)
		q, err := lock.Parse(other)
		if err != nil {
			return
		}
		require.Equal(t, slices.Equal(list, segments(q)), p == q)
		require.Equal(t, slices.Compare(list, segments(q)), cmp.Compare(lock.ComparePaths(p, q), 0))
		require.Equal(t, -cmp.Compare(lock.ComparePaths(p, q), 0), cmp.Compare(lock.ComparePaths(q, p), 0))
		require.Equal(t, p.Covers(q) && q.Covers(p), p == q)
	})
}
