package etcdstore

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lock"
)

// record is the value of a record: a [lifecycle.StoredRecord] with the names of its
// fields in etcd. The conversion between the two fails to compile when they differ.
type record struct {
	lifecycle.Key
	State       string             `json:"state,omitempty"`
	Origin      string             `json:"origin,omitempty"`
	Target      string             `json:"target,omitempty"`
	Revision    lifecycle.Revision `json:"revision"`
	Sequence    uint64             `json:"sequence"`
	Operation   lifecycle.OpID     `json:"operation,omitempty"`
	Admission   lifecycle.Token    `json:"admission,omitzero"`
	ChangeToken lifecycle.Token    `json:"changeToken,omitzero"`
	Fence       lock.Token         `json:"fence,omitempty"`
	Version     string             `json:"version,omitempty"`
	Owner       string             `json:"owner,omitempty"`
	Epoch       uint64             `json:"epoch,omitempty"`
	Work        string             `json:"work,omitempty"`
	Args        []byte             `json:"args,omitempty"`
	WorkOptions []byte             `json:"workOptions,omitempty"`
	Deadline    time.Time          `json:"deadline,omitzero"`
	ChangedAt   time.Time          `json:"changedAt"`
	Actor       fsm.Actor          `json:"actor,omitempty"`
	Event       string             `json:"event,omitempty"`
	Reason      string             `json:"reason,omitempty"`
	Payload     []byte             `json:"payload,omitempty"`
	Saved       []byte             `json:"saved,omitzero"` // nil is omitted, and empty is not
}

// message is the value of a message.
type message struct {
	Topic   string `json:"topic,omitempty"`
	Key     string `json:"key,omitempty"`
	Payload []byte `json:"payload,omitempty"`
}

func decode[T any](kv *mvccpb.KeyValue) (value T, err error) {
	if err = json.Unmarshal(kv.Value, &value); err != nil {
		err = fmt.Errorf("%w: value of key %.300q: %w", ErrLayout, kv.Key, err)
	}
	return value, err
}

func decodeRecord(kv *mvccpb.KeyValue) (lifecycle.StoredRecord, error) {
	r, err := decode[record](kv)
	return lifecycle.StoredRecord(r), err
}

// gets reads what current needs, besides the version.
func (s *Store) gets(key lifecycle.Key) []clientv3.Op {
	return []clientv3.Op{
		clientv3.OpGet(s.key(records, key.Machine, key.ID)),
		clientv3.OpGet(s.key(removed, key.Machine, key.ID)),
	}
}

// found returns the keys that the gets of a transaction have found.
func found(resp *clientv3.TxnResponse) map[string]*mvccpb.KeyValue {
	all := map[string]*mvccpb.KeyValue{}
	for _, r := range resp.Responses {
		for _, kv := range r.GetResponseRange().GetKvs() {
			all[string(kv.Key)] = kv
		}
	}
	return all
}

// current returns the record of an object, which may be absent.
func (s *Store) current(all map[string]*mvccpb.KeyValue, key lifecycle.Key) (lifecycle.StoredRecord, error) {
	for _, kind := range []string{records, removed} {
		if kv := all[s.key(kind, key.Machine, key.ID)]; kv != nil {
			return decodeRecord(kv)
		}
	}
	version := string(all[s.key(versions)].GetValue())
	n, err := floor(version)
	revision := never + lifecycle.Revision(strings.TrimPrefix(version, layout))
	return lifecycle.StoredRecord{Key: key, Revision: revision, Sequence: n, Operation: lifecycle.OpID(n)}, err
}

// floor returns the number with which keys begin that etcd does not have. It follows the
// version after [Store.AfterRestore].
func floor(version string) (n uint64, err error) {
	if _, text, raised := strings.Cut(version, "-"); raised {
		if n, err = strconv.ParseUint(text, 10, 64); err != nil {
			return 0, fmt.Errorf("%w: version %.300q", ErrLayout, version)
		}
	}
	return n, nil
}
