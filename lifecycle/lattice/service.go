package lattice

import (
	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle/aggregate"
)

// ServiceState is the state of one service of a system.
type ServiceState string

// The states of services.
const (
	ServiceAbsent   ServiceState = "does-not-exist"
	ServicePending  ServiceState = "pending"
	ServiceStable   ServiceState = "stable"
	ServiceUpdating ServiceState = "updating"
	ServiceScaling  ServiceState = "scaling"
	ServiceDegraded ServiceState = "degraded"
	ServiceFailed   ServiceState = "failed"
	ServiceDeleting ServiceState = "deleting"
)

// ServiceEvent is an observation of a service, by [Observer]. [Seen] returns it.
type ServiceEvent string

// Seen returns the event that reports a service in a state: "seen stable" and so on, and
// "seen gone" for [ServiceAbsent].
func Seen(state ServiceState) ServiceEvent {
	if state == ServiceAbsent {
		return "seen gone"
	}
	return ServiceEvent("seen " + state)
}

// Observer reports the states of services.
const Observer fsm.Actor = "observer"

// Service is the machine of services, as a [Controller] keeps them. Services are
// moved elsewhere and observed here, so every state may follow every other one. It
// is immutable and safe for concurrent use.
var Service = fsm.Must[struct{}](serviceTable())

// serviceTable is this package's own: the document refers to another document for
// services.
func serviceTable() fsm.Spec[ServiceState, ServiceEvent] {
	const elsewhere = "the observer reports when it ends"
	s := fsm.Spec[ServiceState, ServiceEvent]{
		Name: "lattice-service", Title: "Lattice: service", Initial: ServiceAbsent,
		Actors: []fsm.Actor{Observer},
		States: []fsm.State[ServiceState]{
			{Name: ServiceAbsent, Kind: fsm.Absent},
			{Name: ServicePending, Kind: fsm.Transitional, Manual: elsewhere},
			{Name: ServiceStable},
			{Name: ServiceUpdating, Kind: fsm.Transitional, Manual: elsewhere},
			{Name: ServiceScaling, Kind: fsm.Transitional, Manual: elsewhere},
			{Name: ServiceDegraded, Kind: fsm.Failed},
			{Name: ServiceFailed, Kind: fsm.Failed},
			{Name: ServiceDeleting, Kind: fsm.Transitional, Manual: elsewhere},
		},
	}
	for _, state := range s.States[1:] {
		s.Rows = append(s.Rows,
			fsm.Move(ServiceAbsent, Seen(state.Name), state.Name).By(Observer),
			fsm.FromAny(Seen(state.Name), state.Name).By(Observer))
	}
	s.Rows = append(s.Rows, fsm.FromAny(Seen(ServiceAbsent), ServiceAbsent).By(Observer))
	return s
}

// fromServices is the rule for the state of a system that is neither pending, failed nor
// deleting: the first of degraded, updating, scaling and stable that one of its services
// has. A system without services is stable.
var fromServices = aggregate.Must(aggregate.Spec[ServiceState, State]{
	Name: "lattice-system-state", Rule: aggregate.Priority, Children: Service,
	Classes: []aggregate.Class[ServiceState, State]{
		{State: Degraded, States: []ServiceState{ServiceDegraded, ServiceFailed}},
		{State: Updating, States: []ServiceState{ServiceUpdating, ServicePending, ServiceDeleting}},
		{State: Scaling, States: []ServiceState{ServiceScaling}},
		{State: Stable, States: []ServiceState{ServiceStable}},
	},
	Empty: Stable,
})
