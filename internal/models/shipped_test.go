package models

import (
	"cmp"
	"errors"

	"github.com/interlock-go/interlock/internal/tablemodel"
)

// Decisions are the functions that decide about objects in a model.
type Decisions = tablemodel.Decisions

// shipped are the decisions that lifecycle.Manager performs.
var shipped = tablemodel.Shipped()

// orShipped returns the decisions of a model, by default the shipped ones.
func orShipped(d *Decisions) *Decisions { return cmp.Or(d, &shipped) }

type object = tablemodel.Object

// never returns an invariant: no state has the property.
func never[S any](has func(S) bool, problem string) func(S) error {
	return func(s S) error {
		if has(s) {
			return errors.New(problem)
		}
		return nil
	}
}
