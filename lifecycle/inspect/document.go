package inspect

import (
	"encoding/json"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/queue"
)

// The types of this file are the documents of the routes, as JSON and as the data of the
// pages. They are plain values. Times are in RFC 3339 and UTC; a time that does not apply is
// omitted. An error is a [lifecycle.ProblemDetails], with the media type
// application/problem+json and its status.

// Overview is the document of the route "/".
type Overview struct {
	Title    string           `json:"title"`
	Time     time.Time        `json:"time"`     // of the answer, by the clock of the server
	Machines []MachineSummary `json:"machines"` // in the order of [Config].Machines
	Owners   []Owner          `json:"owners"`   // by name and epoch
	Queues   []QueueSummary   `json:"queues"`   // by name; without classes and lanes
	Locks    []LockSummary    `json:"locks"`    // by name; without holders
	// OwnersProblem is why the owners of some store could not be read.
	OwnersProblem *lifecycle.ProblemDetails `json:"ownersProblem,omitempty"`
}

// MachineSummary counts the objects of one machine.
type MachineSummary struct {
	Name  string `json:"name"`
	Title string `json:"title,omitempty"`
	// Objects is the number of objects that were counted. More: there are further objects,
	// because [Config].MaxObjects was reached; then Objects, Transitional, Unreadable and
	// the counts of States are lower bounds.
	Objects int  `json:"objects"`
	More    bool `json:"more,omitempty"`
	// States has every state of the table that is not absent, in order of declaration.
	States       []StateCount `json:"states"`
	Transitional int          `json:"transitional"` // objects in transitional states
	// Stuck is the number of objects that a sweep would act upon, at most
	// [lifecycle.MaxPage]. Unlike the other numbers it is of all objects.
	Stuck int `json:"stuck"`
	// Unreadable is the number of objects with a foreign record, see [lifecycle.ErrForeign].
	Unreadable int `json:"unreadable"`
	// Problem is why the objects could not be read. All numbers mean nothing then. Only an
	// [Overview] has it; the answer of another route is the problem itself.
	Problem *lifecycle.ProblemDetails `json:"problem,omitempty"`
}

// StateCount is the number of objects in a state.
type StateCount struct {
	State string `json:"state"`
	Kind  string `json:"kind"` // stable, transitional, failed or final
	Count int    `json:"count"`
}

// MachinePage is the document of the route "/machine".
type MachinePage struct {
	Time time.Time `json:"time"`
	MachineSummary
	Versions []VersionCount `json:"versions"` // of the tables that wrote the counted records, by name
	// StuckObjects are the first of the stuck objects, explained, and Oldest are those of the
	// counted transitional objects that have not changed for the longest time: at most 20
	// each.
	StuckObjects []Object `json:"stuckObjects"`
	Oldest       []Object `json:"oldest"`
}

const shownObjects = 20

// VersionCount is the number of records that one version of the table wrote.
type VersionCount struct {
	Version string `json:"version"` // empty: it had no name
	Count   int    `json:"count"`
}

// Object is an object in a list. A list of stuck objects has neither Sequence nor Version.
type Object struct {
	ID        string         `json:"id"`
	State     string         `json:"state"`          // empty: the record is foreign
	Kind      string         `json:"kind,omitempty"` // of the state
	Origin    string         `json:"origin,omitempty"`
	Target    string         `json:"target,omitempty"`
	Since     time.Time      `json:"since,omitzero"` // the last change
	Operation lifecycle.OpID `json:"operation,omitempty"`
	Owner     string         `json:"owner,omitempty"`
	Epoch     uint64         `json:"epoch,omitempty"`
	Deadline  time.Time      `json:"deadline,omitzero"`
	Event     string         `json:"event,omitempty"` // of the last change
	Actor     fsm.Actor      `json:"actor,omitempty"`
	Reason    string         `json:"reason,omitempty"`
	Sequence  uint64         `json:"sequence,omitempty"`
	Version   string         `json:"version,omitempty"`
	// Cause is why the object is stuck, and NextMove what moves it next, as in a
	// [lifecycle.Explanation]. Only objects of a list of stuck ones have them.
	Cause    string `json:"cause,omitempty"`
	NextMove string `json:"nextMove,omitempty"`
	// Problem is why the record cannot be read, or the stuck object cannot be explained.
	Problem *lifecycle.ProblemDetails `json:"problem,omitempty"`
}

