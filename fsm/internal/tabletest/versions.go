package tabletest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Version is one of a series of versions of a table in the form that has neither
// kinds nor actors nor an initial state: states are stable or not, and those that
// are not have the stable state that they are heading for.
type Version struct {
	N           int
	Date        string
	States      []VersionState
	Transitions []VersionEdge
	Diff        json.RawMessage `json:"diff_from_previous"` // as the history lists it
}

// VersionState is a state of a [Version]. Target is nil if it heads for none.
type VersionState struct {
	Name   string
	Stable bool
	Target *string
}

// VersionEdge is a transition of a [Version].
type VersionEdge struct{ From, Event, To string }

// ReadVersions reads the published series, in order.
func ReadVersions(t testing.TB) (versions []*Version) {
	files, err := filepath.Glob("../testdata/history/ironic/*.json")
	require.NoError(t, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		v := &Version{}
		require.NoError(t, json.Unmarshal(data, v))
		versions = append(versions, v)
	}
	require.NotEmpty(t, versions)
	slices.SortFunc(versions, func(a, b *Version) int { return a.N - b.N })
	return versions
}

// Document returns the version as a table without actors. Every unstable state is
// transitional. Objects start in enroll, or in available if the version has no enroll.
func (v *Version) Document() *Document {
	d := &Document{Name: "ironic", Initial: "available"}
	for _, s := range v.States {
		state := State{Name: s.Name, Kind: "stable"}
		if !s.Stable {
			state.Kind = "transitional"
		}
		if s.Target != nil {
			state.Target = *s.Target
		}
		d.States = append(d.States, state)
		if s.Name == "enroll" {
			d.Initial = s.Name
		}
	}
	for _, e := range v.Transitions {
		d.Transitions = append(d.Transitions, Edge{From: e.From, Event: e.Event, To: e.To})
	}
	return d
}
