package history_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/history"
	"github.com/interlock-go/interlock/fsm/internal/tabletest"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// line is the documented form as encoding/json sees it.
type line struct {
	Machine    string    `json:"machine"`
	ID         string    `json:"id"`
	Version    string    `json:"version"`
	Sequence   uint64    `json:"sequence"`
	Operation  uint64    `json:"operation"`
	From       string    `json:"from"`
	FromOrigin string    `json:"fromOrigin"`
	To         string    `json:"to"`
	Origin     string    `json:"origin"`
	Event      string    `json:"event"`
	Actor      fsm.Actor `json:"actor"`
	At         time.Time `json:"at"`
}

// readLine reads a line by encoding/json, naively: what is said once is said, and
// in these letters only.
func readLine(data []byte) (row history.Row, ok bool) {
	if len(data) > history.MaxLine || !utf8.Valid(data) {
		return row, false
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil || fields == nil {
		return row, false
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	seen, depth, key := map[string]int{}, 0, false
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		switch tok := tok.(type) {
		case json.Delim:
			if tok == '{' || tok == '[' {
				depth++
				key = depth == 1
				continue
			}
			depth--
		case string:
			if depth == 1 && key {
				seen[tok]++
				key = false
				continue
			}
		}
		key = depth == 1 // a value has ended
	}
	var l line
	for name, into := range map[string]any{
		"machine": &l.Machine, "id": &l.ID, "version": &l.Version, "sequence": &l.Sequence, "operation": &l.Operation,
		"from": &l.From, "fromOrigin": &l.FromOrigin, "to": &l.To, "origin": &l.Origin, "event": &l.Event,
		"actor": &l.Actor, "at": &l.At,
	} {
		raw, there := fields[name]
		if seen[name] > 1 || there && json.Unmarshal(raw, into) != nil {
			return row, false
		}
	}
	row = history.Row{
		Machine: l.Machine, ID: l.ID, Version: l.Version, Sequence: l.Sequence, Operation: l.Operation, From: l.From,
		FromOrigin: l.FromOrigin, To: l.To, Origin: l.Origin, Event: l.Event, Actor: l.Actor, At: l.At,
	}
	return row, l.ID != "" && l.To != "" && len(l.ID) <= history.MaxID
}

// Whatever the lines are: what the reader gives is what encoding/json finds in
// each, and nothing of one line gets into the next.
func FuzzReadHistory(f *testing.F) {
	for _, seed := range hostileLines {
		f.Add([]byte(seed))
	}
	f.Add([]byte(strings.Join(hostileLines, "\n")))
	f.Fuzz(func(t *testing.T, data []byte) {
		if bytes.Contains(data, []byte(`\u`)) || bytes.Contains(data, []byte(`\U`)) {
			data = bytes.ReplaceAll(data, []byte(`\u`), nil) // a surrogate alone is refused here, and replaced there
		}
		lines := bytes.Split(data, []byte("\n"))
		at := 0
		for row, err := range history.Read(iotest.HalfReader(bytes.NewReader(data))) {
			for at < len(lines) && len(bytes.TrimLeft(lines[at], " \t\r")) == 0 {
				at++
			}
			require.Less(t, at, len(lines))
			want, ok := readLine(lines[at])
			at++
			require.Equal(t, at, row.Line)
			require.Equal(t, ok, err == nil, "line %d %q: %v", at, lines[at-1], err)
			if !ok {
				require.ErrorIs(t, err, history.ErrLine)
				require.Equal(t, history.Row{Line: at}, row)
				continue
			}
			want.Line = at
			require.Equal(t, want, row)
		}
		for ; at < len(lines); at++ {
			require.Empty(t, bytes.TrimLeft(lines[at], " \t\r"), "a line that was not read")
		}
	})
}

var hostileLines = []string{
	`{"id":"a","to":"B"}`,
	`{"machine":"vm","id":"v1","version":"2","sequence":7,"operation":3,"from":"A","fromOrigin":"A","to":"B","origin":"A","event":"go","actor":"user","at":"2026-01-02T15:04:05Z"}`,
	` { "id" : "a" , "to" : "B" } ` + "\r",
	`{"id":"a","to":"B",}`, `{,}`, `{}`, `{"id":"a"}`, `{"to":"a"}`, `[]`, `null`, `""`, `7`, `{`, `}`, `{"id"`, `{"id":`, `{"id":"`, `{"id":"\`,
	`{"id":"a","to":"B"}}`, `{"id":"a","to":"B"} {"id":"a","to":"B"}`, `{"id":"a","to":"B"}x`,
	`{"id":"a","id":"b","to":"B"}`, `{"id":null,"id":"b","to":"B"}`, `{"id":"a","to":"B","x":1,"x":2}`,
	`{"ID":"a","To":"B"}`, `{"id":1,"to":"B"}`, `{"id":"a","to":null}`, `{"id":"a","to":"B","from":null,"at":null,"sequence":null}`,
	`{"id":"a","to":"B","sequence":-1}`, `{"id":"a","to":"B","sequence":1.5}`, `{"id":"a","to":"B","sequence":1e3}`,
	`{"id":"a","to":"B","sequence":18446744073709551615}`, `{"id":"a","to":"B","sequence":18446744073709551616}`,
	`{"id":"a","to":"B","sequence":007}`, `{"id":"a","to":"B","sequence":0}`, `{"id":"a","to":"B","sequence":"1"}`, `{"id":"a","to":"B","sequence":}`,
	`{"id":"a","to":"B","at":"yesterday"}`, `{"id":"a","to":"B","at":"2026-13-02T15:04:05Z"}`, `{"id":"a","to":"B","at":1}`,
	`{"id":"a","to":"B","x":{"id":"b","y":[1,"}",{"z":"]"}]}}`, `{"id":"a","to":"B","x":[[[[[[]]]]]]}`, `{"id":"a","to":"B","x":nul}`,
	`{"id":"a","to":"B","x":{"y":}}`, `{"id":"a","to":"B","x":[1,]}`, `{"id":"a","to":"B","x":1 2}`, `{"id":"a","to":"B","x":}`,
	`{"id":"a\tb","to":"B\\\"\/\b\f\n\r"}`, `{"id":"a` + "\t" + `","to":"B"}`, `{"id":"a\x","to":"B"}`, "{\"id\":\"\xff\",\"to\":\"B\"}",
	`{"i\u0064":"a","\u0074o":"\ud83d\ude00"}`, `{"id":"\ud83d","to":"B"}`, `{"id":"\ufffd` + "\ufffd" + `","to":"B"}`,
	`{"":"a","id":"a","to":"B"}`, `{"id" "a","to":"B"}`, `{"id":"a" "to":"B"}`, `{id:"a","to":"B"}`, `{'id':'a','to':'B'}`,
}

func TestHostileLines(t *testing.T) {
	for _, text := range hostileLines {
		for row, err := range history.Read(strings.NewReader(text)) {
			want, ok := readLine([]byte(text))
			if strings.Contains(text, `"\ud83d"`) {
				ok = false // encoding/json replaces it
			}
			require.Equal(t, ok, err == nil, "%s: %v", text, err)
			if want.Line = 1; ok {
				require.Equal(t, want, row, text)
			}
		}
	}
	long := `{"id":"a","to":"B","x":"` + strings.Repeat("x", history.MaxLine) + `"}`
	id := `{"id":"` + strings.Repeat("x", history.MaxID+1) + `","to":"B"}`
	deep := `{"id":"a","to":"B","x":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`
	good := `{"id":"a","to":"B","x":"` + strings.Repeat("x", history.MaxLine-100) + `"}`
	var got []string
	for row, err := range history.Read(iotest.OneByteReader(strings.NewReader(strings.Join([]string{long, good, id, deep, "", good, long}, "\n")))) {
		if err != nil {
			row.To = err.Error()
		}
		got = append(got, fmt.Sprint(row.Line, " ", row.To))
	}
	require.Equal(t, []string{
		"1 check: line 1 of the history: more than 262144 bytes",
		"2 B",
		"3 check: line 3 of the history: an id of 1025 bytes, more than 1024",
		"4 check: line 4 of the history: no JSON value at byte 40024",
		"6 B",
		"7 check: line 7 of the history: more than 262144 bytes",
	}, got)

	lost := errors.New("connection lost")
	var last error
	rows := 0
	for _, err := range history.Read(io.MultiReader(strings.NewReader(hostileLines[0]+"\n{"), iotest.ErrReader(lost))) {
		rows++
		last = err
	}
	require.Equal(t, 2, rows, "the line that was cut off is not judged")
	require.ErrorIs(t, last, lost)

	for range history.Read(strings.NewReader(strings.Repeat(hostileLines[0]+"\n", 3))) {
		break // whoever has seen enough may go
	}
}

// feed gives JSON lines of so many rows, made as they are read: objects of a machine
// live and end, so many at a time.
type feed struct {
	w     *walker
	rows  int
	n     int
	alive int
	buf   []byte
	ids   []string
	next  int
}

func newFeed(table *fsm.Table, rows, alive int) *feed {
	seed := uint64(1)
	f := &feed{rows: rows, alive: alive, w: newWalker(table, func(n int) int {
		seed = seed*6364136223846793005 + 1442695040888963407
		return int(seed>>33) % n
	})}
	for range alive {
		f.ids = append(f.ids, f.fresh())
	}
	return f
}

func (f *feed) fresh() string {
	f.next++
	return fmt.Sprintf("object-%08d", f.next)
}

func (f *feed) Read(p []byte) (int, error) {
	for len(f.buf) < len(p) && f.n < f.rows {
		slot := f.n % f.alive
		id := f.ids[slot]
		row, ok := f.w.step(id)
		if ok {
			f.buf = appendLine(f.buf, &row)
			f.n++
		}
		if o := f.w.objects[id]; !ok || !o.exists { // the next one takes its place
			delete(f.w.objects, id)
			f.ids[slot] = f.fresh()
		}
	}
	n := copy(p, f.buf)
	f.buf = append(f.buf[:0], f.buf[n:]...)
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func appendLine(b []byte, row *history.Row) []byte {
	text, err := json.Marshal(line{
		Machine: row.Machine, ID: row.ID, Version: row.Version, Sequence: row.Sequence, Operation: row.Operation, From: row.From,
		FromOrigin: row.FromOrigin, To: row.To, Origin: row.Origin, Event: row.Event, Actor: row.Actor, At: row.At,
	})
	if err != nil {
		panic(err)
	}
	return append(append(b, text...), '\n')
}

// What is kept does not grow with the length of a history, only with the objects
// that are alive.
func TestConformMemoryAlloc(t *testing.T) {
	if !tabletest.Full {
		t.Skip("judged without the race detector")
	}
	table := edgecloud.ClusterInst.Table()
	heap := func(rows, alive int) (bytes uint64, sum *history.Summary) {
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		in := history.Read(newFeed(table, rows, alive))
		n := 0
		sum, err := history.Check(func(yield func(history.Row, error) bool) {
			for row, err := range in {
				if !yield(row, err) {
					return
				}
				if n++; n == rows {
					runtime.GC()
					runtime.ReadMemStats(&after)
				}
			}
		}, []history.TableVersion{{Table: table}}, &history.Config{KeepEnded: 100})
		require.NoError(t, err)
		require.True(t, sum.OK(), sum)
		require.Equal(t, rows, sum.Rows)
		require.LessOrEqual(t, sum.Most, alive)
		if after.HeapAlloc < before.HeapAlloc {
			return 0, sum
		}
		return after.HeapAlloc - before.HeapAlloc, sum
	}
	short, _ := heap(10_000, 50)
	long, sum := heap(100_000, 50)
	require.Greater(t, sum.Objects, 2_000, "objects come and go")
	require.Less(t, long, short+256<<10, "ten times the rows: three bytes each would be more")
	many, sum := heap(100_000, 5_000)
	require.Greater(t, sum.Most, 3_000)
	t.Logf("50 alive: %d KB after 10,000 rows, %d KB after 100,000; %d alive: %d KB", short>>10, long>>10, sum.Most, many>>10)
}

// A row costs its id and nothing else.
func TestConformRowAlloc(t *testing.T) {
	table := edgecloud.ClusterInst.Table()
	text, err := io.ReadAll(newFeed(table, 2_000, 20))
	require.NoError(t, err)
	allocs := testing.AllocsPerRun(5, func() {
		sum, err := history.Check(history.Read(bytes.NewReader(text)), []history.TableVersion{{Table: table}}, nil)
		if err != nil || !sum.OK() {
			t.Fatal(sum, err)
		}
	})
	require.Less(t, allocs/2_000, 1.6, "%v in all", allocs)
}

// BenchmarkConform reads and judges a million rows of 10,000 objects at a time.
func BenchmarkConform(b *testing.B) {
	table := edgecloud.ClusterInst.Table()
	const rows = 1_000_000
	text, err := io.ReadAll(newFeed(table, rows, 10_000))
	require.NoError(b, err)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		sum, err := history.Check(history.Read(bytes.NewReader(text)), []history.TableVersion{{Table: table}}, nil)
		require.NoError(b, err)
		require.True(b, sum.OK(), sum)
		require.Equal(b, rows, sum.Rows)
	}
	b.ReportMetric(rows*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}
