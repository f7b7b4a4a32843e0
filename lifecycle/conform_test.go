package lifecycle_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/history"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// The rows that managers write conform to their tables, for random calls, also after
// they were encoded as JSON.
func TestHistoryConformsToTheTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var feed bytes.Buffer
		lines := json.NewEncoder(&feed)
		changes := 0
		config := func() *lifecycle.Config[event] {
			return &lifecycle.Config[event]{Observer: lifecycle.Observer{Changed: func(_ context.Context, row lifecycle.CommittedChange) {
				changes++
				require.NoError(t, lines.Encode(row.HistoryRow))
			}}}
		}
		store := (&lifecycle.MemoryStore{KeepHistory: -1}).KeepRemoved(-1)
		defer store.Close()
		machines := []*fsm.Machine[state, event, size]{sizedVM, lease}
		managers := []*sizedManager{lifecycle.Must(sizedVM, store, config()), lifecycle.Must(lease, store, config())}
		ctx := t.Context()
		for range rapid.IntRange(1, 80).Draw(t, "calls") {
			kind := rapid.IntRange(0, 1).Draw(t, "manager")
			m, table := managers[kind], machines[kind].Table()
			id := rapid.SampledFrom([]string{"a", "b", "\"ü\""}).Draw(t, "id")
			e := event(rapid.SampledFrom(table.Events).Draw(t, "event"))
			actor := rapid.SampledFrom(table.Actors).Draw(t, "actor")
			change := &lifecycle.Change[size]{Force: rapid.Bool().Draw(t, "force"), Reason: "because"}
			switch rapid.IntRange(0, 8).Draw(t, "verb") {
			case 0:
				_, _ = m.Create(ctx, id, e, actor, size{N: 1}, nil)
			case 1:
				_, _ = m.Add(ctx, id, initial(m), actor, size{N: 1}, nil)
			case 2:
				if r, err := m.Get(ctx, id); err == nil {
					_, _ = m.Report(ctx, id, r.Operation, e, actor, nil)
				}
			case 3:
				to := state(rapid.SampledFrom(table.States).Draw(t, "state").Name)
				_, _ = m.Override(ctx, id, to, user, "repaired by hand", nil)
			case 4:
				_, _ = m.Add(ctx, id, state(rapid.SampledFrom(table.States).Draw(t, "state").Name), actor, size{N: 1}, nil)
			default:
				_, _ = m.Fire(ctx, id, e, actor, change)
			}
		}
		if changes == 0 {
			return
		}
		tables := []history.TableVersion{{Table: sizedVM.Table()}, {Table: lease.Table()}}
		sum, err := history.Check(history.Read(&feed), tables, nil)
		require.NoError(t, err)
		require.True(t, sum.OK(), sum)
		require.Equal(t, changes, sum.Rows)
	})
}

func TestHistoryRowsAsJSON(t *testing.T) {
	row := lifecycle.HistoryRow{
		Key: lifecycle.Key{Machine: "vm", ID: "v1"}, Sequence: 7, Revision: "r", Token: lifecycle.NewToken(), Operation: 3,
		From: "Ready", FromOrigin: "Ready", To: "Updating", Origin: "Ready", Event: "update", Actor: user, Reason: "larger",
		At: time.Date(2026, 1, 2, 15, 4, 5, 6, time.UTC),
	}
	text, err := json.Marshal(row)
	require.NoError(t, err)
	var back lifecycle.HistoryRow
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, row, back)
	for read, err := range history.Read(bytes.NewReader(text)) {
		require.NoError(t, err)
		require.Equal(t, history.Row{
			Machine: "vm", ID: "v1", Sequence: 7, Operation: 3, From: "Ready", FromOrigin: "Ready", To: "Updating",
			Origin: "Ready", Event: "update", Actor: "user", At: row.At, Line: 1,
		}, read)
	}
	for _, wrong := range []string{"", "0", "zz", row.Token.String() + "00", row.Token.String()[1:]} {
		require.Error(t, back.Token.UnmarshalText([]byte(wrong)), wrong)
		require.Equal(t, row.Token, back.Token, "nothing was changed")
	}
}

// The rows of a store are judged by the table of their time.
func ExampleHistoryRow() {
	var audit bytes.Buffer // a file, in real life
	lines := json.NewEncoder(&audit)
	clusters := lifecycle.Must(edgecloud.ClusterInst, lifecycle.NewMemoryStore(), &lifecycle.Config[edgecloud.Event]{
		Observer: lifecycle.Observer{Changed: func(_ context.Context, row lifecycle.CommittedChange) { _ = lines.Encode(row.HistoryRow) }},
	})
	ctx := context.Background()
	c, _ := clusters.Create(ctx, "c1", edgecloud.Create, edgecloud.User, edgecloud.ClusterSpec{}, nil)
	_, _ = clusters.Report(ctx, "c1", c.Operation, edgecloud.Done, edgecloud.CRM, nil)
	forged := strings.Replace(audit.String(), `"Done"`, `"Undo"`, 1)

	tables := []history.TableVersion{{Table: edgecloud.ClusterInst.Table()}}
	for _, text := range []string{audit.String(), forged} {
		sum, err := history.Check(history.Read(strings.NewReader(text)), tables, nil)
		fmt.Println(sum, err)
	}
	// Output:
	// 2 rows of 1 object: 0 findings <nil>
	// 2 rows of 1 object: 1 finding
	// line 2 clusterinst "c1" #2: illegal-step: CreateRequested -Undo-> Ready by crm; expected CreateRequested -Working-> Creating, CreateRequested -Done-> Ready, CreateRequested -Fail-> CreateError or CreateRequested|Creating -TimedOut-> CreateError <nil>
}
