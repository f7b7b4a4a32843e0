package main

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

type cluster = edgecloud.Record[edgecloud.ClusterSpec]

// site is the platform of a cloudlet. One goroutine uses it.
type site struct {
	present map[lifecycle.Key]edgecloud.Order // the last order of every instance that exists
	lose    int                               // how many of the next reports the network loses
	twice   int                               // operations that were executed twice
}

var errLost = errors.New("the network is down")

// Do executes an order.
func (s *site) Do(_ context.Context, o edgecloud.Order) (json.RawMessage, error) {
	switch {
	case s.present[o.Key].Operation == o.Operation:
		s.twice++
	case o.Verb == edgecloud.Delete:
		delete(s.present, o.Key)
		return nil, nil
	}
	s.present[o.Key] = o
	return nil, nil
}

// Present returns the instances that exist.
func (s *site) Present(context.Context) ([]lifecycle.Key, error) {
	return slices.Collect(maps.Keys(s.present)), nil
}
