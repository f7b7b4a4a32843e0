package fsm

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// The structs here are the form of a lifecycle-table/1 document. The reader and
// the writer both use them, so that they cannot disagree. The order of fields is
// the order in which the writer writes them.

type tableForm struct {
	Name        string          `json:"name" form:"required"`
	Title       text            `json:"title"`
	Schema      schema          `json:"schema"`
	Confidence  text            `json:"confidence"`
	Initial     *string         `json:"initial"`
	Initials    []string        `json:"initials"`
	Actors      []string        `json:"actors"`
	States      []stateForm     `json:"states" form:"required"`
	Transitions []rowForm       `json:"transitions" form:"required"`
	Illegal     [][2]string     `json:"illegal"`
	Source      json.RawMessage `json:"source"`
	Notes       []text          `json:"notes"`
	Anomalies   []text          `json:"known_anomalies"`
}

type stateForm struct {
	Name         string   `json:"name" form:"required"`
	Kind         kindForm `json:"kind" form:"required"`
	Absent       bool     `json:"absent,omitempty"`
	Target       *string  `json:"target,omitempty"`
	Manual       text     `json:"manual,omitempty"`
	OnOwnerDeath text     `json:"on_owner_death,omitempty"`
	Code         *int     `json:"code,omitempty"`
	Note         text     `json:"note,omitempty"`

	offset int // in the document
}

// rowForm is a row with one source. Rows with several sources take several, with
// the same number in Row.
type rowForm struct {
	From      string       `json:"from" form:"required"`
	Event     string       `json:"event" form:"required"`
	Actor     *string      `json:"actor,omitempty"`
	Actors    []string     `json:"actors,omitempty"`
	To        *string      `json:"to,omitempty"`
	Return    bool         `json:"return,omitempty"`
	Ignore    bool         `json:"ignore,omitempty"`
	Guard     string       `json:"guard,omitempty"`
	Origin    []string     `json:"origin,omitempty"`
	Forced    bool         `json:"forced,omitempty"`
	Supersede bool         `json:"supersede,omitempty"`
	Within    durationForm `json:"within,omitempty"`
	Action    text         `json:"action,omitempty"`
	Section   text         `json:"section,omitempty"`
	Note      text         `json:"note,omitempty"`
	Any       bool         `json:"any,omitempty"`
	Except    []string     `json:"except,omitempty"`
	Row       *int         `json:"row,omitempty"`

	offset int // in the document
}

// text is a string of at most maxText bytes. The strings of the form are names,
// of at most MaxName bytes.
type text string

// schema is tableSchema and nothing else.
type schema string

func (s *schema) UnmarshalText(read []byte) error {
	if *s = schema(read); *s != tableSchema {
		return fmt.Errorf("want %q, found %q", tableSchema, clip(string(read)))
	}
	return nil
}

// kindForm is the name of a kind in a document. An absent state is a stable one
// with the field "absent".
type kindForm string

var kindForms = [...]kindForm{
	Stable: "stable", Transitional: "transitional", Failed: "error", Final: "final", Absent: "stable",
}

func (k *kindForm) UnmarshalText(read []byte) error {
	if *k = kindForm(read); !slices.Contains(kindForms[:], *k) {
		return fmt.Errorf("want stable, transitional, final or error, found %q", clip(string(read)))
	}
	return nil
}

// durationForm is a duration such as "1m30s", and not zero.
type durationForm string

func (d *durationForm) UnmarshalText(read []byte) error {
	if *d = durationForm(read); d.duration() == 0 {
		return fmt.Errorf("want a duration such as \"1m30s\" and not zero, found %q", clip(string(read)))
	}
	return nil
}

func (d durationForm) duration() time.Duration {
	v, _ := time.ParseDuration(string(d)) // zero for no duration
	return v
}

// read checks what a type cannot express. The reader calls it after the last
// field.
func (f *stateForm) read(offset int) (key, fault string) {
	f.offset = offset
	if f.Absent && f.Kind != "stable" {
		return "", fmt.Sprintf("an absent state of kind %s, want stable", f.Kind)
	}
	return "", ""
}

// read also gives rows that mean the same the same fields, so that the
// transitions of one row can be compared.
func (f *rowForm) read(offset int) (key, fault string) {
	f.offset = offset
	empty := func(list []string) bool { return list != nil && len(list) == 0 }
	const leaveOut = "an empty list: leave the field out"
	switch {
	case empty(f.Actors):
		return "actors", leaveOut
	case empty(f.Except):
		return "except", leaveOut
	case empty(f.Origin):
		return "origin", leaveOut
	case f.Actor != nil && f.Actors != nil:
		return "", "both actor and actors"
	case f.Ignore && f.Return:
		return "", "both ignore and return"
	case f.Return && f.To != nil:
		return "", "both return and to"
	case f.To == nil && !f.Return && !f.Ignore:
		return "", "neither to nor return nor ignore"
	case f.Row != nil && *f.Row < 0:
		return "row", "a negative number"
	}
	if f.Ignore {
		f.To = nil
	}
	if f.Actor != nil {
		f.Actor, f.Actors = nil, []string{*f.Actor}
	}
	if f.Within.duration() > 0 && !slices.Contains(f.Actors, string(Sweeper)) {
		f.Actors = append(f.Actors, string(Sweeper))
	}
	return "", ""
}
