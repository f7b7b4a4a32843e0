package models

import (
	"fmt"

	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// The side of the CRMs: what a CRM does, sends and receives.

// manager is one of the two CRMs.
type manager struct {
	Life   life
	Notify int64
	Sees   notice // the last notice of this connection
	Serves bool   // it serves the cloudlet
	Began  bool   // it has started the other
	Ending bool   // it has requested the end of the other
	Alone  bool   // the other has gone
	Owes   bool   // the other has not learned of its end yet
	Drops  bool   // the controller has not learned of its dropped connection yet
}

type life uint8

const (
	absent  life = iota
	alive        //
	dead         // crashed; it starts again
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

// sends are the messages of a CRM to the controller. It repeats them until a notice shows
// the effect.
func (u *Upgrade) sends(isNew bool) func(manager, func(string, message, manager)) {
	return func(m manager, send func(string, message, manager)) {
		emit := func(e edgecloud.CloudletEvent) { send("", message{e, m.Notify}, m) }
		if m.Drops {
			m.Drops = false
			emit(edgecloud.Disconnected)
			return
		}
		if m.Life != alive {
			return
		}
		switch {
		case m.Sees == notice{}:
			emit(edgecloud.StartUp)
		case isNew && m.Serves && m.Sees.Start != edgecloud.CloudletReady,
			!isNew && m.Sees.Start == edgecloud.CloudletInitOk:
			emit(edgecloud.Gathered)
		}
		if isNew {
			return
		}
		switch m.Sees.Upgrade {
		case edgecloud.CloudletUpdateRequested, edgecloud.CloudletUpdating, edgecloud.CloudletInitOk:
			if m.Sees.Upgrade == edgecloud.CloudletUpdateRequested {
				emit(edgecloud.AckUpgrade)
			}
			if m.Alone {
				emit(edgecloud.BringUpFailed)
			}
		case edgecloud.CloudletUpdateError:
			if m.Alone {
				emit(edgecloud.KeepOld)
			}
		}
	}
}

// does are the signals of one CRM to the other on their host.
func (u *Upgrade) does(isNew bool) func(manager, func(string, signal, manager)) {
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
		// The old CRM may abandon the upgrade at any time, and does so after a notice that
		// it failed. The new CRM serves after its first notice.
		ends := isNew && m.Sees.Start == edgecloud.CloudletInitOk ||
			!isNew && (m.Began || m.Sees.Upgrade == edgecloud.CloudletUpdateError)
		if ends && !m.Ending {
			m.Ending = true
			m.Serves = m.Serves || isNew && u.Hasty
			send("", end, m)
		}
	}
}

// suffers is the effect of a signal on a CRM.
func (u *Upgrade) suffers(isNew bool) func(manager, signal, func(string, manager)) {
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

// learns is a CRM that receives a notice.
func (u *Upgrade) learns(isNew bool) func(manager, notice, func(string, manager)) {
	return func(m manager, t notice, next func(string, manager)) {
		if m.Life != alive {
			return
		}
		m.Sees = t
		// A CRM that started again serves after its first notice.
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
