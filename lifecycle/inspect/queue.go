package inspect

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// Queue is a queue of this process, for [Config].Queues. [OfQueue] makes one; the zero Queue
// is refused by [New]. It is a value.
type Queue struct{ queuer }

// queuer is a [queue.Queuer] of any type of keys.
type queuer interface {
	Stats() queue.Stats
	Classes() []queue.ClassInfo
	PauseClass(class string) error
	ResumeClass(class string) error

	lanes() []Lane
	// resume and abandon are for the key of a lane. The error reports that they had no effect.
	resume(lane Lane) error
	abandon(lane Lane) error
}

// OfQueue returns a queue for the page. Keys are shown by [fmt.Sprint].
func OfQueue[K comparable](q *queue.Queuer[K]) Queue { return Queue{queued[K]{q}} }

type queued[K comparable] struct{ *queue.Queuer[K] }

// lanes returns the keys with an action, the one whose action is oldest first.
func (q queued[K]) lanes() (list []Lane) {
	for key, i := range q.All() {
		l := laneOf(key)
		i.RunningSince, i.WaitingSince = i.RunningSince.UTC(), i.WaitingSince.UTC()
		l.LaneInfo = i
		list = append(list, l)
	}
	slices.SortFunc(list, func(a, b Lane) int {
		return cmp.Or(a.since().Compare(b.since()), cmp.Compare(a.Key, b.Key))
	})
	return list
}

// laneOf returns the lane of a key, without its actions.
func laneOf[K comparable](key K) Lane {
	l := Lane{Key: fmt.Sprint(key)}
	if object, ok := any(key).(lifecycle.Key); ok {
		l = Lane{Key: object.Machine + "/" + object.ID, Machine: object.Machine, ID: object.ID}
	}
	return l
}

// since returns when the oldest action of a lane started or began to wait; a lane without
// such an action is the last.
func (l *Lane) since() time.Time { return cmp.Or(l.RunningSince, l.WaitingSince, time.Unix(1<<40, 0)) }

func (q queued[K]) resume(lane Lane) error {
	return q.each(lane, q.Resume, &refusal{http.StatusConflict, "not-halted", "the key is not halted"})
}

func (q queued[K]) abandon(lane Lane) error {
	return q.each(lane, q.Abandon, &refusal{http.StatusConflict, "not-running", "the key has no action to abandon"})
}

// each calls f for every key of a lane, because two keys may have one text. It returns the
// error if none of the calls had an effect.
func (q queued[K]) each(lane Lane, f func(K) bool, err error) error {
	for key := range q.All() {
		if laneOf(key) == lane && f(key) {
			err = nil
		}
	}
	return err
}

// namedQueue is a queue with the name that the page shows.
type namedQueue struct {
	name string
	Queue
}

// queuesOf returns the queues of a config and those of its managers, by name.
func queuesOf(c *Config) ([]namedQueue, error) {
	var list []namedQueue
	for _, name := range slices.Sorted(maps.Keys(c.Queues)) {
		if c.Queues[name].queuer == nil {
			return nil, refuse("queue %q is none that OfQueue made", name)
		}
		list = append(list, namedQueue{name, c.Queues[name]})
	}
	given := len(list)
	for _, m := range c.Machines {
		q, ok := lifecycle.QueueOf(m).(*queue.Queuer[lifecycle.Key])
		if !ok {
			continue
		}
		name, its := m.table().Name, OfQueue(q)
		switch i := slices.IndexFunc(list, func(n namedQueue) bool { return n.Queue == its }); {
		case i < 0:
			list = append(list, namedQueue{name, its})
		case i >= given:
			list[i].name += ", " + name
		}
	}
	slices.SortStableFunc(list, func(a, b namedQueue) int { return cmp.Compare(a.name, b.name) })
	for i := 1; i < len(list); i++ {
		if list[i].name == list[i-1].name {
			return nil, refuse("two queues with the name %q", list[i].name)
		}
	}
	return list, nil
}

// readQueues returns the queues, with classes and lanes if they are wanted.
func (p *Page) readQueues(whole bool) []QueueSummary {
	list := []QueueSummary{}
	for _, q := range p.queues {
		s := q.Stats()
		doc := QueueSummary{Name: q.name, Stats: s}
		if s.OldestWaiting > 0 {
			doc.WaitingSince = now().Add(-s.OldestWaiting)
		}
		if s.LongestRunning > 0 {
			doc.RunningSince = now().Add(-s.LongestRunning)
		}
		if whole {
			doc.Classes, doc.Lanes = q.Classes(), q.lanes()
			doc.Lanes = doc.Lanes[:min(len(doc.Lanes), ShownLanes)]
		}
		list = append(list, doc)
	}
	return list
}

func (p *Page) queuePage(context.Context, *http.Request) (view, error) {
	return view{Heading: "Queues", Doc: QueuePage{Time: now(), Queues: p.readQueues(true)}}, nil
}
