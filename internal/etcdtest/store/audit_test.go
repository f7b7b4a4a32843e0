package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/internal/etcdtest"
)

// audited is what the index entries of an object follow from.
type audited struct {
	Machine, ID, State, Owner string
	Operation, Epoch          uint64
	ChangedAt, Deadline       time.Time
}

// audit requires that the index has the entries of every record, and no others. It
// computes them from the values of the records, without the code of the store.
func (p place) audit(t testing.TB) {
	t.Helper()
	client := etcdtest.Client(t, p.server.Endpoint())
	all, err := client.Get(context.WithoutCancel(t.Context()), p.prefix, clientv3.WithPrefix())
	require.NoError(t, err)
	var want, have []string
	for _, kv := range all.Kvs {
		kind, rest, _ := strings.Cut(strings.TrimPrefix(string(kv.Key), p.prefix), "/")
		switch kind {
		case "state", "time", "deadline", "owner", "life":
			have = append(have, kind+" "+rest)
		case "record", "removed":
			var r audited
			require.NoError(t, json.Unmarshal(kv.Value, &r))
			require.Equal(t, r.Machine+"\x00"+r.ID, rest)
			require.Equal(t, kind == "record", r.State != "")
			entry := func(kind string, parts ...string) { want = append(want, kind+" "+strings.Join(parts, "\x00")) }
			entry("state", r.Machine, r.State, r.ID)
			entry("time", r.Machine, fmt.Sprintf("%016x", r.ChangedAt.UnixMicro()), r.ID)
			if !r.Deadline.IsZero() {
				entry("deadline", r.Machine, fmt.Sprintf("%016x", r.Deadline.UnixMicro()), r.ID)
			}
			if r.Owner != "" {
				entry("owner", r.Machine, r.Owner, fmt.Sprintf("%016x", r.Epoch), r.ID)
			}
			if r.Machine == "interlock.owner" && r.State == "alive" {
				entry("life", r.ID, fmt.Sprintf("%016x", r.Operation))
			}
		}
	}
	slices.Sort(want)
	slices.Sort(have)
	require.Equal(t, want, have, "the index of %q", p.prefix)
}
