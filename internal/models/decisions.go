package models

import "github.com/interlock-go/interlock/internal/tablemodel"

// Decisions are the functions that decide about objects in a model.
type Decisions = tablemodel.Decisions

// Shipped returns the decisions that lifecycle.Manager performs.
func Shipped() Decisions { return tablemodel.Shipped() }

// orShipped returns the decisions of a model, by default the shipped ones.
func orShipped(d *Decisions) Decisions {
	if d == nil {
		return Shipped()
	}
	return *d
}

type object = tablemodel.Object
