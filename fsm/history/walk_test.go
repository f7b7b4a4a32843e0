package history_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/history"
	"github.com/interlock-go/interlock/lifecycle/blazar"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
	"github.com/interlock-go/interlock/lifecycle/lattice"
	"github.com/interlock-go/interlock/lifecycle/ovc"
	"github.com/interlock-go/interlock/lifecycle/tumblebug"
)

// walker generates histories from the table of a machine, one step after the other, as
// a manager does. It shares no code with Check.
type walker struct {
	t       *fsm.Table
	pick    func(n int) int
	now     time.Time
	objects map[string]*walked
}

type walked struct {
	exists        bool
	state, origin int
	sequence, op  uint64
}

func newWalker(t *fsm.Table, pick func(n int) int) *walker {
	return &walker{t: t, pick: pick, now: time.Unix(1_700_000_000, 0).UTC(), objects: map[string]*walked{}}
}

// step returns the next row of an object, or false if there is none.
func (w *walker) step(id string) (history.Row, bool) {
	t := w.t
	o := w.objects[id]
	if o == nil {
		o = &walked{}
		w.objects[id] = o
	}
	row := history.Row{Machine: t.Name, ID: id}
	state, origin, event := o.state, o.origin, -1
	if !o.exists {
		state = t.Initial
		origin = state
	}
	if !o.exists && t.States[state].Kind != fsm.Absent {
		o.exists, o.state, o.origin = true, state, state
		o.op++
		row.To, row.Origin = t.States[state].Name, t.States[state].Name
	} else {
		type choice struct{ event, row, actor int }
		var choices []choice
		for e := range t.Events {
			for a, actor := range t.Actors {
				rows, _ := t.Candidates(nil, state, origin, e, actor, true)
				for _, r := range rows {
					choices = append(choices, choice{e, r, a})
				}
			}
		}
		if len(choices) == 0 {
			return row, false
		}
		c := choices[w.pick(len(choices))]
		event = c.event
		row.Actor = t.Actors[c.actor]
		if o.exists {
			row.From, row.FromOrigin = t.States[state].Name, t.States[origin].Name
		}
		next, home := t.After(state, origin, c.row)
		if t.States[next].Kind == fsm.Transitional && (t.States[state].Kind.Resting() || t.Rows[c.row].Supersede) || !o.exists {
			o.op++
		}
		o.state, o.origin, o.exists = next, home, t.States[next].Kind != fsm.Absent
		row.To, row.Origin = t.States[next].Name, t.States[home].Name
	}
	if event >= 0 {
		row.Event = t.Events[event]
	}
	o.sequence++
	w.now = w.now.Add(time.Second)
	row.Sequence, row.Operation, row.At = o.sequence, o.op, w.now
	return row, true
}

