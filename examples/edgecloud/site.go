package main

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// site is a cloudlet: the machines, the CRM on them, and the network to it. The
// story uses it from one goroutine.
type site struct {
	crm    *edgecloud.ResourceManager
	story  *story
	notify int64 // of its connection
	there  map[lifecycle.Key]edgecloud.Order
	broken error // what every work fails with
	lose   int   // so many of the next messages are lost
	twice  int   // operations that were done once more
}

func newSite(s *story) *site {
	at := &site{story: s, there: map[lifecycle.Key]edgecloud.Order{}}
	at.crash()
	return at
}

// crash ends the CRM and starts another one, which has no memory of it.
func (at *site) crash() { at.crm = edgecloud.NewResourceManager(at, at.say) }

var errLost = errors.New("the network is away")

// say brings a message of the CRM to the controller.
func (at *site) say(ctx context.Context, k lifecycle.Key, i edgecloud.Info) error {
	if at.lose > 0 {
		at.lose--
		return errLost
	}
	_, err := at.story.c.Answer(ctx, k, i)
	return err
}

// Do does what is asked for.
func (at *site) Do(_ context.Context, o edgecloud.Order) error {
	if at.broken != nil {
		return at.broken
	}
	if at.there[o.Key].Operation == o.Operation {
		at.twice++
	}
	if o.Verb == edgecloud.Delete {
		delete(at.there, o.Key)
	} else {
		at.there[o.Key] = o
	}
	return nil
}

// Present returns what is there.
func (at *site) Present(context.Context) ([]lifecycle.Key, error) {
	return slices.Collect(maps.Keys(at.there)), nil
}
