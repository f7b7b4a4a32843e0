package ovc

import (
	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// NewManaged is New with managers that the caller makes.
func NewManaged(store lifecycle.Store, config *Config, manage func(*fsm.Machine[State, Event, Model], lifecycle.Store, *lifecycle.Config[Event]) *Manager) *Service {
	return newService(store, config, manage)
}
