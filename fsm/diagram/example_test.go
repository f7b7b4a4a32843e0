package diagram_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/diagram"
)

type load struct{ tons int }

var lightEnough = fsm.When("light enough", func(_ context.Context, _, l *load) error {
	if l.tons > 10 {
		return errors.New("too heavy")
	}
	return nil
})

var cranes = fsm.Must[load](fsm.Spec[string, string]{
	Name: "crane", Initial: "Idle", Actors: []fsm.Actor{"user", "worker"},
	States: []fsm.State[string]{
		{Name: "Idle"},
		{Name: "Moving", Kind: fsm.Transitional, Doc: "the load is in the air"},
		{Name: "Broken", Kind: fsm.Failed},
		{Name: "Scrapped", Kind: fsm.Final},
	},
	Rows: fsm.Rows(
		fsm.Move("Idle", "Lift", "Moving").By("user").If(lightEnough),
		fsm.Return[string]("Moving", "Arrived").By("worker"),
		fsm.Move("Moving", "Lost", "Broken").After(5*time.Minute).Note("the worker does not answer"),
		fsm.Ignore[string]("Idle", "Arrived").By("worker").Note("a report that came twice"),
		fsm.Move("Broken", "Repair", "Idle").By("user").OnlyForced(),
		fsm.FromAny("Scrap", "Scrapped").Excluding("Moving"),
	),
})

func ExampleMermaid() {
	fmt.Print(diagram.Mermaid(cranes.Table(), nil))
	// Output:
	// ---
	// title: "dashed: transitional, red: failed, thick border: final"
	// ---
	// stateDiagram-v2
	//     direction TB
	//     state "Idle" as s0
	//     state "Moving" as s1
	//     state "Broken" as s2
	//     state "Scrapped" as s3
	//     [*] --> s0
	//     s0 --> s1 : Lift by user [light enough]
	//     s1 --> s0 : Arrived by worker, return
	//     s1 --> s2 : Lost by sweeper after 5m
	//     s2 --> s0 : Repair by user, forced
	//     s0 --> s3 : Scrap by any actor
	//     s2 --> s3 : Scrap by any actor
	//     classDef transitional stroke-dasharray:5 4
	//     class s1 transitional
	//     classDef failed fill:#fde0dc,stroke:#c0392b,color:#7b241c
	//     class s2 failed
	//     classDef final stroke-width:4px
	//     class s3 final
}

func ExampleDOT() {
	fmt.Print(diagram.DOT(cranes.Table(), nil))
	// Output:
	// digraph "crane" {
	//	rankdir=TB nodesep=0.15 ranksep=0.3
	//	node [height=0.4 shape=box style="rounded,filled" fillcolor=white fontname="Helvetica"]
	//	edge [fontname="Helvetica" fontsize=10]
	//	s0 [label="Idle"]
	//	s1 [label="Moving" style="rounded,filled,dashed"]
	//	s2 [label="Broken" color="#c0392b" fillcolor="#fde0dc" fontcolor="#7b241c"]
	//	s3 [label="Scrapped" peripheries=2]
	//	start0 [shape=point fillcolor=black width=0.15]
	//	start0 -> s0
	//	s0 -> s1 [label=" Lift [light enough] \n by user "]
	//	s1 -> s0 [label=" Arrived, return \n by worker " style=dashed]
	//	s1 -> s2 [label=" Lost after 5m \n by sweeper "]
	//	s2 -> s0 [label=" Repair, forced \n by user " color="#c0392b" fontcolor="#c0392b"]
	//	s0 -> s3 [label=" Scrap \n by any actor "]
	//	s2 -> s3 [label=" Scrap \n by any actor "]
	//	graph [label="dashed: transitional, red: failed, double border: final, dashed arrow: return, red arrow: forced" fontname="Helvetica" fontsize=10]
	// }
}

func ExampleMarkdown() {
	fmt.Print(diagram.Markdown(cranes.Table(), nil))
	// Output:
	// | State | Kind | Timeout | Notes |
	// | --- | --- | --- | --- |
	// | Idle | stable, initial |  |  |
	// | Moving | transitional | 5m, Lost | the load is in the air |
	// | Broken | failed |  |  |
	// | Scrapped | final |  |  |
	//
	// | From | Event | Actor | Guard | To | Notes |
	// | --- | --- | --- | --- | --- | --- |
	// | Idle | Lift | user | light enough | Moving |  |
	// | Moving | Arrived | worker |  | back to the origin |  |
	// | Moving | Lost | sweeper |  | Broken | after 5m; the worker does not answer |
	// | Idle | Arrived | worker |  | ignored | a report that came twice |
	// | Broken | Repair | user |  | Idle | forced |
	// | any state but Moving | Scrap | any actor |  | Scrapped |  |
}

func ExampleText() {
	fmt.Print(diagram.Text(cranes.Table(), nil))
	// Output:
	// | State    | Kind            | Timeout  | Notes |
	// | -------- | --------------- | -------- | ----- |
	// | Idle     | stable, initial |          |       |
	// | Moving   | transitional    | 5m, Lost | [1]   |
	// | Broken   | failed          |          |       |
	// | Scrapped | final           |          |       |
	//
	// | From                | Event   | Actor     | Guard        | To                 | Notes        |
	// | ------------------- | ------- | --------- | ------------ | ------------------ | ------------ |
	// | Idle                | Lift    | user      | light enough | Moving             |              |
	// | Moving              | Arrived | worker    |              | back to the origin |              |
	// | Moving              | Lost    | sweeper   |              | Broken             | after 5m [2] |
	// | Idle                | Arrived | worker    |              | ignored            | [3]          |
	// | Broken              | Repair  | user      |              | Idle               | forced       |
	// | any state but       | Scrap   | any actor |              | Scrapped           |              |
	// | Moving              |         |           |              |                    |              |
	//
	// [1] the load is in the air
	// [2] the worker does not answer
	// [3] a report that came twice
}

// A picture of a running service: how many objects each state has.
func ExampleConfig_labels() {
	door := fsm.Must[struct{}](fsm.Spec[string, string]{
		Name: "door", Initial: "open", Actors: []fsm.Actor{"user"},
		States: []fsm.State[string]{{Name: "open"}, {Name: "closed"}},
		Rows:   fsm.Rows(fsm.Move("open", "close", "closed"), fsm.Move("closed", "open", "open")),
	})
	fmt.Print(diagram.Mermaid(door.Table(), &diagram.Config{Labels: map[string]string{"open": "3 doors"}}))
	// Output:
	// stateDiagram-v2
	//     direction TB
	//     state "open<br/>3 doors" as s0
	//     state "closed" as s1
	//     [*] --> s0
	//     s0 --> s1 : close by any actor
	//     s1 --> s0 : open by any actor
}
