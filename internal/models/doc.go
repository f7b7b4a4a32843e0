// Package models has only tests: the protocols of this repository as models for package
// fsm/explore. The tables are those of the systems, and the functions of internal/decide
// make the decisions that lifecycle.Manager performs. Actors crash. Channels lose,
// duplicate, reorder and break.
//
//	EdgeCloud   one instance between user, controller and CRM: the protocol of the
//	            document, and the protocol of lifecycle
//	Upgrade     a cloudlet whose CRM is replaced by another one while it runs
//	Blazar      two leases of one resource, their reservations and events
//	Takeover    the work of one object by processes that die and come back
//	LockTree    the grant rule of lock.Tree; the model runs the package
//	Queue       the order of queue.Queuer under retries; the model runs the package
//
// In every model with operations, every operation ends if the sweeper keeps sweeping,
// processes keep running and messages are not lost forever (explore.System.LeadsTo).
// Users need not make requests.
//
// Package tablemodel contains the model of any table. The files of the models end in
// _model_test.go. The first comment of each lists what its model omits. A test can replace
// a parameter of a model, above all Decisions, and check that the verdict depends on it.
// Some models repeat a rule that needs a store where it runs. Tests compare these rules with
// the real ones by random calls.
//
// The file testdata/decisions.txt lists changes of decisions, and the models that notice
// each of them. No model contains heartbeats, overrides or repeated reports, and no model
// notices it if reports about later operations count. Only the tests of internal/decide
// check these decisions.
package models
