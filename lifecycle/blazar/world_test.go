package blazar_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/blazar"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// watched is a memory store that writes down every commit, and looks after each
// whether the statuses of the lease, its reservations and its events go together.
type watched struct {
	*lifecycle.MemoryStore
	look *blazar.Service // a service on the store itself

	mu      sync.Mutex
	commits []string
	wrong   []string
}

func watch() *watched {
	store := &lifecycle.MemoryStore{KeepHistory: -1}
	return &watched{MemoryStore: store, look: blazar.New(store, nil)}
}

func (w *watched) Commit(ctx context.Context, c *lifecycle.Commit) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.MemoryStore.Commit(ctx, c); err != nil {
		return err
	}
	var texts []string
	for _, ch := range c.Changes {
		if ch.MetadataOnly || ch.To.Machine == "interlock.owner" || ch.To.Machine == "calendar" {
			continue
		}
		texts = append(texts, fmt.Sprintf("%s %s -> %s", shortName(ch.To.ID), or(ch.From, "-"), ch.To.State))
		w.check(ch.To.ID)
	}
	if got, want := w.calendar(); !slices.Equal(got, want) {
		w.wrong = append(w.wrong, fmt.Sprintf("the calendar has %v, and UNDONE are %v", got, want))
	}
	if len(texts) > 0 {
		lease, _, _ := strings.Cut(c.Changes[0].To.ID, "/")
		w.commits = append(w.commits, lease+": "+strings.Join(texts, ", "))
	}
	return nil
}

// calendar returns what is in it, and what should be: what is UNDONE, by time.
func (w *watched) calendar() (got, want []string) {
	notes, err := w.MemoryStore.List(context.Background(), lifecycle.Query{Machine: "calendar", Limit: lifecycle.MaxPage})
	if err != nil {
		return []string{err.Error()}, nil
	}
	for _, n := range notes {
		got = append(got, n.ID)
	}
	undone := lifecycle.Select[blazar.EventState]{States: []blazar.EventState{blazar.EventUndone}}
	for e, err := range w.look.Events.All(context.Background(), undone) {
		if err != nil {
			return got, []string{err.Error()}
		}
		want = append(want, e.Payload.Time.UTC().Format("2006-01-02T15:04:05.000000000Z/")+e.ID)
	}
	slices.Sort(want)
	return got, want
}

// check looks at one lease, by the document's table as the tests have it.
func (w *watched) check(id string) {
	id, _, _ = strings.Cut(id, "/")
	lease, err := w.look.GetLease(context.Background(), id)
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
		if list, err := w.look.Reservations.List(context.Background(), lifecycle.Select[blazar.ReservationState]{After: id + "/"}); err != nil ||
			len(list) > 0 && strings.HasPrefix(list[0].ID, id+"/") {
			w.wrong = append(w.wrong, fmt.Sprintf("%s is gone, and %v is not: %v", id, list, err))
		}
		return
	case err != nil:
		w.wrong = append(w.wrong, err.Error())
		return
	case lease.Status == blazar.LeaseError:
		return // the document has no line for it
	}
	cells := documentLine(string(lease.Status))
	for _, r := range lease.Reservations {
		if !satisfies(cells[0], string(r.Status)) {
			w.wrong = append(w.wrong, fmt.Sprintf("%s is %s, and %s is %s", id, lease.Status, r.ID, r.Status))
		}
	}
	for _, e := range lease.Events {
		cell := map[string]string{blazar.StartLease: cells[1], blazar.EndLease: cells[2]}[e.Type]
		if cell != "" && !satisfies(cell, string(e.Status)) {
			w.wrong = append(w.wrong, fmt.Sprintf("%s is %s, and %s is %s", id, lease.Status, e.ID, e.Status))
		}
	}
}

// ends fails the test if anything was wrong at any time.
func (w *watched) ends(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	require.Empty(t, w.wrong)
}

// take returns the commits since the last time.
func (w *watched) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := w.commits
	w.commits = nil
	return list
}

// documentLine is a line of the document's table: what it says of reservations,
// of start_lease and of end_lease.
func documentLine(status string) []string {
	for line := range strings.Lines(strings.TrimSpace(relationships)) {
		var cells []string
		for cell := range strings.SplitSeq(line, "|") {
			cells = append(cells, strings.TrimSpace(cell))
		}
		if cells[0] == status {
			return cells[1:]
		}
	}
	return []string{"", "", ""}
}

// shortName is the last part of an id.
func shortName(id string) string { return id[strings.LastIndexByte(id, '/')+1:] }

func or(text, other string) string {
	if text == "" {
		return other
	}
	return text
}
