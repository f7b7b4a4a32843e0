package edgecloud_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// judgedNth is a judge that has something happen before the nth call.
type judgedNth struct {
	*judge
	nth
}

func (s *judgedNth) Get(ctx context.Context, k lifecycle.Key) (lifecycle.StoredRecord, error) {
	s.call()
	return s.judge.Get(ctx, k)
}

func (s *judgedNth) List(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
	s.call()
	return s.judge.List(ctx, q)
}

func (s *judgedNth) Commit(ctx context.Context, c *lifecycle.Commit) error {
	s.call()
	return s.judge.Commit(ctx, c)
}

func (s *judgedNth) Capabilities() lifecycle.Capabilities { return s.judge.Capabilities() }

func (s *judgedNth) History(ctx context.Context, k lifecycle.Key, after uint64, limit int) ([]lifecycle.HistoryRow, error) {
	return s.judge.History(ctx, k, after, limit)
}

// Any request, with any other one made by another controller before any single call of
// the store: what depends on each other never changes at the same time, a delete that
// loses leaves nothing behind, and nobody is told of what he does not know.
func TestEveryPairOfRequests(t *testing.T) {
	type coordinator = edgecloud.Coordinator
	ctx := t.Context()
	app := edgecloud.AppSpec{ClusterInst: "c"}
	spec := edgecloud.ClusterSpec{Cloudlet: "b"}
	two := func(_ any, err error) error { return err }
	force := &edgecloud.Call{Force: true}
	asks := map[string]func(*coordinator) error{
		"create an app":    func(c *coordinator) error { return two(c.Apps.Create(ctx, "a2", app, nil)) },
		"update an app":    func(c *coordinator) error { return two(c.Apps.Update(ctx, "a", nil, nil)) },
		"delete an app":    func(c *coordinator) error { return two(c.Apps.Delete(ctx, "a", nil)) },
		"create a cluster": func(c *coordinator) error { return two(c.Clusters.Create(ctx, "c", spec, nil)) },
		"update a cluster": func(c *coordinator) error { return two(c.Clusters.Update(ctx, "c", nil, force)) },
		"delete a cluster": func(c *coordinator) error { return two(c.Clusters.Delete(ctx, "c", force)) },
		"undo":             func(c *coordinator) error { return two(c.Clusters.Undo(ctx, "c", 0, "test")) },
		"upgrade":          func(c *coordinator) error { return two(c.Cloudlets.Upgrade(ctx, "b", "v2", "")) },
		"the CRM goes":     func(c *coordinator) error { return two(c.Cloudlets.Disconnected(ctx, "b", 1)) },
	}
	worlds := map[string]func(*coordinator) error{
		"a cluster":   func(c *coordinator) error { defer answer(ctx, c); return asks["create a cluster"](c) },
		"it goes":     nil,
		"it failed":   nil,
		"with an app": nil,
	}
	worlds["with an app"] = func(c *coordinator) error {
		defer answer(ctx, c)
		return errors.Join(worlds["a cluster"](c), two(c.Apps.Create(ctx, "a", app, nil)))
	}
	worlds["it goes"] = func(c *coordinator) error {
		return errors.Join(worlds["a cluster"](c), asks["delete a cluster"](c))
	}
	worlds["it failed"] = func(c *coordinator) error {
		err := errors.Join(worlds["with an app"](c), asks["update a cluster"](c))
		rec, _ := c.Clusters.Get(ctx, "c")
		_, _ = c.Clusters.Receive(ctx, edgecloud.Info{ID: "c", Operation: rec.Operation, State: edgecloud.UpdateError})
		return err
	}
	runs := 0
	for world, make := range worlds {
		for first, ask := range asks {
			for second, other := range asks {
				for n, happened := 1, true; happened; n++ {
					s := &judgedNth{judge: &judge{
						MemoryStore: lifecycle.NewMemoryStore(), state: map[lifecycle.Key]string{}, begun: map[string]int{},
					}}
					one, two := edgecloud.NewCoordinator(s, nil), edgecloud.NewCoordinator(s, nil)
					up(t, one, "b")
					require.NoError(t, make(one), world)
					var errs [2]error
					s.n, s.do = n, func() { errs[1] = other(two) }
					errs[0] = ask(one)
					happened = s.do == nil
					where := fmt.Sprintf("%s: %s, and at call %d %s", world, first, n, second)
					require.Empty(t, s.wrong, where)
					for _, err := range errs {
						require.NotErrorIs(t, err, lifecycle.ErrUnknownOutcome, where)
						require.False(t, err != nil && strings.Contains(err.Error(), "-ref"), "%s: %v", where, err)
					}
					if now, err := one.Clusters.Get(ctx, "c"); err == nil {
						require.NotEqual(t, edgecloud.DeletePrepare, now.State, where)
					}
					runs++
				}
			}
		}
	}
	t.Log(runs)
}
