package fsm_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
)

// refusal requires that ParseTable refuses the document, and returns the error.
func refusal(t testing.TB, document string) *fsm.DocumentError {
	t.Helper()
	table, err := fsm.ParseTable([]byte(document))
	require.Nil(t, table, "nothing is returned")
	require.ErrorIs(t, err, fsm.ErrInvalid)
	de, ok := errors.AsType[*fsm.DocumentError](err)
	require.True(t, ok)
	require.Positive(t, de.Line)
	require.Positive(t, de.Column)
	require.LessOrEqual(t, len(err.Error()), 1000, "the text is short, whatever the document")
	require.True(t, strings.HasPrefix(err.Error(), "fsm: "))
	return de
}

const (
	head  = `{"name":"m","initial":"A","states":[{"name":"A","kind":"stable"}],"transitions":[`
	plain = `{"from":"A","event":"e","actor":"a","to":"A"}`
)

// The character @ marks the place that the error must name. It is not part of the
// document.
func TestParseTableRefuses(t *testing.T) {
	text := strings.Repeat("x", fsm.MaxText+1)
	rows := func(r string) string { return head + r + `]}` }
	tests := map[string]struct{ document, path, text string }{
		"empty document":         {`@`, "", "the document ends too early"},
		"spaces":                 {"\n\t @", "", "the document ends too early"},
		"null":                   {`@null`, "", "want an object, found null"},
		"array":                  {`@[]`, "", "want an object, found ["},
		"string":                 {` @"x"`, "", `want an object, found "x"`},
		"byte order mark":        {"@\ufeff{}", "", "a byte order mark: save the document as UTF-8 without one"},
		"text after":             {rows(plain) + "\n @x", "", "another value after the document"},
		"second document":        {rows(plain) + " @{}", "", "another value after the document"},
		"NUL between tokens":     {"{\"name\":@\x00\"m\"}", "name", `invalid character '\x00' looking for beginning of value`},
		"NUL in a name":          {"{\"name\":@\"m\x00\"}", "name", `invalid character '\x00' in string literal`},
		"NUL after":              {rows(plain) + "@\x00", "", "another value after the document"},
		"extra comma":            {head + plain + `,@]}`, "transitions[1]", "invalid character ']' looking for beginning of value"},
		"brace for a bracket":    {head + plain + `@}`, "transitions", "invalid character '}' after array element"},
		"bad escape":             {`{"name":@"\x"}`, "name", `invalid character 'x' in string escape code`},
		"number as a key":        {`{@1:2}`, "", "invalid character '1'"},
		"name not UTF-8":         {"{\"name\":\"m@\xff\"}", "", "not UTF-8"},
		"not UTF-8 at once":      {"@\xff", "", "not UTF-8"},
		"not UTF-8 after U+FFFD": {"{\"name\":\"\ufffd@\xff\"}", "", "not UTF-8"},
		"key not UTF-8":          {"{\"x@\xc3\":1}", "", "not UTF-8"},
		"surrogate in UTF-8":     {"{\"x\":\"@\xed\xa0\x80\"}", "", "not UTF-8"},

		"field twice":              {`{"name":"a",@"name":"b"}`, "name", "the object has the field twice"},
		"field twice, escaped":     {`{"name":"a",@"n\u0061me":"b"}`, "name", "the object has the field twice"},
		"field of a state twice":   {`{"states":[{"name":"a",@"name":"b"}]}`, "states[0].name", "the object has the field twice"},
		"field of a row twice":     {rows(plain + `,{"from":"A",@"from":"A"}`), "transitions[1].from", "the object has the field twice"},
		"unknown field twice":      {`{"x y":{"z":1,@"z":2}}`, `"x y".z`, "the object has the field twice"},
		"field of an empty name":   {`{"":{"z":1,@"z":2}}`, `"".z`, "the object has the field twice"},
		"field of a skipped twice": {`{"source":{"url":"",@"url":""}}`, "source.url", "the object has the field twice"},

		"no name":              {`@{"states":[],"transitions":[]}`, "name", "missing"},
		"no states":            {`@{"name":"m","transitions":[]}`, "states", "missing"},
		"no transitions":       {`@{"name":"m","states":[]}`, "transitions", "missing"},
		"state without name":   {`{"states":[@{"kind":"stable"}]}`, "states[0].name", "missing"},
		"state without kind":   {`{"states":[@{"name":"A"}]}`, "states[0].kind", "missing"},
		"row without source":   {rows(plain + `, @{"event":"e","to":"A"}`), "transitions[1].from", "missing"},
		"row without event":    {rows(`@{"from":"A","to":"A"}`), "transitions[0].event", "missing"},
		"row without target":   {rows(`@{"from":"A","event":"e"}`), "transitions[0]", "neither to nor return nor ignore"},
		"field in other case":  {rows(`@{"From":"A","event":"e","to":"A"}`), "transitions[0].from", "missing"},
		"field in upper case":  {rows(`@{"from":"A","EVENT":"e","to":"A"}`), "transitions[0].event", "missing"},
		"another schema":       {rows(plain)[:len(rows(plain))-1] + `,"schema":@"lifecycle-table/2"}`, "schema", `want "lifecycle-table/1", found "lifecycle-table/2"`},
		"unknown kind":         {`{"states":[{"name":"A","kind":@"failed"}]}`, "states[0].kind", `want stable, transitional, final or error, found "failed"`},
		"absent final state":   {`{"states":[@{"name":"A","kind":"final","absent":true}]}`, "states[0]", "an absent state of kind final, want stable"},
		"return and ignore":    {rows(`@{"from":"A","event":"e","return":true,"ignore":true}`), "transitions[0]", "both ignore and return"},
		"return and to":        {rows(`@{"from":"A","event":"e","return":true,"to":"A"}`), "transitions[0]", "both return and to"},
		"actor and actors":     {rows(`@{"from":"A","event":"e","to":"A","actor":"a","actors":["a"]}`), "transitions[0]", "both actor and actors"},
		"empty actors":         {rows(`{"from":"A","event":"e","to":"A","actors":@[]}`), "transitions[0].actors", "an empty list: leave the field out"},
		"empty origin":         {rows(`{"from":"A","event":"e","to":"A","origin":@[]}`), "transitions[0].origin", "an empty list: leave the field out"},
		"within without unit":  {rows(`{"from":"A","event":"e","to":"A","within":@"60"}`), "transitions[0].within", `want a duration such as "1m30s" and not zero, found "60"`},
		"within of zero":       {rows(`{"from":"A","event":"e","to":"A","within":@"0s"}`), "transitions[0].within", `want a duration such as "1m30s" and not zero, found "0s"`},
		"row number 1.5":       {rows(`{"from":"A","event":"e","to":"A","row":@1.5}`), "transitions[0].row", "want a whole number, found 1.5"},
		"row over 64 bits":     {`{"transitions":[{"row":@99999999999999999999}]}`, "transitions[0].row", "want a whole number, found 99999999999999999999"},
		"number among strings": {`{"initials":["x",@7]}`, "initials[1]", "want a string, found 7"},

		"long name":       {`{"name":@"` + long + `"}`, "name", "a string of 257 bytes, more than 256"},
		"long note":       {`{"states":[{"note":@"` + text + `"}]}`, "states[0].note", "a string of 65537 bytes, more than 65536"},
		"many fields":     {`{"x":{` + numbered(256, `"%d":0,`) + `@"256":0}}`, "x.256", "an object of more than 256 fields"},
		"many states":     {`{"states":[` + numbered(4096, `{"name":"%d","kind":"final"},`) + `@{"name":"A","kind":"final"}],"name":"m","transitions":[]}`, "states[4096]", "more than 4096 states"},
		"many events":     {`@` + head + numbered(4096, `{"from":"A","event":"%d","to":"A"},`) + `{"from":"A","event":"z","to":"A"}]}`, "", "more than 4096 events"},
		"many rows":       {head + strings.Repeat(plain+",", 65536) + `@` + plain + `]}`, "transitions[65536]", "more than 65536 rows"},
		"many undeclared": {`@` + head + numbered(4096, `{"from":"A","event":"e","to":"%d"},`) + `{"from":"A","event":"e","to":"z"}]}`, "", "more than 4096 states that are not declared"},
		"many actors":     {`{"actors":[` + strings.Repeat(`"",`, 8192) + `@""]}`, "actors[8192]", "more than 8192 elements"},

		"nested arrays":      {`{"x":` + strings.Repeat("[", 31) + "@" + strings.Repeat("[", 1<<20), "x" + strings.Repeat("[0]", 31), "nested more than 32 deep"},
		"nested objects":     {strings.Repeat(`{"a":`, 32) + `@` + strings.Repeat(`{"a":`, 1<<18), strings.Repeat("a.", 31) + "a", "nested more than 32 deep"},
		"arrays first":       {"@" + strings.Repeat("[", 1<<20), "", "want an object, found ["},
		"million empty rows": {head + "@" + strings.Repeat("{},", 1e6) + "{}]}", "transitions[0].from", "missing"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before, after, found := strings.Cut(test.document, "@")
			require.True(t, found)
			line := 1 + strings.Count(before, "\n")
			column := len(before) - strings.LastIndex(before, "\n")
			err := refusal(t, before+after)
			require.Equal(t, &fsm.DocumentError{
				Path: test.path, Offset: int64(len(before)), Line: line, Column: column, Text: test.text,
			}, err)
			require.ErrorContains(t, err, fmt.Sprintf("%s (line %d, column %d, offset %d)", test.text, line, column, len(before)))
		})
	}
}

