package history_test

import (
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/history"
)

const doors = `{
 "name": "door", "initial": "closed",
 "states": [
  {"name": "closed", "kind": "stable"},
  {"name": "opening", "kind": "transitional", "target": "open"},
  {"name": "open", "kind": "stable"},
  {"name": "jammed", "kind": "error"}
 ],
 "transitions": [
  {"from": "closed", "event": "open", "actor": "user", "to": "opening"},
  {"from": "opening", "event": "done", "actor": "motor", "to": "open", "guard": "free"},
  {"from": "opening", "event": "done", "actor": "motor", "to": "jammed"},
  {"from": "open", "event": "close", "actor": "user", "to": "closed"}
 ]
}`

func ExampleCheck() {
	table, err := fsm.ParseTable([]byte(doors))
	if err != nil {
		fmt.Println(err)
		return
	}
	rows := `
{"id": "front", "sequence": 1, "to": "closed", "at": "2026-01-02T08:00:00Z"}
{"id": "front", "sequence": 2, "from": "closed", "to": "opening", "event": "open", "actor": "user", "at": "2026-01-02T08:00:01Z"}
{"id": "back",  "sequence": 1, "to": "closed"}
{"id": "front", "sequence": 3, "from": "opening", "to": "open", "event": "done", "actor": "user", "at": "2026-01-02T08:00:09Z"}
{"id": "front", "sequence": 5, "from": "closed", "to": "opening", "event": "open", "actor": "user", "at": "2026-01-02T07:00:00Z"}
{"id": "back",  "sequence": 2, "from": "closed", "to": "open", "event": "open", "actor": "user"}
{"id": "back",  "sequence": 3
`
	tables := []history.TableVersion{{Table: table}}
	sum, err := history.Check(history.Read(strings.NewReader(rows)), tables, nil)
	fmt.Println(sum, err)

	// A feed that skips rows: what is missing is counted.
	sum, err = history.Check(history.Read(strings.NewReader(rows)), tables, &history.Config{Gaps: true})
	fmt.Println(sum.Missing, sum.Counts, err)
	// Output:
	// 6 rows of 2 objects: 5 findings
	// line 5 "front" #3: wrong-actor: opening -done-> open by user; expected motor, not user
	// line 6 "front" #5: skipped-sequence: number 5 follows 3; expected 4
	// line 6 "front" #5: time-backwards: the row is of 2026-01-02T07:00:00Z; expected no time before 2026-01-02T08:00:09Z
	// line 7 "back" #2: illegal-step: closed -open-> open by user; expected closed -open-> opening
	// line 8: unreadable: unexpected end of JSON input; expected a JSON object in the form of history.Read <nil>
	// 1 map[illegal-step:1 time-backwards:1 unreadable:1 wrong-actor:1] <nil>
}
