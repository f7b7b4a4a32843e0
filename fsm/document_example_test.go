package fsm_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/interlock-go/interlock/fsm"
)

const gate = `{
 "name": "gate",
 "schema": "lifecycle-table/1",
 "initial": "shut",
 "states": [
  {"name": "shut", "kind": "stable"},
  {"name": "opening", "kind": "transitional", "target": "open", "manual": "the operator"},
  {"name": "open", "kind": "stable"}
 ],
 "transitions": [
  {"from": "shut", "event": "open", "actor": "user", "to": "opening", "guard": "has a key"},
  {"from": "opening", "event": "done", "actor": "motor", "to": "open"},
  {"from": "opening", "event": "jammed", "actor": "motor", "return": true},
  {"from": "open", "event": "shut", "to": "shut"}
 ]
}`

// Bind gives the guards of the table their code.
func ExampleParseTable() {
	type visitor struct{ key bool }
	table, err := fsm.ParseTable([]byte(gate))
	if err != nil {
		fmt.Println(err)
		return
	}
	gates, err := fsm.Bind[visitor, string, string](table,
		fsm.When("has a key", func(_ context.Context, _, v *visitor) error {
			if !v.key {
				return errors.New("no key")
			}
			return nil
		}))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(gates.Can(context.Background(), gates.Start(), "open", "user", &visitor{}))
	fmt.Println(gates.Can(context.Background(), gates.Start(), "open", "user", &visitor{key: true}))
	// Output:
	// fsm: refused by a guard: gate: open in shut by user: has a key: no key
	// <nil>
}

// A table with faults is read, and reports them.
func ExampleReadTable() {
	table, err := fsm.ReadTable(strings.NewReader(`{
		"name": "lamp", "initial": "off",
		"states": [{"name": "off", "kind": "stable"}, {"name": "on", "kind": "stable"}],
		"transitions": [{"from": "off", "event": "press", "actor": "user", "to": "on"}]
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range table.Problems() {
		fmt.Println(p)
	}
	// Output:
	// state on: no row leads out, and it is neither final nor absent
}

func ExampleDocumentError() {
	_, err := fsm.ParseTable([]byte(strings.Replace(gate, `"actor": "motor"`, `"actor": 7`, 1)))
	fmt.Println(err)
	if de, ok := errors.AsType[*fsm.DocumentError](err); ok {
		fmt.Println(de.Path, de.Line, errors.Is(err, fsm.ErrInvalid))
	}
	// Output:
	// fsm: invalid table: transitions[1].actor: want a string, found 7 (line 12, column 49, offset 413)
	// transitions[1].actor 12 true
}

func ExampleWriteTable() {
	lamps := fsm.Must[struct{}](fsm.Spec[string, string]{
		Name: "lamp", Initial: "off", Actors: []fsm.Actor{"user", "fuse"},
		States: []fsm.State[string]{{Name: "off"}, {Name: "on"}, {Name: "broken", Kind: fsm.Final}},
		Rows: fsm.Rows(
			fsm.Move("off", "press", "on").By("user"),
			fsm.Move("on", "press", "off").By("user"),
			fsm.FromAny("blow", "broken").By("fuse").Note("in both states"),
		),
	})
	if err := fsm.WriteTable(os.Stdout, lamps.Table()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// {
	//  "name": "lamp",
	//  "schema": "lifecycle-table/1",
	//  "initial": "off",
	//  "actors": ["user","fuse"],
	//  "states": [
	//   {"name":"off","kind":"stable"},
	//   {"name":"on","kind":"stable"},
	//   {"name":"broken","kind":"final"}
	//  ],
	//  "transitions": [
	//   {"from":"off","event":"press","actor":"user","to":"on"},
	//   {"from":"on","event":"press","actor":"user","to":"off"},
	//   {"from":"off","event":"blow","actor":"fuse","to":"broken","note":"in both states","any":true,"row":2},
	//   {"from":"on","event":"blow","actor":"fuse","to":"broken","note":"in both states","any":true,"row":2}
	//  ]
	// }
}
