package tabletest

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/fsm"
)

// ParseLines makes a table of lines. States are
//
//	KIND NAME, NAME... [heading T] [dies E] [manual]
//
// with the kinds of the package fsm, and the first is the initial one. Rows are
//
//	A, B -event by x,y-> C [if g] [of D,E] [forced] [within]
//
// where C is a state, "origin" or "ignored". "illegal: A event" is a cell, "table:
// NAME" the name.
func ParseLines(text string) (*fsm.Table, error) {
	d := map[string]any{"name": "t"}
	states, rows, illegal := []any{}, []any{}, []any{}
	list := func(s string) (items []string) {
		for item := range strings.SplitSeq(s, ",") {
			items = append(items, strings.TrimSpace(item))
		}
		return items
	}
	for n, line := range strings.Split(text, "\n") {
		row, arrow, isRow := strings.Cut(line, "-> ")
		first, rest, _ := strings.Cut(line, " ")
		switch {
		case line == "":
		case first == "table:":
			d["name"] = rest
		case first == "illegal:":
			illegal = append(illegal, strings.SplitN(rest, " ", 2))
		case isRow:
			from, event, _ := strings.Cut(row, " -")
			event, by, named := strings.Cut(event, " by ")
			words := strings.Fields(arrow)
			for _, from := range list(from) {
				r := map[string]any{"from": from, "event": event, "row": n}
				if named {
					r["actors"] = list(by)
				}
				switch words[0] {
				case "origin":
					r["return"] = true
				case "ignored":
					r["ignore"] = true
				default:
					r["to"] = words[0]
				}
				for i := 1; i < len(words); i++ {
					switch words[i] {
					case "if":
						i++
						r["guard"] = words[i]
					case "of":
						i++
						r["origin"] = list(words[i])
					case "forced":
						r["forced"] = true
					case "within":
						r["within"] = "1m0s"
					default:
						return nil, fmt.Errorf("line %d: unknown word %s", n+1, words[i])
					}
				}
				rows = append(rows, r)
			}
		default:
			names, tail, _ := strings.Cut(rest, " ")
			for strings.HasSuffix(names, ",") {
				next, more, _ := strings.Cut(tail, " ")
				names, tail = names+next, more
			}
			for _, name := range list(names) {
				s := map[string]any{"name": name, "kind": first}
				switch first {
				case "absent":
					s["kind"], s["absent"] = "stable", true
				case "failed":
					s["kind"] = "error"
				}
				words := strings.Fields(tail)
				for i := 0; i < len(words); i++ {
					switch words[i] {
					case "heading":
						i++
						s["target"] = words[i]
					case "dies":
						i++
						s["on_owner_death"] = words[i]
					case "manual":
						s["manual"] = "an operator"
					default:
						return nil, fmt.Errorf("line %d: unknown word %s", n+1, words[i])
					}
				}
				if d["initial"] == nil {
					d["initial"] = name
				}
				states = append(states, s)
			}
		}
	}
	d["states"], d["transitions"], d["illegal"] = states, rows, illegal
	data, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	return fsm.ParseTable(data)
}
