package main

import (
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// perApp is how many customers one AppInst serves.
const perApp = 100

// demanded is the controller deciding by itself: it knows of every instance
// whether it is there, coming or going, and so neither asks for what is on its
// way, nor for anything while it is being changed.
func (s *story) demanded() {
	s.say("customers come to oslo and go; nobody else asks for anything")
	for _, customers := range []int{120, 350, 60, 0} {
		asked := 0
		for range 10 {
			n := s.follow("oslo", (customers+perApp-1)/perApp)
			if asked += n; n == 0 {
				break
			}
			// To look again before anything is done must not ask for more.
			s.must(s.follow("oslo", (customers+perApp-1)/perApp) == 0, "it was asked for twice")
			s.serve("oslo")
		}
		s.say("  %d customers: %d apps, after %d requests", customers, len(s.sites["oslo"].apps()), asked)
		s.must(len(s.sites["oslo"].apps()) == (customers+perApp-1)/perApp, "%d apps for %d customers",
			len(s.sites["oslo"].apps()), customers)
	}
}

// follow asks for what is missing to so many apps on a cloudlet, or for what is
// too much to go, and returns how many requests that took. An empty cluster is
// too much as well.
func (s *story) follow(cloudlet string, apps int) (requests int) {
	cluster := "auto-" + cloudlet
	at := state(s, s.c.Clusters, cluster)
	if at == edgecloud.NotPresent && apps > 0 {
		_, err := s.c.Clusters.Create(s.ctx, cluster, edgecloud.ClusterSpec{Cloudlet: cloudlet, Nodes: 1}, nil)
		s.note(err)
		return 1
	}
	if at != edgecloud.Ready {
		return 0 // it is coming, or going
	}
	left := 0
	for i := range 10 {
		id := fmt.Sprintf("%s-%d", cluster, i)
		is := state(s, s.c.Apps, id)
		if is != edgecloud.NotPresent {
			left++
		}
		var err error
		switch {
		case i < apps && is == edgecloud.NotPresent:
			_, err = s.c.Apps.Create(s.ctx, id, edgecloud.AppSpec{ClusterInst: cluster, Replicas: 1}, nil)
		case i >= apps && is == edgecloud.Ready:
			_, err = s.c.Apps.Delete(s.ctx, id, nil)
		default:
			continue
		}
		s.note(err)
		requests++
	}
	if left == 0 && apps == 0 {
		_, err := s.c.Clusters.Delete(s.ctx, cluster, nil)
		s.note(err)
		requests++
	}
	return requests
}

// state is where an instance is, NotPresent if it is not there.
func state[T any](s *story, in *edgecloud.Instances[T], id string) edgecloud.State {
	rec, err := in.Get(s.ctx, id)
	if errors.Is(err, lifecycle.ErrNotFound) {
		return edgecloud.NotPresent
	}
	s.note(err)
	return rec.State
}

// apps returns the AppInsts that are there.
func (at *site) apps() (ids []string) {
	for k := range at.there {
		if k.Machine == appKey("").Machine {
			ids = append(ids, k.ID)
		}
	}
	return ids
}
