package locktest

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

//go:embed testdata/locktree.json
var vectors []byte

// RunVectors runs a file of vectors: sequences of calls with their answers, each in
// a subtest. Run calls it with the file of the suite, testdata/locktree.json, whose
// rules explain the steps. RunVectors refuses a file with an unknown field. An unknown
// operation or answer fails its sequence.
//
// A handle of the file is the owner of its requests; "with" compares owners.
func RunVectors(t *testing.T, h Harness, data []byte) {
	t.Helper()
	h.check("RunVectors")
	sequences, err := parseVectors(data)
	if err != nil {
		t.Fatalf("locktest: read vectors: %v", err)
	}
	for _, s := range sequences {
		t.Run(s.name, func(t *testing.T) { s.run(t, &h) })
	}
}

// parseVectors makes a demand of every sequence.
func parseVectors(data []byte) (list []demand, err error) {
	var file struct {
		Format                   int
		About, Rules, Compatible any
		Groups                   map[string]string
		Sequences                []struct {
			Name, Group, Note string
			Steps             []step
		}
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		return nil, err
	}
	if file.Format != 1 || len(file.Sequences) == 0 {
		return nil, fmt.Errorf("format %d with %d sequences: format 1 is required", file.Format, len(file.Sequences))
	}
	for _, s := range file.Sequences {
		list = append(list, demand{name: s.Name, test: func(e *env) {
			e.Helper()
			require.NoError(e, e.play(s.Steps), "%s", file.Groups[s.Group])
		}})
	}
	return list, nil
}
