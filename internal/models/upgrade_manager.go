package models

import (
	"fmt"

	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// The side of the CRMs: what one does, says and gets to know.

// manager is one of the two CRMs.
type manager struct {
	Life   life
	Notify int64
	Sees   told // what it was told last under this connection
	Serves bool // it is in charge of what is on the cloudlet
	Began  bool // it has started the other
	Ending bool // it has asked for the end of the other
	Alone  bool // the other has gone
	Owes   bool // that it has gone is still to be heard by the other
	Drops  bool // that its connection has dropped is still to be heard by the controller
}

type life uint8

const (
	absent  life = iota
	alive        //
	dead         // crashed; it will be started again
	stopped      // ended by the other
)

func (l life) String() string { return [...]string{"absent", "alive", "crashed", "ended"}[l] }

func (m manager) String() string {
	text := m.Life.String()
	if m.Life == alive {
		text = fmt.Sprintf("connection %d", m.Notify)
	}
	for _, f := range []struct {
		is   bool
		text string
	}{{m.Serves, "in charge"}, {m.Began && !m.Alone, "has started the other"}, {m.Ending && !m.Alone, "ends the other"}, {m.Alone, "alone"}} {
		if f.is {
			text += ", " + f.text
		}
	}
	return text
}

// says is what a CRM says to the controller, again and again until it was told of
// the effect.
func (u *upgrade) says(isNew bool) func(manager, func(string, said, manager)) {
	return func(m manager, send func(string, said, manager)) {
		say := func(e edgecloud.CloudletEvent) { send("", said{e, m.Notify}, m) }
		if m.Drops {
			m.Drops = false
			say(edgecloud.Disconnected)
			return
		}
		if m.Life != alive {
			return
		}
		switch {
		case m.Sees == told{}:
			say(edgecloud.StartUp)
		case isNew && m.Serves && m.Sees.Start != edgecloud.CloudletReady,
			!isNew && m.Sees.Start == edgecloud.CloudletInitOk:
			say(edgecloud.Gathered)
		}
		if isNew {
			return
		}
		switch m.Sees.Upgrade {
		case edgecloud.CloudletUpdateRequested, edgecloud.CloudletUpdating, edgecloud.CloudletInitOk:
			if m.Sees.Upgrade == edgecloud.CloudletUpdateRequested {
				say(edgecloud.AckUpgrade)
			}
			if m.Alone {
				say(edgecloud.BringUpFailed)
			}
		case edgecloud.CloudletUpdateError:
			if m.Alone {
				say(edgecloud.KeepOld)
			}
		}
	}
}

// does is what one CRM does to the other on their host.
func (u *upgrade) does(isNew bool) func(manager, func(string, signal, manager)) {
	return func(m manager, send func(string, signal, manager)) {
		if m.Owes {
			m.Owes = false
			send("", gone, m)
			return
		}
		if m.Life != alive {
			return
		}
		if !isNew && m.Sees.Upgrade == edgecloud.CloudletUpdateRequested && !m.Began {
			begun := m
			begun.Began = true
			send("", start, begun)
		}
		// The old one gives up whenever it likes, and in any case when it is told that
		// the upgrade has failed; the new one takes over once it was answered.
		ends := isNew && m.Sees.Start == edgecloud.CloudletInitOk ||
			!isNew && (m.Began || m.Sees.Upgrade == edgecloud.CloudletUpdateError)
		if ends && !m.Ending {
			m.Ending = true
			m.Serves = m.Serves || isNew && u.Hasty
			send("", end, m)
		}
	}
}

// suffers is what a CRM gets to know on its host, or what is done to it.
func (u *upgrade) suffers(isNew bool) func(manager, signal, func(string, manager)) {
	return func(m manager, s signal, next func(string, manager)) {
		switch {
		case s == start && m.Life != alive:
			next("", manager{Life: alive, Notify: m.Notify + 2})
		case s == end:
			next("", manager{Life: stopped, Notify: m.Notify, Owes: true, Drops: m.Life == alive || m.Drops})
		case s == gone && m.Life == alive:
			m.Alone = true
			m.Serves = m.Serves || isNew
			next("", m)
		}
	}
}

// learns is a CRM that is told how things are.
func (u *upgrade) learns(isNew bool) func(manager, told, func(string, manager)) {
	return func(m manager, t told, next func(string, manager)) {
		if m.Life != alive {
			return
		}
		m.Sees = t
		// One that was started again serves again as soon as it is answered.
		m.Serves = m.Serves || !isNew && (t.Start == edgecloud.CloudletInitOk || t.Start == edgecloud.CloudletReady)
		next("", m)
	}
}

func restart(m manager, step func(string, manager)) {
	if m.Life == dead {
		step("restart", manager{Life: alive, Notify: m.Notify + 2, Owes: m.Owes, Drops: m.Drops})
	}
}

func crash(m manager) (manager, bool) {
	return manager{Life: dead, Notify: m.Notify, Owes: m.Owes, Drops: true}, m.Life == alive
}