func numbered(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// Every field of the form refuses every type but its own.
func TestParseTableRefusesOtherTypes(t *testing.T) {
	values := []string{`null`, `true`, `1.5`, `"\u0000"`, `[`, `{`}
	type kind struct{ want, accepted, keys string }
	for _, form := range []struct {
		document, path string
		kinds          []kind
	}{
		{`{%s}`, "", []kind{
			{"a string", `"\u0000"`, "name title schema confidence initial"},
			{"an array", `[`, "initials actors states transitions"},
		}},
		{`{"states":[{%s}]}`, "states[0].", []kind{
			{"a string", `"\u0000"`, "name kind target manual note"},
			{"true or false", `true`, "absent"},
		}},
		{`{"transitions":[{%s}]}`, "transitions[0].", []kind{
			{"a string", `"\u0000"`, "from event actor to guard within note"},
			{"an array", `[`, "actors except origin"},
			{"true or false", `true`, "return ignore any forced supersede"},
			{"a whole number", `1`, "row"},
		}},
	} {
		for _, k := range form.kinds {
			for key := range strings.FieldsSeq(k.keys) {
				t.Run(form.path+key, func(t *testing.T) {
					for _, value := range values {
						if value == k.accepted {
							continue
						}
						document := fmt.Sprintf(form.document, fmt.Sprintf(`"%s":%s`, key, value))
						de := refusal(t, document)
						require.Equal(t, form.path+key, de.Path, document)
						require.Equal(t, fmt.Sprintf("want %s, found %s", k.want, value), de.Text, document)
						require.EqualValues(t, strings.LastIndex(document, value), de.Offset, document)
					}
				})
			}
		}
	}
}

// Transitions of one row differ in the source only.
func TestParseTableRefusesDifferentTransitionsOfARow(t *testing.T) {
	const base = `"event":"e","to":"B"`
	for _, other := range []string{
		`"event":"f","to":"B"`, `"event":"e","to":"A"`, `"event":"e","return":true`, `"event":"e","ignore":true`,
		base + `,"actor":"a"`, base + `,"actors":["a","b"]`, base + `,"guard":"g"`, base + `,"any":true`,
		base + `,"except":["A"]`, base + `,"origin":["A"]`, base + `,"forced":true`, base + `,"supersede":true`,
		base + `,"within":"1s"`, base + `,"note":"x"`,
	} {
		document := head + `{"from":"A","row":3,` + base + `},` + plain + `,{"row":3,"from":"B",` + other + `}]}`
		de := refusal(t, document)
		require.Equal(t, "transitions[2]", de.Path, other)
		require.Equal(t, "differs in more than the source from the transition before it in row 3", de.Text)
		require.EqualValues(t, strings.LastIndex(document, `{"row"`), de.Offset)
	}
}

func TestParseTableRefusesEveryPrefix(t *testing.T) {
	data, err := os.ReadFile("testdata/tables/lift.golden.json")
	require.NoError(t, err)
	document := strings.TrimRight(string(data), "\n")
	for i := range len(document) {
		refusal(t, document[:i])
	}
}

func TestSurrogatePairsAreCharacters(t *testing.T) {
	table := parsed(t, `{"name":"\ud83d\ude00 \ufffd � \\ud83d","states":[],"transitions":[]}`)
	require.Equal(t, "😀 \ufffd � \\ud83d", table.Name)
}

func TestParseTableAcceptsTheDeepestNesting(t *testing.T) {
	deep := strings.Repeat("[", fsm.MaxNesting-1) + strings.Repeat("]", fsm.MaxNesting-1)
	parsed(t, `{"name":"m","states":[],"transitions":[],"x":`+deep+`}`)
}

// A document at its limits is read.
func TestParseTableAcceptsTheLimits(t *testing.T) {
	list := func(n int, format string) string { return strings.TrimSuffix(numbered(n, format), ",") }
	document := fmt.Sprintf(`{"name":"%s","states":[%s],"transitions":[%s],"title":"%s"}`,
		strings.Repeat("x", fsm.MaxName), list(fsm.MaxStates, `{"name":"%d","kind":"final"},`),
		list(fsm.MaxEvents, `{"from":"0","event":"%[1]d","to":"undeclared %[1]d"},`), strings.Repeat("x", fsm.MaxText))
	table := parsed(t, document+strings.Repeat(" ", fsm.MaxDocument-len(document)))
	require.Len(t, table.States, fsm.MaxStates)
	require.Len(t, table.Undeclared, fsm.MaxStates)
	require.Len(t, table.Events, fsm.MaxEvents)
	require.Len(t, table.Title, fsm.MaxText)
}

// The memory of ParseTable is bounded by a multiple of the size of the document. A
// document over the limit takes none.
func TestParseTableIsBoundedInMemory(t *testing.T) {
	const many = 512 << 10
	fill := func(before, item, after string) string {
		n := (many - len(before) - len(after)) / (len(item) + 1)
		return before + strings.Repeat(item+",", n-1) + item + after
	}
	const rows = `{"name":"m","states":[],"transitions":[`
	tests := map[string]struct {
		document string
		loads    bool
		limit    uint64 // bytes
	}{
		"one line of 10 MB":       {`{"name":"` + strings.Repeat("x", 10e6) + `"}`, false, 1 << 20},
		"a million rows":          {rows + strings.Repeat(`{"from":"A","event":"e","to":"A"},`, 1e6) + `]}`, false, 1 << 20},
		"brackets":                {`{"x":` + strings.Repeat("[", fsm.MaxDocument-5), false, 1 << 20},
		"unknown numbers":         {fill(`{"x":[`, `1`, `]}`), false, 100 * many},
		"unknown texts":           {fill(`{"x":[`, `""`, `]}`), false, 100 * many},
		"one row of many sources": {fill(rows, `{"from":"A","event":"e","to":"A","row":1}`, `]}`), true, 100 * many},
		"a long list":             {fill(rows+`{"except":[`, `"A"`, `]}]}`), false, 4 << 20},
		"unknown lists":           {fill(`{"x":[`, `["A","e"]`, `]}`), false, 100 * many},
		"one text":                {`{"x":"` + strings.Repeat("x", fsm.MaxDocument-8) + `"}`, false, 20 * fsm.MaxDocument},
		"one key":                 {`{"` + strings.Repeat("x", fsm.MaxDocument-6) + `":1}`, false, 20 * fsm.MaxDocument},
		"one number":              {`{"x":` + strings.Repeat("1", fsm.MaxDocument-6) + `}`, false, 20 * fsm.MaxDocument},
		"spaces":                  {`{` + strings.Repeat(" ", fsm.MaxDocument-2) + `}`, false, 20 * fsm.MaxDocument},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			data := []byte(test.document)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			table, err := fsm.ParseTable(data)
			runtime.ReadMemStats(&after)
			require.LessOrEqual(t, after.TotalAlloc-before.TotalAlloc, test.limit)
			if test.loads {
				require.NoError(t, err)
				return
			}
			require.Nil(t, table)
			require.ErrorIs(t, err, fsm.ErrInvalid)
		})
	}
}

