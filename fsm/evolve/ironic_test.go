package evolve_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/evolve"
	"github.com/interlock-go/interlock/fsm/internal/tabletest"
)

// ironicVersions returns the published versions: every unstable state is transitional,
// there is one actor, and objects start in enroll, or in available if the version has
// no enroll.
func ironicVersions(t *testing.T) (versions []*tabletest.Version, tables []*fsm.Table) {
	versions = tabletest.ReadVersions(t)
	require.Len(t, versions, 10)
	for _, v := range versions {
		type object = map[string]any
		doc := object{"name": "ironic", "initial": "available", "actors": []string{"operator"}}
		var states, transitions []object
		for _, s := range v.States {
			state := object{"name": s.Name, "kind": "stable"}
			if !s.Stable {
				state["kind"] = "transitional"
			}
			if s.Target != nil {
				state["target"] = *s.Target
			}
			states = append(states, state)
			if s.Name == "enroll" {
				doc["initial"] = s.Name
			}
		}
		for _, e := range v.Transitions {
			transitions = append(transitions, object{"from": e.From, "event": e.Event, "to": e.To})
		}
		doc["states"], doc["transitions"] = states, transitions
		document, err := json.Marshal(doc)
		require.NoError(t, err)
		tables = append(tables, tabletest.Parse(t, string(document)))
	}
	return versions, tables
}

// ironicFacts returns the differences in the form of the history.
func ironicFacts(e *evolve.Report) tabletest.VersionDiff {
	d := tabletest.VersionDiff{
		StatesAdded: []string{}, StatesRemoved: []string{}, AttrsChanged: []string{},
		TransitionsAdded: [][3]string{}, TransitionsRemoved: [][3]string{},
	}
	for _, x := range e.Differences {
		switch x.Subject + " " + x.Change {
		case "state added":
			d.StatesAdded = append(d.StatesAdded, x.New)
		case "state removed":
			d.StatesRemoved = append(d.StatesRemoved, x.Old)
		case "state changed":
			if !slices.Equal(x.Fields, []string{"initial"}) { // which the history does not speak of
				d.AttrsChanged = append(d.AttrsChanged, x.Old)
			}
		case "row added", "row removed", "row retargeted":
			if x.OldTo != "" {
				d.TransitionsRemoved = append(d.TransitionsRemoved, [3]string{x.From, x.Event, x.OldTo})
			}
			if x.NewTo != "" {
				d.TransitionsAdded = append(d.TransitionsAdded, [3]string{x.From, x.Event, x.NewTo})
			}
		}
	}
	for _, list := range [][]string{d.StatesAdded, d.StatesRemoved, d.AttrsChanged} {
		slices.Sort(list)
	}
	for _, list := range [][][3]string{d.TransitionsAdded, d.TransitionsRemoved} {
		slices.SortFunc(list, func(a, b [3]string) int { return slices.Compare(a[:], b[:]) })
	}
	return d
}

// TestDiffOfAHistory compares the differences of consecutive versions with the list of
// the history.
func TestDiffOfAHistory(t *testing.T) {
	versions, tables := ironicVersions(t)
	sorted := func(d tabletest.VersionDiff) tabletest.VersionDiff {
		for _, list := range [][][3]string{d.TransitionsAdded, d.TransitionsRemoved} {
			slices.SortFunc(list, func(a, b [3]string) int { return slices.Compare(a[:], b[:]) })
		}
		slices.Sort(d.StatesAdded)
		return d
	}
	for i := 1; i < len(tables); i++ {
		e, err := evolve.Diff(tables[i-1], tables[i], nil)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(sorted(*versions[i].Diff), ironicFacts(e)), "version %d", i+1)
	}
}

// TestVerdictsOfAHistory requires the verdict and the worst hazard of consecutive
// versions.
func TestVerdictsOfAHistory(t *testing.T) {
	_, tables := ironicVersions(t)
	want := []string{
		2:  `drain: a new node cannot read what an old one has written: the state "inspectfail" is unknown`,
		3:  `unsafe: on provide by operator in "manageable" an old node moves the object to "available", a new node moves`,
		4:  `unsafe: an old node accepts clean by operator in "clean failed" and moves the object to "cleaning"`,
		5:  `unsafe: an old node adds objects in "available", a new one in "enroll"`,
		6:  `unsafe: an old node cannot read what a new one has written: the state "clean wait" is unknown`,
		7:  `compatible: an old node refuses abort by operator in "clean wait"`,
		8:  `compatible: an old node refuses`,
		9:  `unsafe: an old node cannot read what a new one has written: the state "adopting" is unknown`,
		10: `unsafe: an old node cannot read what a new one has written: the state "rescuing" is unknown`,
	}
	for i := 1; i < len(tables); i++ {
		e, err := evolve.Diff(tables[i-1], tables[i], nil)
		require.NoError(t, err)
		require.NotEmpty(t, e.Hazards)
		require.Contains(t, e.Level.String()+": "+e.Hazards[0].Message, want[i+1])
	}
}