// TestCheckWalks requires that walks through the tables of all machines have no finding,
// in every order, and that one planted fault gives one finding at its row.
func TestCheckWalks(t *testing.T) {
	machines := shipped()
	rapid.Check(t, func(t *rapid.T) {
		table := rapid.SampledFrom(machines).Draw(t, "machine")
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		w := newWalker(table, random.IntN)
		var rows []history.Row
		for range rapid.IntRange(1, 60).Draw(t, "rows") {
			if row, ok := w.step(fmt.Sprintf("o%d", random.IntN(3))); ok {
				rows = append(rows, row)
			}
		}
		tables := []history.TableVersion{{Table: table}}
		sum, err := history.Check(seq(nil, rows...), tables, nil)
		require.NoError(t, err)
		require.True(t, sum.OK(), "%s\n%v", sum, rows)
		require.Equal(t, len(rows), sum.Rows)

		// A feed that skips and repeats rows and has fewer fields has no fault.
		var feed []history.Row
		for _, row := range rows {
			switch random.IntN(5) {
			case 0:
				continue
			case 1:
				feed = append(feed, row)
			case 2:
				row.Actor, row.Origin, row.FromOrigin, row.Operation, row.At = "", "", "", 0, time.Time{}
			}
			feed = append(feed, row)
		}
		if len(feed) > 0 {
			sum, err = history.Check(seq(nil, feed...), tables, &history.Config{Gaps: true})
			require.NoError(t, err)
			require.True(t, sum.OK(), "%s\n%v", sum, feed)

			// And one that is broken where the table shows it has that one.
			at := random.IntN(len(feed))
			row, id := &feed[at], ""
			switch random.IntN(4) {
			case 0:
				row.Event, id = "nothing like it", "unknown-name"
			case 1:
				row.To, id = "nowhere", "unknown-name"
			case 2:
				row.Version, id = "another", "unknown-version"
			case 3:
				if row.Event != "" {
					row.Actor, id = "a stranger", "wrong-actor"
				}
			}
			again := slices.ContainsFunc(feed[:at], func(r history.Row) bool { return r.ID == row.ID && r.Sequence == row.Sequence })
			sum, err = history.Check(seq(nil, feed...), tables, &history.Config{Gaps: true})
			require.NoError(t, err)
			switch {
			case id == "":
			case !again:
				require.NotEmpty(t, sum.Findings, id)
				require.Equal(t, id, sum.Findings[0].ID, "%s", sum)
				require.Equal(t, at+1, sum.Findings[0].Row)
			case id != "unknown-version": // the row comes twice, and the second is skipped
				require.True(t, sum.OK(), "%s", sum)
			}
		}

		// One row is broken.
		broken := slices.Clone(rows)
		at := random.IntN(len(broken))
		row := &broken[at]
		id := row.ID
		followed := slices.ContainsFunc(broken[at+1:], func(r history.Row) bool { return r.ID == row.ID })
		preceded := slices.ContainsFunc(broken[:at], func(r history.Row) bool { return r.ID == row.ID })
		var want []string
		switch random.IntN(8) {
		case 0:
			row.To = "nowhere"
			want = []string{"unknown-name"}
		case 1:
			row.Event = "nothing like it"
			want = []string{"unknown-name"}
		case 2:
			if row.Event == "" {
				return
			}
			row.Actor = "a stranger"
			want = []string{"wrong-actor"}
		case 3:
			row.Machine = "another"
			want = []string{"unknown-machine"}
		case 4:
			row.Version = "another"
			want = []string{"unknown-version"}
		case 5:
			if !preceded {
				return
			}
			row.At = row.At.Add(-time.Hour)
			want = []string{"time-backwards"}
		case 6:
			if !followed { // the history does not show a last one
				return
			}
			broken = slices.Delete(broken, at, at+1)
			want = []string{"skipped-sequence", "no-beginning"}
		case 7:
			broken = slices.Insert(broken, at, *row)
			want = []string{"repeated-sequence"}
		}
		sum, err = history.Check(seq(nil, broken...), tables, nil)
		require.NoError(t, err)
		require.NotEmpty(t, sum.Findings, "%v", want)
		require.Contains(t, want, sum.Findings[0].ID, "%s", sum)
		require.Equal(t, id, sum.Findings[0].Object)
		require.LessOrEqual(t, len(sum.Findings), 4, "one mistake is not a flood: %s", sum)
	})
}

// shipped returns the machines of the five systems.
func shipped() []*fsm.Table {
	return []*fsm.Table{
		edgecloud.ClusterInst.Table(), edgecloud.AppInst.Table(), edgecloud.CloudletCreate.Table(), edgecloud.CloudletUpgrade.Table(),
		ovc.Account.Table(), ovc.Cloudspace.Table(), ovc.Disk.Table(), ovc.Image.Table(), ovc.Node.Table(), ovc.VM.Table(),
		blazar.Lease.Table(), blazar.Reservation.Table(), blazar.Event.Table(),
		lattice.System.Table(), lattice.Service.Table(), lattice.Deploy.Table(), lattice.Teardown.Table(),
		tumblebug.MCI.Table(), tumblebug.VM.Table(),
	}
}
