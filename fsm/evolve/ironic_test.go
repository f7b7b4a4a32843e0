package evolve_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm/evolve"
	"github.com/interlock-go/interlock/fsm/internal/tabletest"
)

// versionDiff is the difference to the version before, as the history lists it.
type versionDiff struct {
	StatesAdded        []string    `json:"states_added"`
	StatesRemoved      []string    `json:"states_removed"`
	TransitionsAdded   [][3]string `json:"transitions_added"`
	TransitionsRemoved [][3]string `json:"transitions_removed"`
	AttrsChanged       []string    `json:"attrs_changed"`
}

// ironicFacts returns the differences in the form of the history.
func ironicFacts(e *evolve.Report) versionDiff {
	d := versionDiff{
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
	versions := tabletest.ReadVersions(t)
	require.Len(t, versions, 10)
	sorted := func(d versionDiff) versionDiff {
		for _, list := range [][][3]string{d.TransitionsAdded, d.TransitionsRemoved} {
			slices.SortFunc(list, func(a, b [3]string) int { return slices.Compare(a[:], b[:]) })
		}
		slices.Sort(d.StatesAdded)
		return d
	}
	for i := 1; i < len(versions); i++ {
		e, err := evolve.Diff(parsed(t, versions[i-1].Document()), parsed(t, versions[i].Document()), nil)
		require.NoError(t, err)
		var want versionDiff
		require.NoError(t, json.Unmarshal(versions[i].Diff, &want))
		require.Empty(t, cmp.Diff(sorted(want), ironicFacts(e)), "version %d", i+1)
	}
}

// TestVerdictsOfAHistory requires the verdict and the worst hazard of consecutive
// versions.
func TestVerdictsOfAHistory(t *testing.T) {
	versions := tabletest.ReadVersions(t)
	want := []string{
		2:  `drain: a new node cannot read what an old one has written: the state "inspectfail" is unknown`,
		3:  `unsafe: on provide in "manageable": an old node moves the object to "available", a new node moves`,
		4:  `unsafe: on clean in "clean failed": an old node moves the object to "cleaning"`,
		5:  `unsafe: on adding an object by any actor: an old node moves the object to "available", a new node moves the object to "enroll"`,
		6:  `unsafe: an old node cannot read what a new one has written: the state "clean wait" is unknown`,
		7:  `compatible: on abort in "clean wait": an old node refuses it`,
		8:  `: an old node refuses it, a new node moves`,
		9:  `unsafe: an old node cannot read what a new one has written: the state "adopting" is unknown`,
		10: `unsafe: an old node cannot read what a new one has written: the state "rescuing" is unknown`,
	}
	for i := 1; i < len(versions); i++ {
		e, err := evolve.Diff(parsed(t, versions[i-1].Document()), parsed(t, versions[i].Document()), nil)
		require.NoError(t, err)
		require.NotEmpty(t, e.Hazards)
		require.Contains(t, e.Level.String()+": "+e.Hazards[0].Message, want[i+1])
	}
}
