package fsm

import (
	"fmt"
	"slices"
	"time"
)

// The structs here are the form of a lifecycle-table/1 document. The reader and the
// writer both use them. The order of fields is the order in which the writer writes
// them. The tag form has "required" for a field that every document has, and "lines"
// for a list that the writer writes with one element a line.

type tableForm struct {
	Name        string      `json:"name" form:"required"`
	Title       text        `json:"title,omitempty"`
	Schema      *string     `json:"schema,omitempty"`
	Confidence  text        `json:"confidence,omitempty"`
	Initial     *string     `json:"initial,omitempty"`
	Initials    []string    `json:"initials,omitempty"`
	Actors      []string    `json:"actors"`
	States      []stateForm `json:"states" form:"required lines"`
	Transitions []rowForm   `json:"transitions" form:"required lines"`
}

type stateForm struct {
	Name   string  `json:"name" form:"required"`
	Kind   string  `json:"kind" form:"required"`
	Absent bool    `json:"absent,omitempty"`
	Target *string `json:"target,omitempty"`
	Manual text    `json:"manual,omitempty"`
	Note   text    `json:"note,omitempty"`

	offset int // in the document
}

// rowForm is a row with one source. A row with several sources takes several, with
// the same number in Row.
type rowForm struct {
	From      string   `json:"from" form:"required"`
	Event     string   `json:"event" form:"required"`
	Actor     *string  `json:"actor,omitempty"`
	Actors    []string `json:"actors,omitempty"`
	To        *string  `json:"to,omitempty"`
	Return    bool     `json:"return,omitempty"`
	Ignore    bool     `json:"ignore,omitempty"`
	Guard     string   `json:"guard,omitempty"`
	Origin    []string `json:"origin,omitempty"`
	Forced    bool     `json:"forced,omitempty"`
	Supersede bool     `json:"supersede,omitempty"`
	Within    *string  `json:"within,omitempty"` // a duration such as "1m30s"
	Note      text     `json:"note,omitempty"`
	Any       bool     `json:"any,omitempty"`
	Except    []string `json:"except,omitempty"`
	Row       *int     `json:"row,omitempty"`

	offset  int // in the document
	timeout time.Duration
}

// text is a string of at most maxText bytes. A string of the form is a name, of at
// most MaxName bytes.
type text string

// kindForms are the kinds by name. An absent state has the field "absent" too.
var kindForms = [...]string{
	Stable: "stable", Transitional: "transitional", Failed: "error", Final: "final", Absent: "stable",
}

// The reader calls the methods read after the last field of a form. They check what a
// type cannot express, and return a fault and the field that has it.

func (f *tableForm) read(int) (key, fault string) {
	if f.Schema != nil && *f.Schema != tableSchema {
		return "schema", fmt.Sprintf("want %q, found %q", tableSchema, clip(*f.Schema))
	}
	return "", ""
}

func (f *stateForm) read(offset int) (key, fault string) {
	f.offset = offset
	switch {
	case !slices.Contains(kindForms[:], f.Kind):
		return "kind", fmt.Sprintf("want stable, transitional, final or error, found %q", clip(f.Kind))
	case f.Absent && f.Kind != kindForms[Absent]:
		return "", fmt.Sprintf("an absent state of kind %s, want stable", f.Kind)
	}
	return "", ""
}

// read also gives equal fields to rows with the same meaning, so that the
// transitions of one row can be compared.
func (f *rowForm) read(offset int) (key, fault string) {
	f.offset = offset
	const leaveOut = "an empty list: leave the field out"
	switch {
	case f.Actors != nil && len(f.Actors) == 0: // every actor, or none?
		return "actors", leaveOut
	case f.Origin != nil && len(f.Origin) == 0: // the same question
		return "origin", leaveOut
	case f.Actor != nil && f.Actors != nil:
		return "", "both actor and actors"
	case f.Ignore && f.Return:
		return "", "both ignore and return"
	case f.Return && f.To != nil:
		return "", "both return and to"
	case f.To == nil && !f.Return && !f.Ignore:
		return "", "neither to nor return nor ignore"
	}
	if f.Ignore {
		f.To = nil
	}
	if len(f.Except) == 0 {
		f.Except = nil
	}
	if f.Actor != nil {
		f.Actor, f.Actors = nil, []string{*f.Actor}
	}
	if f.Within == nil {
		return "", ""
	}
	if f.timeout, _ = time.ParseDuration(*f.Within); f.timeout == 0 {
		return "within", fmt.Sprintf("want a duration such as \"1m30s\" and not zero, found %q", clip(*f.Within))
	}
	if f.timeout > 0 && !slices.Contains(f.Actors, string(Sweeper)) {
		f.Actors = append(f.Actors, string(Sweeper))
	}
	return "", ""
}
