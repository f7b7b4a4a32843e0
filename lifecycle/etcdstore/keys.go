package etcdstore

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/lifecycle"
)

// Kinds of keys, which follow the prefix. The parts after the kind are separated by NUL,
// which no name contains: the keys of one machine, or one state, are exactly one range,
// in the order of what follows. Numbers are 16 hexadecimal digits.
const (
	versions  = "version"   //                       the version of the layout, and the floor
	records   = "record/"   // machine, id           the record
	removed   = "removed/"  // machine, id           the numbers of a removed object
	states    = "state/"    // machine, state, id    the revision; of a removed object, the state is empty
	times     = "time/"     // machine, time, id     the sequence number of the last change
	deadlines = "deadline/" // machine, deadline, id nothing
	owners    = "owner/"    // machine, owner, epoch, id  nothing
	lives     = "life/"     // owner, epoch          nothing: the owner is alive in this epoch
	histories = "history/"  // machine, id, sequence the history row
	requests  = "request/"  // machine, request      the history row that has the request
	messages  = "message/"  // revision of etcd when the commit began plus floor, floor, token, place  the message
)

const separator = "\x00"

// key returns a key of a kind. With an empty last part it begins the keys that have the
// parts before, and end returns where they end.
func (s *Store) key(kind string, parts ...string) string {
	return s.config.Prefix + kind + strings.Join(parts, separator)
}

// end returns the end of the range of keys that begin with a text.
func end(start string) string { return clientv3.GetPrefixRangeEnd(start) }

// idOf returns the id in a key that ends with one.
func idOf(kv *mvccpb.KeyValue) string {
	return string(kv.Key[bytes.LastIndexByte(kv.Key, 0)+1:])
}

func hex(n uint64) string { return fmt.Sprintf("%016x", n) }

func missing(key string) clientv3.Cmp { return clientv3.Compare(clientv3.CreateRevision(key), "=", 0) }

func exists(key string) clientv3.Cmp { return clientv3.Compare(clientv3.CreateRevision(key), ">", 0) }

// facts are what the index entries of a record depend on. The revision of a record is the
// token of its commit and its facts: a commit drops the entries of the record that it
// replaces without reading it.
type facts struct {
	token             string
	changed, deadline int64 // microseconds; no deadline: 0
	operation, epoch  uint64
	owner             string
}

// never is the revision of an object that never existed. The floor follows.
const never lifecycle.Revision = "never"

func factsOf(r *lifecycle.StoredRecord, token lifecycle.Token) facts {
	f := facts{token: token.String(), changed: r.ChangedAt.UnixMicro(), operation: uint64(r.Operation), epoch: r.Epoch, owner: r.Owner}
	if !r.Deadline.IsZero() {
		f.deadline = r.Deadline.UnixMicro()
	}
	return f
}

func (f *facts) revision() lifecycle.Revision {
	return lifecycle.Revision(fmt.Sprintf("%s-%x-%x-%x-%x-%s", f.token, uint64(f.changed), uint64(f.deadline), f.operation, f.epoch, f.owner))
}

// record returns what the facts show of a record in a state.
func (f *facts) record(state string) *lifecycle.StoredRecord {
	r := &lifecycle.StoredRecord{State: state, ChangedAt: time.UnixMicro(f.changed), Owner: f.owner, Epoch: f.epoch}
	if f.deadline != 0 {
		r.Deadline = time.UnixMicro(f.deadline)
	}
	return r
}

// parse returns the facts in a revision. ok is false if it is none of this store.
func parse(revision lifecycle.Revision) (f facts, ok bool) {
	parts := strings.SplitN(string(revision), "-", 6)
	if len(parts) != 6 {
		return f, false
	}
	var numbers [4]uint64
	for i := range numbers {
		n, err := strconv.ParseUint(parts[i+1], 16, 64)
		if err != nil {
			return f, false
		}
		numbers[i] = n
	}
	return facts{parts[0], int64(numbers[0]), int64(numbers[1]), numbers[2], numbers[3], parts[5]}, true
}

// entries returns the index entries of a record, with their values.
func (s *Store) entries(key lifecycle.Key, state string, f *facts, sequence uint64) map[string]string {
	machine, id := key.Machine, key.ID
	list := map[string]string{
		s.key(states, machine, state, id):                 string(f.revision()),
		s.key(times, machine, hex(uint64(f.changed)), id): strconv.FormatUint(sequence, 10),
	}
	if f.deadline != 0 {
		list[s.key(deadlines, machine, hex(uint64(f.deadline)), id)] = ""
	}
	if f.owner != "" {
		list[s.key(owners, machine, f.owner, hex(f.epoch), id)] = ""
	}
	life := lifecycle.OwnerRef{Name: id, Epoch: f.operation}
	if key == life.Key() && life.Alive(&lifecycle.StoredRecord{State: state, Operation: lifecycle.OpID(f.operation)}) {
		list[s.life(life)] = ""
	}
	return list
}

// life returns the key that exists while an owner is alive. Heartbeats do not change it.
func (s *Store) life(o lifecycle.OwnerRef) string { return s.key(lives, o.Name, hex(o.Epoch)) }

// checkKey refuses what is no key of an object.
func checkKey(key lifecycle.Key) error {
	if key.Machine == "" || key.ID == "" {
		return fmt.Errorf("%w: key without a machine or an id", lifecycle.ErrInvalid)
	}
	return checkNames(key.Machine, key.ID)
}

// checkNames refuses names that are ambiguous in a key, or that JSON does not keep.
func checkNames(names ...string) error {
	for _, name := range names {
		if strings.Contains(name, separator) || !utf8.ValidString(name) {
			return fmt.Errorf("%w: name %.300q is not UTF-8 without NUL", lifecycle.ErrInvalid, name)
		}
	}
	return nil
}
