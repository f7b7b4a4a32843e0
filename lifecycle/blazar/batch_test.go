package blazar_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/lifecycle/blazar"
)

var zeroHour = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// due reads events of the form "start A 3": the type, the lease and the hour.
func due(t *testing.T, texts ...string) (list []blazar.Due) {
	for _, text := range texts {
		var eventType, lease string
		var hour int
		_, err := fmt.Sscanf(text, "%s %s %d", &eventType, &lease, &hour)
		require.NoError(t, err)
		list = append(list, blazar.Due{
			ID: text, Lease: lease, Type: eventType + "_lease", Time: zeroHour.Add(time.Duration(hour) * time.Hour),
		})
	}
	return list
}

func TestBatches(t *testing.T) {
	for name, tt := range map[string]struct {
		due  []string
		want string
	}{
		"none":            {nil, ""},
		"one":             {[]string{"start A 1"}, "start A 1"},
		"at one time":     {[]string{"start A 3", "end B 3", "end D 3", "start E 3"}, "end B 3, end D 3 | start A 3, start E 3"},
		"consecutive":     {[]string{"start B 3", "end B 5", "start A 1", "end A 3"}, "start A 1 | end A 3 | start B 3 | end B 5"},
		"starts together": {[]string{"start B 2", "start A 1", "end C 4"}, "start A 1, start B 2 | end C 4"},
		"end between":     {[]string{"start B 2", "start A 1", "end C 2"}, "start A 1 | end C 2 | start B 2"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, batch := range blazar.Batches(due(t, tt.due...)) {
				var ids []string
				for _, d := range batch {
					ids = append(ids, d.ID)
				}
				got = append(got, strings.Join(ids, ", "))
			}
			require.Equal(t, tt.want, strings.Join(got, " | "))
		})
	}
}

// Every event is in one batch, a batch has one type, a lease ends after it has started,
// and a start comes after every end that is not later.
func TestBatchesProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []blazar.Due
		for lease := range rapid.IntRange(0, 6).Draw(t, "leases") {
			start := rapid.IntRange(0, 6).Draw(t, "start")
			end := start + rapid.IntRange(1, 6).Draw(t, "length")
			for _, eventType := range []string{blazar.StartLease, blazar.EndLease} {
				hour := map[string]int{blazar.StartLease: start, blazar.EndLease: end}[eventType]
				id := fmt.Sprintf("%s %d", eventType, lease)
				if rapid.Bool().Draw(t, id) {
					all = append(all, blazar.Due{ID: id, Lease: fmt.Sprint(lease), Type: eventType, Time: zeroHour.Add(time.Duration(hour) * time.Hour)})
				}
			}
		}
		batch := map[string]int{}
		for i, b := range blazar.Batches(rapid.Permutation(slices.Clone(all)).Draw(t, "order")) {
			for _, d := range b {
				batch[d.ID] = i
				if d.Type != b[0].Type {
					t.Fatalf("a batch has %s and %s", b[0].ID, d.ID)
				}
			}
		}
		if len(batch) != len(all) {
			t.Fatalf("%d of %d events are in batches", len(batch), len(all))
		}
		for _, a := range all {
			for _, b := range all {
				own := a.Lease == b.Lease && a.Type == blazar.StartLease && b.Type == blazar.EndLease
				other := a.Lease != b.Lease && a.Type == blazar.EndLease && b.Type == blazar.StartLease && !a.Time.After(b.Time)
				if (own || other) && batch[a.ID] >= batch[b.ID] {
					t.Fatalf("%s at %v comes after %s at %v", a.ID, a.Time, b.ID, b.Time)
				}
			}
		}
	})
}
