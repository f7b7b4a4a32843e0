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

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/history"
	"github.com/interlock-go/interlock/fsm/internal/tabletest"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// FuzzRead requires that every row has the mandatory fields, and that every error is a
// LineError.
func FuzzRead(f *testing.F) {
	for _, c := range lineCases {
		f.Add([]byte(c.line))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		last := 0
		for row, err := range history.Read(iotest.HalfReader(bytes.NewReader(data))) {
			require.Greater(t, row.Line, last)
			last = row.Line
			if err != nil {
				require.ErrorContains(t, err, "history: read line ")
				require.Equal(t, history.Row{Line: last}, row)
				continue
			}
			require.NotEmpty(t, row.ID)
			require.LessOrEqual(t, len(row.ID), history.MaxID)
			require.NotEmpty(t, row.To)
		}
		require.LessOrEqual(t, last, bytes.Count(data, []byte("\n"))+1)
	})
}

var lineCases = []struct {
	name, line string
	want       *history.Row // nil: unreadable
}{
	{"least", `{"id":"a","to":"B"}`, &history.Row{ID: "a", To: "B"}},
	{
		"every field",
		`{"machine":"vm","id":"v1","version":"2","sequence":7,"operation":3,"from":"A","fromOrigin":"A","to":"B","origin":"A","event":"go","actor":"user","at":"2026-01-02T15:04:05Z"}`,
		&history.Row{
			Machine: "vm", ID: "v1", Version: "2", Sequence: 7, Operation: 3, From: "A", FromOrigin: "A", To: "B", Origin: "A",
			Event: "go", Actor: "user", At: time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC),
		},
	},
	{"spaces", ` { "id" : "a" , "to" : "B" } ` + "\r", &history.Row{ID: "a", To: "B"}},
	{"other fields", `{"id":"a","to":"B","x":{"id":"b","y":[1,"}"]}}`, &history.Row{ID: "a", To: "B"}},
	{"null", `{"id":"a","to":"B","from":null,"at":null,"sequence":null}`, &history.Row{ID: "a", To: "B"}},
	{"greatest number", `{"id":"a","to":"B","sequence":18446744073709551615}`, &history.Row{ID: "a", To: "B", Sequence: 1<<64 - 1}},
	{"escapes", `{"id":"a\tb","to":"\ud83d\ude00"}`, &history.Row{ID: "a\tb", To: "😀"}},
	{"no object", `[]`, nil},
	{"no JSON", `{id:"a","to":"B"}`, nil},
	{"cut off", `{"id":"a","to":"`, nil},
	{"text after the object", `{"id":"a","to":"B"}x`, nil},
	{"no id", `{"to":"B"}`, nil},
	{"no to", `{"id":"a","to":null}`, nil},
	{"number as id", `{"id":1,"to":"B"}`, nil},
	{"negative number", `{"id":"a","to":"B","sequence":-1}`, nil},
	{"too great a number", `{"id":"a","to":"B","sequence":18446744073709551616}`, nil},
	{"no time", `{"id":"a","to":"B","at":"yesterday"}`, nil},
	{"not UTF-8", "{\"id\":\"\xff\",\"to\":\"B\"}", nil},
	{"byte order mark", "\ufeff{\"id\":\"a\",\"to\":\"B\"}", nil},
	{"long id", `{"id":"` + strings.Repeat("x", history.MaxID+1) + `","to":"B"}`, nil},
}

func TestRead(t *testing.T) {
	for _, test := range lineCases {
		t.Run(test.name, func(t *testing.T) {
			rows := 0
			for row, err := range history.Read(strings.NewReader("\n" + test.line)) {
				rows++
				if test.want == nil {
					require.ErrorContains(t, err, "history: read line 2: ")
					continue
				}
				require.NoError(t, err)
				want := *test.want
				want.Line = 2
				require.Equal(t, want, row)
			}
			require.Equal(t, 1, rows)
		})
	}
}

// Editors that write a byte order mark do not show it. The error names it.
func TestReadByteOrderMark(t *testing.T) {
	for _, err := range history.Read(strings.NewReader("\ufeff{}")) {
		require.EqualError(t, err, "history: read line 1: a byte order mark: save the history as UTF-8 without one")
	}
}

func TestReadLongLines(t *testing.T) {
	long := `{"id":"a","to":"B","x":"` + strings.Repeat("x", history.MaxLine) + `"}`
	good := `{"id":"a","to":"B","x":"` + strings.Repeat("x", history.MaxLine-100) + `"}`
	var got []string
	for row, err := range history.Read(iotest.OneByteReader(strings.NewReader(strings.Join([]string{long, good, "", good, long}, "\n")))) {
		if err != nil {
			row.To = err.Error()
		}
		got = append(got, fmt.Sprint(row.Line, " ", row.To))
	}
	require.Equal(t, []string{
		"1 history: read line 1: more than 262144 bytes", "2 B", "4 B", "5 history: read line 5: more than 262144 bytes",
	}, got)
}

func TestReadEnds(t *testing.T) {
	line := lineCases[0].line
	lost := errors.New("connection lost")
	var last error
	rows := 0
	for _, err := range history.Read(io.MultiReader(strings.NewReader(line+"\n{"), iotest.ErrReader(lost))) {
		rows++
		last = err
	}
	require.Equal(t, 2, rows, "Read does not judge the line that was cut off")
	require.ErrorIs(t, last, lost)

	for range history.Read(strings.NewReader(strings.Repeat(line+"\n", 3))) {
		break
	}
}

// feed generates JSON lines of a number of rows while they are read. A fixed number of
// objects is alive at a time.
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
	text, err := json.Marshal(row)
	if err != nil {
		panic(err)
	}
	return append(append(b, text...), '\n')
}

// The memory of Check grows with the objects that are alive, and not with the length of
// the history.
func TestCheckMemoryAlloc(t *testing.T) {
	if !tabletest.Full {
		t.Skip("judged without the race detector")
	}
	defer history.KeepEnded(100)()
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
		}, []history.TableVersion{{Table: table}}, nil)
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

// BenchmarkCheck reads and checks a million rows of 10,000 objects at a time.
func BenchmarkCheck(b *testing.B) {
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
