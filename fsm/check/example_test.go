package check_test

import (
	"encoding/json"
	"fmt"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/check"
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

func ExampleAnalyze() {
	table, err := fsm.ParseTable([]byte(doors))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(check.Analyze(table))
	// Output:
	// door: 4 states, 3 events, 2 actors, 4 transitions in 3 of 12 cells
}

func ExampleReport() {
	table, err := fsm.ParseTable([]byte(doors))
	if err != nil {
		fmt.Println(err)
		return
	}
	report := check.Analyze(table)
	fmt.Println(report.Distance["jammed"], report.Eccentricity)
	facts, err := json.Marshal(report.Nondeterministic)
	fmt.Println(string(facts), err)
	// Output:
	// 2 2
	// [{"from":"opening","event":"done","to":["jammed","open"],"unguarded":1,"all_guarded":false}] <nil>
}

func ExampleLint() {
	table, err := fsm.ParseTable([]byte(doors))
	if err != nil {
		fmt.Println(err)
		return
	}
	found := check.Lint(table, &check.LintConfig{Skip: []string{"owner-death:opening"}})
	fmt.Println(found.AtLeast(check.Warning))

	f := found[0]
	text, err := json.Marshal(f)
	fmt.Println(string(text), err)
	// Output:
	// error error-no-exit: no row leads out of the error state jammed. Add a retry, a repair or a deletion, forced if necessary.
	// {"id":"error-no-exit","severity":"error","states":["jammed"],"events":[],"rows":[],"message":"no row leads out of the error state jammed","advice":"Add a retry, a repair or a deletion, forced if necessary."} <nil>
}
