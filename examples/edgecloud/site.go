package main

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// site is a cloudlet: the platform, the CRM on it, and its connection. One goroutine uses
// it.
type site struct {
	crm     *edgecloud.ResourceManager
	world   *world
	notify  int64 // of the connection
	present map[lifecycle.Key]edgecloud.Order
	failure error // of every order
	lose    int   // the next reports, which the network loses
	twice   int   // operations that were carried out twice
}

// crash replaces the CRM by one without memory.
func (s *site) crash() (err error) {
	s.crm, err = edgecloud.NewResourceManager(s, s.send)
	return err
}

var errLost = errors.New("the network is down")

// send brings a report of the CRM to the controller.
func (s *site) send(ctx context.Context, k lifecycle.Key, r edgecloud.Report) error {
	if s.lose > 0 {
		s.lose--
		return errLost
	}
	_, err := s.world.c.Answer(ctx, k, r)
	return err
}

// Do carries out an order.
func (s *site) Do(_ context.Context, o edgecloud.Order) error {
	switch {
	case s.failure != nil:
		return s.failure
	case s.present[o.Key].Operation == o.Operation:
		s.twice++
	case o.Verb == edgecloud.Delete:
		delete(s.present, o.Key)
		return nil
	}
	s.present[o.Key] = o
	return nil
}

// Present returns the instances that exist.
func (s *site) Present(context.Context) ([]lifecycle.Key, error) {
	return slices.Collect(maps.Keys(s.present)), nil
}

// apps returns the number of AppInsts that exist.
func (s *site) apps() (n int) {
	for k := range s.present {
		if k.Machine == edgecloud.AppInst.Name() {
			n++
		}
	}
	return n
}
