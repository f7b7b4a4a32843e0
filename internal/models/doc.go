// Package models has the protocols that this repository runs as models for
// package fsm/explore: tables that are shipped, decided about by the functions of
// internal/decide that lifecycle.Manager performs, between actors that crash and
// channels that lose, duplicate, reorder and break.
//
//	EdgeCloud   one instance between user, controller and CRM: the protocol of the
//	            document, and the one that lifecycle runs
//	Upgrade     a cloudlet whose CRM is replaced by another while it runs
//	Blazar      two leases of one resource, their reservations and events
//
// A model of any table is in package tablemodel. One model here is one file, whose
// first comment says what it leaves out. What a model is given as parameter, above
// all [Decisions], may be exchanged by a test, to see that the verdict hangs on it.
// Rules that a model has to describe anew, because they need a store where they
// run, are compared with those that run by random calls.
package models
