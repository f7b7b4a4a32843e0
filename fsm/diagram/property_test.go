package diagram_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/diagram"
)

// hostile has names with a meaning for the programs that read pictures.
var hostile = []string{
	"does-not-exist", "a b", "x; y", "<script>", "end", "end note", "state", "note", "class", "classDef x fill:#abc;",
	"direction", "direction LR", "new Direction tbd", "default", "style s0 fill:#abc;", "as", `a" as b`, "fork", "<<fork>>", "hide empty description",
	"accTitle: x", "accDescr {", "click s0", "title", "---", "--", "-->", "[*]", ":", "a:b", ":::x", "|", "||", "`code`",
	"```", "#", "#35;", "# head", "%%", "%%{init: {}}%%", "&amp;", "&lt;b&gt;", "&#65;", "<br/>", "<!-- -->", "{", "}",
	"$$x$$", "_x_", "__b__", "*x*", "**b**", "~~s~~", "1. one", "1) one", "12)", "- item", "* item", "+ item", "-", "> q",
	"\"quoted\"", `back\slash`, `a\nb`, `\N`, `\G`, `\l`, `\`, `\|`, `a\\|b`, "a_b", "_", "'", "(", ")", "a,b", "//", "/* x */",
	"über", "日本語", "e\u0301", "\ufb02\u00b0\u00b035\u00b6\u00df", " lead", "trail ", "a  b", " ", "\u202eevil", "\ufeffbom",
	"\u00a0", "\u2028", "\u200d", "\u2060", "http://x.y/z_a_", "[a](javascript:b)", "![i](x)", "<U+202E>", "<empty>", "s0", "any0",
}

// names generates valid names, and sometimes invalid ones.
func names() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom(hostile),
		rapid.StringOfN(rapid.SampledFrom([]rune("ab1_-.#;:%\"'\\<>[](){}|&$*`~/=@! \ufb02\u00b0\u00b6\u00df")), 0, 12, -1),
		rapid.StringN(0, 12, -1),
	)
}

// tables generates tables without indexes out of range. They may have other errors.
func tables() *rapid.Generator[*fsm.Table] {
	return rapid.Custom(func(t *rapid.T) *fsm.Table {
		table := &fsm.Table{Name: names().Draw(t, "machine"), Initial: -1}
		for range rapid.IntRange(1, 5).Draw(t, "states") {
			table.States = append(table.States, fsm.TableState{
				Name: names().Draw(t, "state"), Kind: fsm.Kind(rapid.IntRange(0, 4).Draw(t, "kind")), Target: -1,
				Doc: rapid.SampledFrom([]string{"", "two\nlines | \\", "[1]"}).Draw(t, "doc"),
			})
		}
		if rapid.Bool().Draw(t, "faulty") {
			table.Undeclared = []string{names().Draw(t, "undeclared")}
			table.UndeclaredActors = []fsm.Actor{fsm.Actor(names().Draw(t, "undeclared actor"))}
		}
		state := rapid.IntRange(0, len(table.States)+len(table.Undeclared)-1)
		some := rapid.SliceOfNDistinct(state, 0, 3, rapid.ID)
		table.Initial = state.Draw(t, "initial")
		if rapid.Bool().Draw(t, "more entries") {
			table.Initials = some.Draw(t, "initials")
		}
		for range rapid.IntRange(1, 3).Draw(t, "events") {
			table.Events = append(table.Events, names().Draw(t, "event"))
			table.Actors = append(table.Actors, fsm.Actor(names().Draw(t, "actor")))
		}
		event := rapid.IntRange(0, len(table.Events)-1)
		for range rapid.IntRange(0, 6).Draw(t, "rows") {
			r := fsm.TableRow{
				From: some.Draw(t, "from"), Event: event.Draw(t, "event"), To: -1,
				Actors: rapid.SliceOfNDistinct(rapid.IntRange(0, len(table.Actors)+len(table.UndeclaredActors)-1), 0, 2, rapid.ID).Draw(t, "actors"),
				Then:   fsm.Then(rapid.IntRange(0, 2).Draw(t, "then")),
				Forced: rapid.Bool().Draw(t, "forced"), Supersede: rapid.Bool().Draw(t, "supersede"),
				Timeout: rapid.SampledFrom([]time.Duration{0, 0, time.Nanosecond, time.Minute, 10 * time.Hour}).Draw(t, "within"),
				Doc:     rapid.SampledFrom([]string{"", "", "a doc; forced", "\t "}).Draw(t, "doc"),
			}
			if r.Then == fsm.ThenMove {
				r.To = state.Draw(t, "to")
			}
			if r.Any = rapid.Bool().Draw(t, "any"); r.Any {
				r.Except = some.Draw(t, "except")
			}
			if rapid.Bool().Draw(t, "guarded") {
				r.Guard = "g" + names().Draw(t, "guard")
			}
			if rapid.Bool().Draw(t, "origin") {
				r.Origin = some.Draw(t, "origins")
			}
			table.Rows = append(table.Rows, r)
		}
		return table
	})
}

// TestReadBack reads pictures with arbitrary names back and compares them with the
// table.
func TestReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := tables().Draw(t, "table")
		current := []string{"", "no such state"}
		for _, s := range table.States {
			current = append(current, s.Name)
		}
		checkPictures(t, table, &diagram.Config{Current: rapid.SampledFrom(current).Draw(t, "current")})
	})
}

// TestWidth requires that no line exceeds the width, except for words that cannot be
// broken.
func TestWidth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := tables().Draw(t, "table")
		width := rapid.IntRange(1, 150).Draw(t, "width")
		restore := diagram.SetWidth(width)
		text := diagram.Text(table, nil)
		diagram.SetWidth(1)
		least := diagram.Text(table, nil)
		restore()
		for grid, block := range strings.Split(text, "\n\n") {
			narrowest := 0
			for l := range strings.SplitSeq(strings.Split(least, "\n\n")[grid], "\n") {
				narrowest = max(narrowest, utf8.RuneCountInString(l))
			}
			for l := range strings.SplitSeq(block, "\n") {
				require.LessOrEqual(t, utf8.RuneCountInString(l), max(width, narrowest))
			}
		}
	})
}

// FuzzNames requires that no name breaks the grammar of a picture or list.
func FuzzNames(f *testing.F) {
	for i := range hostile {
		next := func(k int) string { return hostile[(i+k)%len(hostile)] }
		f.Add(next(0), next(1), next(17), next(31), next(47), next(61))
	}
	f.Add("", "\x00", "\xff", "a\r\nb", "\u0085", "\x1b[31m")
	f.Fuzz(func(t *testing.T, a, b, event, actor, guard, doc string) {
		if plain(a) == plain(b) {
			b += "2"
		}
		table := &fsm.Table{
			Name:   a,
			States: []fsm.TableState{{Name: a, Target: 1, Doc: doc}, {Name: b, Kind: fsm.Transitional, Target: 0, Manual: doc}},
			Events: []string{event, b}, Actors: []fsm.Actor{fsm.Actor(actor), fsm.Actor(guard)},
			Rows: []fsm.TableRow{
				{From: []int{0}, Event: 0, To: 1, Actors: []int{0, 1}, Guard: guard, Doc: doc},
				{From: []int{1}, Event: 1, To: -1, Then: fsm.ThenReturn, Origin: []int{0}, Actors: []int{1}},
				{From: []int{0}, Event: 1, To: -1, Then: fsm.ThenIgnore, Doc: doc},
				{From: []int{0}, Any: true, Except: []int{0}, Event: 0, To: 1, Forced: true, Timeout: time.Minute},
			},
		}
		checkPictures(t, table, nil)
	})
}