// ObjectList is the document of the route "/objects": one page of a machine's objects.
type ObjectList struct {
	Time    time.Time `json:"time"`
	Machine string    `json:"machine"`
	States  []string  `json:"states"`          // only objects in these states; none: in any
	Stuck   bool      `json:"stuck,omitempty"` // only objects that are stuck
	Limit   int       `json:"limit"`
	Objects []Object  `json:"objects"` // in the store's order of ids; stuck ones in the order in which a sweep finds them
	// Next is the parameter after of the next page. Empty: this is the last page. The list
	// of stuck objects has one page; More: there are further ones, or may be if Limit is
	// [lifecycle.MaxPage].
	Next string `json:"next,omitempty"`
	More bool   `json:"more,omitempty"`
}

// ObjectPage is the document of the route "/object".
type ObjectPage struct {
	Time    time.Time `json:"time"`
	Machine string    `json:"machine"`
	ID      string    `json:"id"`
	// Explanation is of the present record, and Payload what [Of] shows of its payload.
	// Both are null if the object was removed, or if its record cannot be read: Removed or
	// Problem is then set.
	Explanation *lifecycle.Explanation    `json:"explanation"`
	Version     string                    `json:"version,omitempty"` // of the table that wrote the record
	Payload     json.RawMessage           `json:"payload,omitempty"`
	Removed     bool                      `json:"removed,omitempty"`
	Problem     *lifecycle.ProblemDetails `json:"problem,omitempty"`
	// History has at most 50 rows, the newest first. Before is the parameter
	// before of the page with the rows in front of them; 0: there are none. NoHistory: the
	// store keeps no history. HistoryProblem is why the rows cannot be read.
	History        []lifecycle.HistoryRow    `json:"history"`
	Before         uint64                    `json:"before,omitempty"`
	NoHistory      bool                      `json:"noHistory,omitempty"`
	HistoryProblem *lifecycle.ProblemDetails `json:"historyProblem,omitempty"`
}

const shownRows = 50

// OwnerPage is the document of the route "/owners".
type OwnerPage struct {
	Time   time.Time `json:"time"`
	Owners []Owner   `json:"owners"` // by name and epoch
	// Problem is why the owners of a store cannot be read; those of other stores are listed.
	Problem *lifecycle.ProblemDetails `json:"problem,omitempty"`
}

// Owner is a process that executes operations.
type Owner struct {
	lifecycle.OwnerInfo
	TTL float64 `json:"ttlSeconds"`
}

// QueuePage is the document of the route "/queues".
type QueuePage struct {
	Time   time.Time      `json:"time"`
	Queues []QueueSummary `json:"queues"` // by name
}

// QueueSummary is one queue of this process.
type QueueSummary struct {
	Name string `json:"name"`
	queue.Stats
	// WaitingSince is when the oldest waiting action was accepted, and RunningSince when
	// the oldest running one started.
	WaitingSince time.Time `json:"waitingSince,omitzero"`
	RunningSince time.Time `json:"runningSince,omitzero"`

	// Classes are the limits, by path. Lanes are the keys with an action, at most
	// [ShownLanes], the one whose action is oldest first.
	Classes []queue.ClassInfo `json:"classes,omitempty"`
	Lanes   []Lane            `json:"lanes,omitempty"`
}

// ShownLanes is the greatest number of lanes of a [QueueSummary], and of holders of a
// [LockSummary].
const ShownLanes = 200

// Lane is a key of a queue.
type Lane struct {
	Key string `json:"key"`
	// Machine and ID are those of the object, if the queue is that of managers.
	Machine string `json:"machine,omitempty"`
	ID      string `json:"id,omitempty"`
	queue.LaneInfo
}

// LockPage is the document of the route "/locks".
type LockPage struct {
	Time  time.Time     `json:"time"`
	Locks []LockSummary `json:"locks"` // by name
}

// LockSummary is one lock tree. It has at most [ShownLanes] holders and waiting requests.
type LockSummary struct {
	Name string `json:"name"`
	lock.Snapshot
	// Problem is why the tree could not be read. All numbers mean nothing then.
	Problem *lifecycle.ProblemDetails `json:"problem,omitempty"`
}

// Change is the data of an event "change" of the stream of the route "/events".
type Change struct {
	Machine string `json:"machine"`
	lifecycle.ChangedObject
}
