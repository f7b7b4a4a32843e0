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

// refusal parses a document that must be refused.
func refusal(t testing.TB, document string) *fsm.DocumentError {
	t.Helper()
	table, err := fsm.ParseTable([]byte(document))
	require.Nil(t, table, "nothing is returned")
	require.ErrorIs(t, err, fsm.ErrInvalid)
	de, ok := errors.AsType[*fsm.DocumentError](err)
	require.True(t, ok)
	require.Positive(t, de.Line)
	require.Positive(t, de.Column)
	require.LessOrEqual(t, len(err.Error()), 1000, "a hostile document does not fill the log")
	require.True(t, strings.HasPrefix(err.Error(), "fsm: "))
	return de
}

const (
	head  = `{"name":"m","initial":"A","states":[{"name":"A","kind":"stable"}],"transitions":[`
	plain = `{"from":"A","event":"e","actor":"a","to":"A"}`
)

// @ marks the place that the error must name.
func TestHostileDocuments(t *testing.T) {
	long, text := strings.Repeat("x", fsm.MaxName+1), strings.Repeat("x", fsm.MaxText+1)
	rows := func(r string) string { return head + r + `]}` }
	tests := map[string]struct{ document, path, text string }{
		"nothing":                   {`@`, "", "the document ends too early"},
		"spaces":                    {"\n\t @", "", "the document ends too early"},
		"null":                      {`@null`, "", "want an object, found null"},
		"an array":                  {`@[]`, "", "want an object, found an array"},
		"a text":                    {` @"x"`, "", "want an object, found a string"},
		"a byte order mark":         {"@\ufeff{}", "", "invalid character 'ï' looking for beginning of value"},
		"something behind":          {rows(plain) + "\n @x", "", "something follows the document"},
		"a second document":         {rows(plain) + " @{}", "", "something follows the document"},
		"a NUL between tokens":      {"{\"name\":@\x00\"m\"}", "name", `invalid character '\x00' looking for beginning of value`},
		"a NUL in a name":           {"{\"name\":@\"m\x00\"}", "name", `invalid character '\x00' in string literal`},
		"a NUL behind":              {rows(plain) + "@\x00", "", "something follows the document"},
		"a comma too many":          {head + plain + `,@]}`, "transitions[1]", "invalid character ']' looking for beginning of value"},
		"a brace for a bracket":     {head + plain + `@}`, "transitions", "invalid character '}' after array element"},
		"a bad escape":              {`{"name":@"\x"}`, "name", `invalid character 'x' in string escape code`},
		"a number as a key":         {`{@1:2}`, "", "invalid character '1'"},
		"a name not UTF-8":          {"{\"name\":\"m@\xff\"}", "", "not UTF-8"},
		"a key not UTF-8":           {"{\"x@\xc3\":1}", "", "not UTF-8"},
		"a surrogate in UTF-8":      {"{\"x\":\"@\xed\xa0\x80\"}", "", "not UTF-8"},
		"half a surrogate":          {`{"name":@"\ud83d"}`, "name", "an escaped surrogate without its other half"},
		"the other half":            {`{"name":@"\ude00"}`, "name", "an escaped surrogate without its other half"},
		"two first halves":          {`{"name":@"\ud83d\ud83d\ude00"}`, "name", "an escaped surrogate without its other half"},
		"half a surrogate in a key": {`{@"\ud83d":1}`, "", "an escaped surrogate without its other half"},
		"half, in what is ignored":  {`{"x":{"y":["",@"\\\udead"]}}`, "x.y[1]", "an escaped surrogate without its other half"},

		"a field twice":                    {`{"name":"a",@"name":"b"}`, "name", "the field is there twice"},
		"a field twice, spelt differently": {`{"name":"a",@"n\u0061me":"b"}`, "name", "the field is there twice"},
		"a field of a state twice":         {`{"states":[{"name":"a",@"name":"b"}]}`, "states[0].name", "the field is there twice"},
		"a field of a row twice":           {rows(plain + `,{"from":"A",@"from":"A"}`), "transitions[1].from", "the field is there twice"},
		"an unknown field twice":           {`{"x y":{"z":1,@"z":2}}`, `"x y".z`, "the field is there twice"},
		"a field of the source twice":      {`{"source":{"url":"",@"url":""}}`, "source.url", "the field is there twice"},

		"no name":             {`@{"states":[],"transitions":[]}`, "name", "missing"},
		"no states":           {`@{"name":"m","transitions":[]}`, "states", "missing"},
		"no transitions":      {`@{"name":"m","states":[]}`, "transitions", "missing"},
		"a state unnamed":     {`{"states":[@{"kind":"stable"}]}`, "states[0].name", "missing"},
		"a state of no kind":  {`{"states":[@{"name":"A"}]}`, "states[0].kind", "missing"},
		"a row from nowhere":  {rows(plain + `, @{"event":"e","to":"A"}`), "transitions[1].from", "missing"},
		"a row on nothing":    {rows(`@{"from":"A","to":"A"}`), "transitions[0].event", "missing"},
		"a row to nowhere":    {rows(`@{"from":"A","event":"e"}`), "transitions[0]", "neither to nor return nor ignore"},
		"other letters":       {rows(`@{"From":"A","event":"e","to":"A"}`), "transitions[0].from", "missing"},
		"other letters still": {rows(`@{"from":"A","EVENT":"e","to":"A"}`), "transitions[0].event", "missing"},

		"another schema":             {`{"schema":@"lifecycle-table/2"}`, "schema", `want "lifecycle-table/1", found "lifecycle-table/2"`},
		"a kind of its own":          {`{"states":[{"name":"A","kind":@"failed"}]}`, "states[0].kind", `want stable, transitional, final or error, found "failed"`},
		"an absent final state":      {`{"states":[@{"name":"A","kind":"final","absent":true}]}`, "states[0]", "an absent state of kind final, want stable"},
		"return and ignore":          {rows(`@{"from":"A","event":"e","return":true,"ignore":true}`), "transitions[0]", "both ignore and return"},
		"return and to":              {rows(`@{"from":"A","event":"e","return":true,"to":"A"}`), "transitions[0]", "both return and to"},
		"actor and actors":           {rows(`@{"from":"A","event":"e","to":"A","actor":"a","actors":["a"]}`), "transitions[0]", "both actor and actors"},
		"nobody":                     {rows(`@{"from":"A","event":"e","to":"A","actors":[]}`), "transitions[0].actors", "an empty list: leave the field out"},
		"no origin":                  {rows(`@{"from":"A","event":"e","to":"A","origin":[]}`), "transitions[0].origin", "an empty list: leave the field out"},
		"a deadline of no unit":      {rows(`{"from":"A","event":"e","to":"A","within":@"60"}`), "transitions[0].within", `want a duration such as "1m30s" and not zero, found "60"`},
		"a deadline of zero":         {rows(`{"from":"A","event":"e","to":"A","within":@"0s"}`), "transitions[0].within", `want a duration such as "1m30s" and not zero, found "0s"`},
		"a row of a negative number": {rows(`@{"from":"A","event":"e","to":"A","row":-1}`), "transitions[0].row", "a negative number"},
		"a row of a fraction":        {rows(`{"from":"A","event":"e","to":"A","row":@1.5}`), "transitions[0].row", "want a whole number, found the number 1.5"},
		"a row of a huge number":     {rows(`{"from":"A","event":"e","to":"A","row":@1e999}`), "transitions[0].row", "want a whole number, found the number 1e999"},
		"a code of a huge number":    {`{"states":[{"code":@99999999999999999999}]}`, "states[0].code", "want a whole number, found the number 99999999999999999999"},
		"a cell of one":              {`{"illegal":[@["A"]]}`, "illegal[0]", "want 2 elements, found 1"},
		"a cell of three":            {`{"illegal":[["A","e"],@["A","e",{}]]}`, "illegal[1]", "want 2 elements, found 3"},
		"a cell of numbers":          {`{"illegal":[["A",@1]]}`, "illegal[0][1]", "want a string, found the number 1"},

		"a name too long":         {`{"name":@"` + long + `"}`, "name", "a string of 257 bytes, more than 256"},
		"a note too long":         {`{"notes":["",@"` + text + `"]}`, "notes[1]", "a string of 65537 bytes, more than 65536"},
		"a source too long":       {`{"source":@{"x":"` + text + `"}}`, "source", "an object of 65545 bytes, more than 65536"},
		"too many fields":         {`{"x":{` + numbered(256, `"%d":0,`) + `@"256":0}}`, "x.256", "an object of more than 256 fields"},
		"too many states":         {`{"states":[` + numbered(4096, `{"name":"%d","kind":"final"},`) + `@{"name":"A","kind":"final"}],"name":"m","transitions":[]}`, "states[4096]", "more than 4096 states"},
		"too many events":         {head + numbered(4096, `{"from":"A","event":"%d","to":"A"},`) + `@{"from":"A","event":"z","to":"A"}]}`, "transitions[4096]", "more than 4096 events"},
		"too many illegal events": {`@{"name":"m","states":[],"transitions":[],"illegal":[` + numbered(4096, `["A","%d"],`) + `["A","z"]]}`, "illegal[4096]", "more than 4096 events"},
		"too many actors":         {`@{"name":"m","states":[],"transitions":[],"actors":[` + numbered(1024, `"%d",`) + `"z"]}`, "actors", "more than 1024 actors"},
		"too many actors of rows": {`{"actors":[],` + head[1:] + numbered(1024, `{"from":"A","event":"e","actor":"%d","to":"A"},`) + `@{"from":"A","event":"e","actor":"z","to":"A"}]}`, "transitions[1024]", "more than 1024 actors"},
		"too many rows":           {head + strings.Repeat(plain+",", 65536) + `@` + plain + `]}`, "transitions[65536]", "more than 65536 rows"},
		"too many names":          {head + numbered(4096, `{"from":"A","event":"e","to":"%d"},`) + `@{"from":"A","event":"e","to":"z"}]}`, "transitions[4096]", "more than 4096 states that are not declared"},
		"too many notes":          {`{"notes":[` + strings.Repeat(`"",`, 8192) + `@""]}`, "notes[8192]", "more than 8192 elements"},

		"brackets and brackets": {`{"x":` + strings.Repeat("[", 31) + "@" + strings.Repeat("[", 1<<20), "x" + strings.Repeat("[0]", 31), "nested more than 32 deep"},
		"braces and braces":     {strings.Repeat(`{"a":`, 32) + `@` + strings.Repeat(`{"a":`, 1<<18), strings.Repeat("a.", 31) + "a", "nested more than 32 deep"},
		"brackets first":        {"@" + strings.Repeat("[", 1<<20), "", "want an object, found an array"},
		"a million empty rows":  {head + "@" + strings.Repeat("{},", 1e6) + "{}]}", "transitions[0].from", "missing"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before, after, found := strings.Cut(test.document, "@")
			require.True(t, found)
			line := 1 + strings.Count(before, "\n")
			column := len(before) - strings.LastIndex(before, "\n")
			require.Equal(t, &fsm.DocumentError{
				Path: test.path, Offset: int64(len(before)), Line: line, Column: column, Text: test.text,
			}, refusal(t, before+after))
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
func TestHostileTypes(t *testing.T) {
	values := map[string]string{
		"null": `null`, "true": `true`, "the number 1.5": `1.5`, "a string": `"\u0000"`, "an array": `[]`, "an object": `{}`,
	}
	const (
		table      = `{%s}`
		state      = `{"states":[{%s}]}`
		transition = `{"transitions":[{%s}]}`
	)
	fields := []struct{ form, path, key, want, found string }{
		{table, "", "name", "a string", "a string"},
		{table, "", "title", "a string", "a string"},
		{table, "", "schema", "a string", "a string"},
		{table, "", "confidence", "a string", "a string"},
		{table, "", "initial", "a string", "a string"},
		{table, "", "initials", "an array", "an array"},
		{table, "", "actors", "an array", "an array"},
		{table, "", "states", "an array", "an array"},
		{table, "", "transitions", "an array", "an array"},
		{table, "", "illegal", "an array", "an array"},
		{table, "", "source", "an object", "an object"},
		{table, "", "notes", "an array", "an array"},
		{table, "", "known_anomalies", "an array", "an array"},
		{state, "states[0].", "name", "a string", "a string"},
		{state, "states[0].", "kind", "a string", "a string"},
		{state, "states[0].", "absent", "true or false", "true"},
		{state, "states[0].", "target", "a string", "a string"},
		{state, "states[0].", "manual", "a string", "a string"},
		{state, "states[0].", "on_owner_death", "a string", "a string"},
		{state, "states[0].", "code", "a whole number", "no value"},
		{state, "states[0].", "note", "a string", "a string"},
		{transition, "transitions[0].", "from", "a string", "a string"},
		{transition, "transitions[0].", "event", "a string", "a string"},
		{transition, "transitions[0].", "actor", "a string", "a string"},
		{transition, "transitions[0].", "actors", "an array", "an array"},
		{transition, "transitions[0].", "to", "a string", "a string"},
		{transition, "transitions[0].", "guard", "a string", "a string"},
		{transition, "transitions[0].", "return", "true or false", "true"},
		{transition, "transitions[0].", "ignore", "true or false", "true"},
		{transition, "transitions[0].", "any", "true or false", "true"},
		{transition, "transitions[0].", "except", "an array", "an array"},
		{transition, "transitions[0].", "origin", "an array", "an array"},
		{transition, "transitions[0].", "forced", "true or false", "true"},
		{transition, "transitions[0].", "supersede", "true or false", "true"},
		{transition, "transitions[0].", "within", "a string", "a string"},
		{transition, "transitions[0].", "action", "a string", "a string"},
		{transition, "transitions[0].", "section", "a string", "a string"},
		{transition, "transitions[0].", "note", "a string", "a string"},
		{transition, "transitions[0].", "row", "a whole number", "no value"},
	}
	for _, f := range fields {
		for found, value := range values {
			if found == f.found {
				continue
			}
			document := fmt.Sprintf(f.form, fmt.Sprintf(`"%s":%s`, f.key, value))
			de := refusal(t, document)
			require.Equal(t, f.path+f.key, de.Path, document)
			require.Equal(t, fmt.Sprintf("want %s, found %s", f.want, found), de.Text, document)
			require.EqualValues(t, strings.Index(document, value), de.Offset, document)
		}
		if f.want == "an array" && f.key != "states" && f.key != "transitions" && f.key != "illegal" {
			de := refusal(t, fmt.Sprintf(f.form, fmt.Sprintf(`"%s":["x",7]`, f.key)))
			require.Equal(t, f.path+f.key+"[1]", de.Path)
			require.Equal(t, "want a string, found the number 7", de.Text)
		}
	}
}

// Transitions of one row agree in everything but the source.
func TestHostileRows(t *testing.T) {
	const base = `"event":"e","to":"B"`
	for _, other := range []string{
		`"event":"f","to":"B"`, `"event":"e","to":"A"`, `"event":"e","return":true`, `"event":"e","ignore":true`,
		base + `,"actor":"a"`, base + `,"actors":["a","b"]`, base + `,"guard":"g"`, base + `,"any":true`,
		base + `,"except":["A"]`, base + `,"origin":["A"]`, base + `,"forced":true`, base + `,"supersede":true`,
		base + `,"within":"1s"`, base + `,"action":"x"`, base + `,"section":"x"`, base + `,"note":"x"`,
	} {
		document := head + `{"from":"A","row":3,` + base + `},` + plain + `,{"row":3,"from":"B",` + other + `}]}`
		de := refusal(t, document)
		require.Equal(t, "transitions[2]", de.Path, other)
		require.Equal(t, "differs in more than the source from the transition before it in row 3", de.Text)
		require.EqualValues(t, strings.LastIndex(document, `{"row"`), de.Offset)
	}
}

// Every document that was cut off is refused, wherever it was cut.
func TestHostileEnds(t *testing.T) {
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

func TestNestingIsLimitedNotForbidden(t *testing.T) {
	deep := strings.Repeat("[", fsm.MaxNesting-1) + strings.Repeat("]", fsm.MaxNesting-1)
	parsed(t, `{"name":"m","states":[],"transitions":[],"x":`+deep+`}`)
}

// What a document costs is bounded by a multiple of its size, and a document that
// is over the limit costs nothing.
func TestHostileSizes(t *testing.T) {
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
		"one line of 10 MB":        {`{"name":"` + strings.Repeat("x", 10e6) + `"}`, false, 1 << 20},
		"a million rows":           {rows + strings.Repeat(`{"from":"A","event":"e","to":"A"},`, 1e6) + `]}`, false, 1 << 20},
		"brackets":                 {`{"x":` + strings.Repeat("[", fsm.MaxDocument-5), false, 1 << 20},
		"numbers nobody asked for": {fill(`{"x":[`, `1`, `]}`), false, 100 * many},
		"texts nobody asked for":   {fill(`{"x":[`, `""`, `]}`), false, 100 * many},
		"one row of many sources":  {fill(rows, `{"from":"A","event":"e","to":"A","row":1}`, `]}`), true, 100 * many},
		"many empty notes":         {fill(`{"notes":[`, `""`, `]}`), false, 4 << 20},
		"a long list":              {fill(rows+`{"except":[`, `"A"`, `]}]}`), false, 4 << 20},
		"illegal cells":            {fill(`{"illegal":[`, `["A","e"]`, `]}`), false, 100 * many},
		"one text":                 {`{"x":"` + strings.Repeat("x", fsm.MaxDocument-8) + `"}`, false, 20 * fsm.MaxDocument},
		"one key":                  {`{"` + strings.Repeat("x", fsm.MaxDocument-6) + `":1}`, false, 20 * fsm.MaxDocument},
		"one number":               {`{"x":` + strings.Repeat("1", fsm.MaxDocument-6) + `}`, false, 20 * fsm.MaxDocument},
		"spaces":                   {`{` + strings.Repeat(" ", fsm.MaxDocument-2) + `}`, false, 20 * fsm.MaxDocument},
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

// endless gives spaces for ever and counts them.
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
	require.Equal(t, fsm.MaxDocument+1, r.n, "no more than it takes to see that it is too much")

	table, err = fsm.ReadTable(iotest.ErrReader(io.ErrClosedPipe))
	require.Nil(t, table)
	require.ErrorIs(t, err, io.ErrClosedPipe)
	require.NotErrorIs(t, err, fsm.ErrInvalid, "of the document nothing is known")
	require.EqualError(t, err, "fsm: reading a table: io: read/write on closed pipe")
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestWriteTableToFullDisk(t *testing.T) {
	err := fsm.WriteTable(fullDisk{}, lift(t).Table())
	require.ErrorIs(t, err, io.ErrShortWrite)
	require.EqualError(t, err, "fsm: writing a table: short write")
}
