package blazar_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/internal/scripttest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/blazar"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newService(t testing.TB, store lifecycle.Store, config *blazar.Config) *blazar.Service {
	t.Helper()
	s, err := blazar.New(store, config)
	require.NoError(t, err)
	return s
}

// createLease creates the lease l, which starts now.
func createLease(t testing.TB, s *blazar.Service, spec blazar.LeaseSpec) blazar.LeaseDetails {
	t.Helper()
	lease, err := s.CreateLease(t.Context(), "l", spec)
	require.NoError(t, err)
	return lease
}

func requireLease(t testing.TB, s *blazar.Service, id string, status blazar.LeaseState) blazar.LeaseDetails {
	t.Helper()
	lease, err := s.GetLease(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, status, lease.Status, lease.Reason)
	return lease
}

// checked is a store that records every commit, and checks after each one that the
// statuses of the lease, its reservations and its events match.
type checked struct {
	scripttest.Store
	service *blazar.Service // on the store itself

	mu      sync.Mutex
	commits []string
	faults  []string
}

func newChecked(t testing.TB) *checked {
	c := &checked{Store: scripttest.Store{MemoryStore: &lifecycle.MemoryStore{KeepHistory: -1}}}
	c.service = newService(t, c.MemoryStore, nil)
	c.Committed = c.record
	return c
}

func (c *checked) record(commit *lifecycle.Commit) {
	var texts []string
	for _, ch := range commit.Changes {
		if ch.MetadataOnly || ch.To.Machine == "interlock.owner" {
			continue
		}
		texts = append(texts, fmt.Sprintf("%s %s -> %s", shortName(ch.To.ID), cmp.Or(ch.From, "-"), ch.To.State))
		c.check(ch.To.ID)
	}
	if len(texts) > 0 {
		lease, _, _ := strings.Cut(commit.Changes[0].To.ID, "/")
		c.mu.Lock()
		defer c.mu.Unlock()
		c.commits = append(c.commits, lease+": "+strings.Join(texts, ", "))
	}
}

// check compares one lease with the document's table, as the tests have it.
func (c *checked) check(id string) {
	fault := func(format string, args ...any) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.faults = append(c.faults, fmt.Sprintf(format, args...))
	}
	id, _, _ = strings.Cut(id, "/")
	lease, err := c.service.GetLease(context.Background(), id)
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
		after := lifecycle.Select[blazar.ReservationState]{After: id + "/"}
		list, err := c.service.Reservations.List(context.Background(), after)
		if err != nil || len(list) > 0 && strings.HasPrefix(list[0].ID, id+"/") {
			fault("%s is deleted, and %v exists: %v", id, list, err)
		}
		return
	case err != nil:
		fault("%v", err)
		return
	case lease.Status == blazar.LeaseError:
		return // the document has no line for it
	}
	cells := documentLine(string(lease.Status))
	for _, r := range lease.Reservations {
		if !satisfies(cells[0], string(r.Status)) {
			fault("%s is %s, and %s is %s", id, lease.Status, r.ID, r.Status)
		}
	}
	for _, e := range lease.Events {
		cell := map[string]string{blazar.StartLease: cells[1], blazar.EndLease: cells[2]}[e.Type]
		if !satisfies(cell, string(e.Status)) {
			fault("%s is %s, and %s is %s", id, lease.Status, e.ID, e.Status)
		}
	}
}

// requireNoFaults requires that no commit had a fault.
func (c *checked) requireNoFaults(t testing.TB) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	require.Empty(t, c.faults)
}

// take returns the commits since the last call.
func (c *checked) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.commits
	c.commits = nil
	return list
}

// documentLine returns the cells of a line of the document's table: reservations,
// start_lease and end_lease.
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
	return nil
}

// satisfies reports whether a cell of the document's table allows a status.
func satisfies(cell, status string) bool {
	if _, after, found := strings.Cut(cell, ": "); found {
		cell = after
	}
	if unwanted, ok := strings.CutPrefix(cell, "other than "); ok {
		return status != unwanted
	}
	return cell == "Any status" || slices.Contains(strings.Split(cell, " or "), status)
}

// shortName returns the last part of an id.
func shortName(id string) string { return id[strings.LastIndexByte(id, '/')+1:] }
