package lock

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// hostile are paths whose texts are prefixes of each other or sort around the slash,
// and deep paths.
var hostile = []string{
	"/", "/a", "/ab", "/a-b", "/a!", "/a0", "/a.", "/A", "/b",
	"/a/b", "/a/b!", "/a/b0", "/a/bc", "/a/a", "/ab/b", "/a-b/c", "/a!/b",
	"/a/b/c", "/a/b/c/d", "/a/b/c/d/e", "/a/b/c-/d", "/a/b/x/d", "/é/ü", "/é/ü/b",
	"/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a", "/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/b",
	strings.Repeat("/a", maxDepth), strings.Repeat("/b", maxDepth),
}

func requests(paths []string) (rs []Request) {
	for _, p := range paths {
		for _, m := range Modes {
			rs = append(rs, Request{MustParse(p), m})
		}
	}
	return rs
}

// Every pair of requests conflicts as the oracle computes, by Conflicts and by Try.
// The modes are compatible as the printed matrix states.
func TestEveryPairConflictsByTheRule(t *testing.T) {
	rs := requests(hostile)
	pairs, conflicts := 0, 0
	for _, a := range rs {
		var tree Tree
		h, err := tree.Try(a.Path, a.Mode)
		require.NoError(t, err)
		for _, b := range rs {
			want := conflict(marks(a), marks(b))
			require.Equal(t, compatibleModes[[2]string{a.Mode.String(), b.Mode.String()}], Compatible(a.Mode, b.Mode))
			if got := a.Conflicts(b); got != want {
				t.Fatalf("%v, %v: conflict %v, want %v", a, b, got, want)
			}
			other, err := tree.Try(b.Path, b.Mode)
			if errors.Is(err, ErrConflict) != want || !want && err != nil {
				t.Fatalf("%v held, %v requested: %v, want conflict %v", a, b, err, want)
			}
			if fault := check(&tree.trie); fault != "" {
				t.Fatalf("%v, %v: %s", a, b, fault)
			}
			other.Unlock()
			pairs++
			if want {
				conflicts++
			}
		}
		h.Unlock()
		require.Zero(t, tree.trie.nodes)
	}
	require.GreaterOrEqual(t, pairs, 5000)
	t.Logf("%d pairs, %d conflict", pairs, conflicts)
}

// filled returns a tree and the requests that it holds.
func filled(t *testing.T, random *rand.Rand, rs []Request, n int) (*Tree, []Request) {
	tree := new(Tree)
	var have []Request
	for range n {
		r := rs[random.IntN(len(rs))]
		if _, err := tree.Try(r.Path, r.Mode); err == nil {
			have = append(have, r)
		}
	}
	require.Empty(t, checkTree(tree))
	return tree, have
}