// endless returns spaces without end and counts them.
type endless struct{ n int }

func (r *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	r.n += len(p)
	return len(p), nil
}

func TestReadTable(t *testing.T) {
	document := written(t, lift(t).Table())
	table, err := fsm.ReadTable(iotest.OneByteReader(strings.NewReader(document)))
	require.NoError(t, err)
	require.Equal(t, document, written(t, table))

	var r endless
	table, err = fsm.ReadTable(&r)
	require.Nil(t, table)
	require.ErrorIs(t, err, fsm.ErrInvalid)
	require.Equal(t, fsm.MaxDocument+1, r.n, "one byte over the limit is enough")

	table, err = fsm.ReadTable(iotest.ErrReader(io.ErrClosedPipe))
	require.Nil(t, table)
	require.ErrorIs(t, err, io.ErrClosedPipe)
	require.NotErrorIs(t, err, fsm.ErrInvalid, "the document is not the cause")
	require.EqualError(t, err, "fsm: read table: io: read/write on closed pipe")
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

// The text of an error has at most 64 bytes of a text of the document.
func TestLongTextsAreCut(t *testing.T) {
	for length, shown := range map[int]string{
		64: strings.Repeat("k", 64),
		65: strings.Repeat("k", 64) + "...",
	} {
		t.Run(fmt.Sprint(length), func(t *testing.T) {
			err := refusal(t, `{"states":[{"name":"A","kind":"`+strings.Repeat("k", length)+`"}]}`)
			require.Equal(t, fmt.Sprintf("want stable, transitional, final or error, found %q", shown), err.Text)
		})
	}
}

func TestWriteTableToFullDisk(t *testing.T) {
	err := fsm.WriteTable(fullDisk{}, lift(t).Table())
	require.ErrorIs(t, err, io.ErrShortWrite)
	require.EqualError(t, err, "fsm: write table: short write")
}
