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
	types := map[string]string{"start": blazar.StartLease, "before": blazar.BeforeEndLease, "end": blazar.EndLease}
	for _, text := range texts {
		var what, lease string
		var hour int
		_, err := fmt.Sscanf(text, "%s %s %d", &what, &lease, &hour)
		require.NoError(t, err)
		list = append(list, blazar.Due{
			ID: text, Lease: lease, Type: or(types[what], what), Time: zeroHour.Add(time.Duration(hour) * time.Hour),
		})
	}
	return list
}

func TestBatches(t *testing.T) {
	for name, c := range map[string]struct {
		due  []string
		want string
	}{
		"nothing": {nil, ""},
		"one":     {[]string{"start A 1"}, "start A 1"},
		"at one time: before ends, ends, starts": {
			[]string{"start A 3", "end B 3", "before C 3", "end D 3", "start E 3"},
			"before C 3 | end B 3, end D 3 | start A 3, start E 3",
		},
		"at one time, of one lease too": {
			[]string{"before A 3", "start A 3", "end B 3", "before C 3"},
			"before C 3 | end B 3 | start A 3 | before A 3",
		},
		"one after the other": {
			[]string{"start B 3", "end B 5", "start A 1", "end A 3"},
			"start A 1 | end A 3 | start B 3 | end B 5",
		},
		"starts side by side, though one is later; who began long ago ends first": {
			[]string{"start B 2", "start A 1", "end C 4"}, "end C 4 | start A 1, start B 2",
		},
		"an end in between": {[]string{"start B 2", "start A 1", "end C 2"}, "end C 2 | start A 1, start B 2"},
		"what a lease that starts has to do comes after, and keeps nobody else": {
			[]string{"start A 3", "end B 3", "before B 3", "before A 3", "end A 3", "end C 3", "end D 4"},
			"before B 3 | end B 3, end C 3, end D 4 | start A 3 | before A 3 | end A 3",
		},
		"whole leases side by side": {
			[]string{"start A 1", "before A 2", "start B 3", "end B 4", "end A 5"},
			"start A 1, start B 3 | before A 2 | end B 4, end A 5",
		},
		"whole leases, one after the other": {
			[]string{"start A 1", "before A 2", "end A 3", "start B 3", "before B 4", "end B 5", "start C 6"},
			"start A 1 | before A 2 | end A 3 | start B 3 | before B 4 | end B 5 | start C 6",
		},
		"two before one end": {
			[]string{"end A 3", "before A 2", "before A 1"}, "before A 1, before A 2 | end A 3",
		},
		"before an end that was put forward": {[]string{"end A 3", "before A 4", "start A 1"}, "start A 1 | before A 4 | end A 3"},
		"a lease of no time": {
			[]string{"end A 3", "before A 2", "start A 3", "end B 3"}, "end B 3 | start A 3 | before A 2 | end A 3",
		},
		"unknown": {[]string{"end A 3", "dance A 3"}, "dance A 3 | end A 3"},
	} {
		var got []string
		for _, batch := range blazar.Batches(due(t, c.due...)) {
			var ids []string
			for _, d := range batch {
				ids = append(ids, d.ID)
			}
			got = append(got, strings.Join(ids, ", "))
		}
		require.Equal(t, c.want, strings.Join(got, " | "), name)
	}
}

// Whatever is due: nothing is lost, a batch is of one type, a lease starts before
// it does anything else and ends last, and who has ended has ended before somebody
// else starts at that time or later; or before anybody starts, if it has begun.
func TestBatchesKeepTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []blazar.Due
		for lease := range rapid.IntRange(0, 6).Draw(t, "leases") {
			start := rapid.IntRange(0, 6).Draw(t, "start")
			end := start + rapid.IntRange(1, 6).Draw(t, "length")
			before := rapid.IntRange(start, end-1).Draw(t, "before")
			for kind, hour := range map[string]int{blazar.StartLease: start, blazar.EndLease: end, blazar.BeforeEndLease: before} {
				id := fmt.Sprintf("%s %d", kind, lease)
				if rapid.Bool().Draw(t, id) {
					all = append(all, blazar.Due{ID: id, Lease: fmt.Sprint(lease), Type: kind, Time: zeroHour.Add(time.Duration(hour) * time.Hour)})
				}
			}
		}
		slices.SortFunc(all, func(a, b blazar.Due) int { return strings.Compare(a.ID, b.ID) })
		given := slices.Clone(all)
		place := map[string]int{}
		for i, batch := range blazar.Batches(rapid.Permutation(all).Draw(t, "order")) {
			for _, d := range batch {
				place[d.ID] = i
				if d.Type != batch[0].Type {
					t.Fatalf("a batch of %s and %s", batch[0].ID, d.ID)
				}
			}
		}
		if len(place) != len(given) {
			t.Fatalf("%d of %d events are in batches", len(place), len(given))
		}
		starts := map[string]bool{}
		for _, d := range given {
			starts[d.Lease] = starts[d.Lease] || d.Type == blazar.StartLease
		}
		rank := []string{blazar.StartLease, blazar.BeforeEndLease, blazar.EndLease}
		for _, a := range given {
			for _, b := range given {
				own := a.Lease == b.Lease && slices.Index(rank, a.Type) < slices.Index(rank, b.Type)
				other := a.Lease != b.Lease && a.Type == blazar.EndLease && b.Type == blazar.StartLease && (!a.Time.After(b.Time) || !starts[a.Lease])
				if (own || other) && place[a.ID] >= place[b.ID] {
					t.Fatalf("%s at %v comes after %s at %v", a.ID, a.Time, b.ID, b.Time)
				}
			}
		}
	})
}