// visit yields what conflicts, each entry once, and what is above, at and below.
func TestVisitFindsWhatConflicts(t *testing.T) {
	rs := requests(hostile)
	for i := range 40 {
		kid := MustParse(fmt.Sprintf("/a/%d", i)) // many children, so that there are maps
		rs = append(rs, Request{kid, IS}, Request{kid, IX}, Request{kid, X})
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 10 {
		tree, have := filled(t, random, rs, 60)
		for _, r := range rs {
			texts := func(f filter) (found []string) {
				for e := range tree.trie.visit(r.Path.key(), f) {
					found = append(found, e.Request.String())
				}
				slices.Sort(found)
				return found
			}
			want := map[string][]string{}
			for _, h := range have {
				add := func(to string) { want[to] = append(want[to], h.String()); slices.Sort(want[to]) }
				if conflict(marks(r), marks(h)) {
					add("conflicts")
				}
				switch {
				case h.Path == r.Path:
					add("At")
				case h.Path.Covers(r.Path):
					add("Above")
				case r.Path.Covers(h.Path):
					add("Below")
				}
			}
			require.Equal(t, want["conflicts"], texts(conflicting[r.Mode]), r.String())
			for name, s := range map[string]Scope{"Above": Above, "At": At, "Below": Below} {
				require.Equal(t, want[name], texts(scoped(s)), "%s %s", name, r)
			}
			_, free := tree.trie.find(r.Path.key(), conflicting[r.Mode])
			require.Equal(t, len(want["conflicts"]) == 0, free, r.String())
			for range tree.trie.visit(r.Path.key(), conflicting[r.Mode]) {
				break // the visit stops early
			}
		}
	}
}

// A node changes from a list of children to a map and back, also while children are
// split and merged below it.
func TestManyChildren(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for most := range 3 * mostKids {
		var tree Tree
		for _, below := range []string{"", "/p/q"} {
			var holds []Handle
			take := func(path string) {
				h, err := tree.Try(MustParse(path), X)
				require.NoError(t, err)
				holds = append(holds, h)
				require.Empty(t, check(&tree.trie))
			}
			for i := range most {
				take(fmt.Sprintf("%s/k%d/x/y", below, i))
			}
			for i := range most { // a fork in every edge
				take(fmt.Sprintf("%s/k%d/x/z", below, i))
			}
			random.Shuffle(len(holds), func(i, j int) { holds[i], holds[j] = holds[j], holds[i] })
			for _, h := range holds {
				require.True(t, h.Unlock())
				require.Empty(t, check(&tree.trie))
			}
			require.Zero(t, tree.trie.nodes)
		}
	}
}

// The trie keeps only nodes with requests and nodes where paths part.
func TestNodesAreRequestsAndForks(t *testing.T) {
	var tree Tree
	common := strings.Repeat("/s", 20)
	take := func(path string, nodes int) Handle {
		h, err := tree.Try(MustParse(path), IX)
		require.NoError(t, err)
		require.Equal(t, nodes, tree.trie.nodes, path)
		require.Empty(t, check(&tree.trie))
		return h
	}
	deep := take(common+"/a/a", 1)
	fork := take(common+"/b/b", 3)
	third := take(common+"/c/c", 4)
	inside := take(common, 4)                 // the fork itself
	above := take(strings.Repeat("/s", 7), 5) // in the edge
	root := take("/", 5)
	for _, step := range []struct {
		name  string
		h     Handle
		nodes int
	}{{"fork", fork, 4}, {"inside", inside, 4}, {"third", third, 2}, {"root", root, 2}, {"above", above, 1}, {"deep", deep, 0}} {
		t.Run("unlock "+step.name, func(t *testing.T) {
			require.True(t, step.h.Unlock())
			require.Equal(t, step.nodes, tree.trie.nodes)
			require.Empty(t, check(&tree.trie))
		})
	}
}

// G3: an idle tree keeps a bounded number of spare nodes and claims, and not the
// memory of what it held before.
func TestMemoryIsFreed(t *testing.T) {
	inUse := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	var tree Tree
	before := inUse()
	holds := make([]Handle, 0, 10_000)
	for i := range cap(holds) {
		h, err := tree.Try(MustParse(fmt.Sprintf("/%s%d/%d/x/y", strings.Repeat("long", 20), i%100, i)), X)
		require.NoError(t, err)
		holds = append(holds, h)
	}
	for i, h := range holds {
		require.True(t, h.Unlock())
		if i%1000 == 0 {
			require.Empty(t, checkTree(&tree))
		}
	}
	holds = nil
	require.Empty(t, checkTree(&tree))
	require.Zero(t, tree.trie.nodes)
	require.Nil(t, tree.trie.root.byName)
	require.LessOrEqual(t, len(tree.trie.spare), maxSpare)
	require.LessOrEqual(t, len(tree.spare), maxSpare)
	if after := inUse(); after > before { // no test of this package runs beside another
		require.Less(t, after-before, uint64(256<<10))
	}
	runtime.KeepAlive(&tree)
}
