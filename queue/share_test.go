package queue_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/queue"
)

// shares submits actions of a second each, "a a b" means two of class a and one of b,
// and returns the order of their starts. No two of them end at the same time.
func shares(t *testing.T, q *queue.Queuer[int], classes string) string {
	var started notes
	for i, class := range strings.Fields(classes) {
		act := &queue.Action{Name: class, Run: func(context.Context) error {
			started.add(class)
			time.Sleep(time.Second + time.Duration(i)*time.Millisecond)
			return nil
		}}
		if class != "root" {
			act.Class = class
		}
		_, err := q.Submit(t.Context(), i, act)
		require.NoError(t, err)
		synctest.Wait()
	}
	time.Sleep(time.Hour)
	return started.String()
}

// A class with many actions does not delay another one: each start is of the class with
// the fewest running actions, or of the one that has waited longest for it.
func TestFair(t *testing.T) {
	for _, c := range []struct {
		name, submitted, fair, unfair string
		running                       int
	}{
		{"one at a time", "a a a a a b b", "a b a b a a a", "a a a a a b b", 1},
		{"two at a time", "a a a a a b b", "a a b a a b a", "a a a a a b b", 2},
		{"three classes", "a a a b b b c c c", "a b c a b c a b c", "a a a b b b c c c", 1},
		{"the class itself is one more", "root root root a a", "root a root a root", "root root root a a", 1},
		{"the classes below count for their parent", "a/x a/x a/y a/y b b", "a/x b a/y b a/x a/y", "a/x a/x a/y a/y b b", 1},
	} {
		for _, fair := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, fair: %v", c.name, fair), func(t *testing.T) {
				in(t, func(t *testing.T) {
					limits := map[string]queue.Limit{"": {Fair: fair}, "a": {Fair: fair}, "b": {}, "c": {}, "a/x": {}, "a/y": {}}
					q := queue.Must(&queue.Config[int]{MaxRunning: c.running, Classes: limits})
					want := c.unfair
					if fair {
						want = c.fair
					}
					require.Equal(t, want, shares(t, q, c.submitted))
				})
			})
		}
	}
}

// Tenants without an entry share fairly. One that returns whenever its action has ended is
// new to the queue each time: it starts behind those that wait, and not before them for ever.
func TestFairTenants(t *testing.T) {
	in(t, func(t *testing.T) {
		q := queue.Must(&queue.Config[int]{MaxRunning: 1, Classes: map[string]queue.Limit{"": {Fair: true}, "*": {}}})
		var started notes
		key := 0
		submitted := func(class string) *queue.Ticket[int] {
			key++
			ticket, err := q.Submit(t.Context(), key, &queue.Action{Class: class, Run: func(context.Context) error {
				started.add(class)
				time.Sleep(time.Second)
				return nil
			}})
			require.NoError(t, err)
			return ticket
		}
		for range 3 {
			submitted("a")
			submitted("b")
		}
		for _, class := range []string{"c", "d"} {
			go func() {
				for range 3 {
					_ = submitted(class).Wait(t.Context())
				}
			}()
			synctest.Wait()
		}
		time.Sleep(time.Hour)
		require.Equal(t, "a b a c d b a c b d c d", started.String())
	})
}

// A class that a pattern made stays while a class below it has a limit of its own.
func TestLimitBelowAPattern(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, &queue.Config[string]{Classes: map[string]queue.Limit{"aws": {}, "aws/*": {MaxRunning: 1}}})
		in := func(class, key string) *queue.Ticket[string] {
			return submit(t, q, key, ofClass(class, takes("boot", time.Second, nil)))
		}
		region := in("aws/seoul", "a")
		require.NoError(t, q.SetLimit("aws/seoul/a", queue.Limit{MaxRunning: 2}))
		require.NoError(t, region.Wait(t.Context()))
		zone, next := in("aws/seoul/a", "b"), in("aws/seoul/a", "c")
		time.Sleep(1500 * time.Millisecond)
		require.Equal(t, queue.Ended, zone.Info().State)
		require.Equal(t, queue.Running, next.Info().State, "the region has the limit of the pattern")
	})
}

// A paused class starts nothing, and its running actions continue. Other classes go on.
func TestPauseClass(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, &queue.Config[string]{Classes: map[string]queue.Limit{"aws": {}, "aws/*": {}, "gcp": {}}})
		in := func(class, key string) *queue.Ticket[string] {
			return submit(t, q, key, ofClass(class, takes("boot", time.Second, nil)))
		}
		before := in("aws/seoul", "a")
		synctest.Wait()
		require.NoError(t, q.PauseClass("aws"))
		require.NoError(t, q.PauseClass("aws"))
		after, other := in("aws/seoul", "b"), in("gcp", "c")
		require.NoError(t, before.Wait(t.Context()))
		require.NoError(t, other.Wait(t.Context()))
		require.Equal(t, queue.Waiting, after.Info().State)
		require.True(t, after.Info().Paused)

		require.NoError(t, q.PauseClass("aws/seoul"), "a class of a pattern")
		require.NoError(t, q.ResumeClass("aws"))
		time.Sleep(time.Hour)
		require.Equal(t, queue.Waiting, after.Info().State, "its own class is paused")
		require.NoError(t, in("aws/tokyo", "d").Wait(t.Context()), "another class of the pattern")
		require.NoError(t, q.ResumeClass("aws/seoul"))
		require.NoError(t, q.ResumeClass("aws/seoul"))
		require.NoError(t, after.Wait(t.Context()))
		require.False(t, after.Info().Paused)

		require.NoError(t, q.PauseClass("aws/*"))
		tokyo, seoul := in("aws/tokyo", "e"), in("aws/seoul", "f")
		require.NoError(t, seoul.Wait(t.Context()), "it has a rule of its own")
		require.True(t, tokyo.Info().Paused)
		require.NoError(t, q.ResumeClass("aws/*"))
		require.NoError(t, tokyo.Wait(t.Context()))

		require.NoError(t, q.PauseClass(""))
		last := in("gcp", "g")
		time.Sleep(time.Hour)
		require.True(t, last.Info().Paused)
		require.NoError(t, q.ResumeClass(""))
		require.NoError(t, last.Wait(t.Context()))
		for _, set := range []func(string) error{q.PauseClass, q.ResumeClass} {
			require.EqualError(t, set("azure"), "queue: invalid Class: neither Config.Classes nor SetLimit has azure")
		}
	})
}

// A class that is paused by itself stays paused when its pattern is resumed.
func TestPauseInAPausedPattern(t *testing.T) {
	q := makeQueue(t, &queue.Config[string]{Classes: map[string]queue.Limit{"*": {}}})
	require.NoError(t, q.PauseClass("*"))
	require.NoError(t, q.PauseClass("aws"))
	require.NoError(t, q.ResumeClass("*"))
	require.True(t, submit(t, q, "a", ofClass("aws", takes("boot", 0, nil))).Info().Paused)
}

// To resume a class that is not paused changes nothing: it still has the limit of its pattern.
func TestResumeKeepsThePattern(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, &queue.Config[string]{Classes: map[string]queue.Limit{"aws": {}, "aws/*": {MaxRunning: 1}}})
		require.NoError(t, q.ResumeClass("aws/seoul"))
		require.NoError(t, q.SetLimit("aws/*", queue.Limit{MaxRunning: 2}))
		for _, key := range []string{"a", "b", "c"} {
			submit(t, q, key, ofClass("aws/seoul", takes("boot", time.Second, nil)))
		}
		synctest.Wait()
		require.Equal(t, 2, q.Stats().Running)
		require.NoError(t, q.Terminate(t.Context()))
	})
}

// The zero queue can be paused before its first action.
func TestPauseTheZeroQueue(t *testing.T) {
	in(t, func(t *testing.T) {
		var q queue.Queuer[string]
		require.NoError(t, q.PauseClass(""))
		ticket := submit(t, &q, "a", takes("a", 0, nil))
		synctest.Wait()
		require.Equal(t, queue.Waiting, ticket.Info().State)
		require.NoError(t, q.SetLimit("new/*", queue.Limit{MaxRunning: 1}))
		require.NoError(t, q.ResumeClass(""))
		require.NoError(t, q.Terminate(t.Context()))
	})
}

// A higher limit starts actions at once, a lower one lets running actions continue.
func TestSetLimit(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, &queue.Config[string]{MaxRunning: 1, Classes: map[string]queue.Limit{"aws": {}, "aws/*": {MaxRunning: 1}}})
		key := 0
		in := func(class string, n int) {
			for range n {
				key++
				submit(t, q, fmt.Sprint(key), ofClass(class, takes("boot", time.Minute, nil)))
			}
		}
		running := func() int {
			synctest.Wait()
			return q.Stats().Running
		}
		in("aws/seoul", 4)
		in("aws/tokyo", 4)
		require.Equal(t, 1, running())
		require.NoError(t, q.SetLimit("", queue.Limit{}))
		require.Equal(t, 2, running(), "the root has no limit but the default: one of each region")
		require.NoError(t, q.SetLimit("aws/*", queue.Limit{MaxRunning: 2}))
		require.Equal(t, 4, running(), "the limit of the pattern applies to regions in use")
		require.NoError(t, q.SetLimit("aws/seoul", queue.Limit{MaxRunning: 3}))
		require.Equal(t, 5, running())
		require.NoError(t, q.SetLimit("aws/*", queue.Limit{MaxRunning: 1}))
		require.NoError(t, q.SetLimit("aws", queue.Limit{MaxChildren: 1}))
		require.Equal(t, 5, running(), "no action is ended")
		time.Sleep(90 * time.Second)
		require.Equal(t, 1, running(), "one region at a time")
		require.NoError(t, q.SetLimit("gcp", queue.Limit{MaxRunning: 1}))
		in("gcp", 2)
		require.Equal(t, 2, running(), "a new class")

		for class, limit := range map[string]queue.Limit{"aws": {MaxRunning: -1}, "gcp": {MaxChildren: -1}, "a//b": {}, "a/*/b": {}} {
			require.ErrorIs(t, q.SetLimit(class, limit), queue.ErrInvalid)
		}
		require.Equal(t, 2, running())
		require.NoError(t, q.Terminate(t.Context()))
	})
}

// The zero queue can be given a limit before its first action.
func TestSetLimitOfTheZeroQueue(t *testing.T) {
	var q queue.Queuer[string]
	require.NoError(t, q.SetLimit("", queue.Limit{MaxRunning: 2}))
	require.Equal(t, []queue.ClassInfo{{Limit: queue.Limit{MaxRunning: 2}}}, q.Classes())
}

// A limit without a number is no limit, except for the running actions of the root.
func TestSetLimitToNone(t *testing.T) {
	q := makeQueue(t, &queue.Config[string]{MaxRunning: 1, Classes: map[string]queue.Limit{"aws": {MaxRunning: 1}}})
	for _, class := range []string{"", "aws"} {
		require.NoError(t, q.SetLimit(class, queue.Limit{}))
	}
	require.Equal(t, []queue.ClassInfo{{Limit: queue.Limit{MaxRunning: 1024}}, {Path: "aws"}}, q.Classes())
}

// The running actions of a fair class itself count as those of one more class.
func TestFairShareOfTheClassItself(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, &queue.Config[string]{Classes: map[string]queue.Limit{"": {MaxRunning: 2, Fair: true}, "c": {}}})
		add := func(key, class string, d time.Duration) *queue.Ticket[string] {
			return submit(t, q, key, ofClass(class, takes(key, d, nil)))
		}
		add("1", "", time.Hour)
		add("2", "c", time.Second)
		own, child := add("3", "", time.Hour), add("4", "c", time.Hour)
		time.Sleep(2 * time.Second)
		require.Equal(t, queue.Waiting, own.Info().State)
		require.Equal(t, queue.Running, child.Info().State)
	})
}

// MaxChildren counts the classes below that have a running action, and not these actions.
func TestMaxChildrenCountsClasses(t *testing.T) {
	in(t, func(t *testing.T) {
		q := queue.Must(&queue.Config[int]{Classes: map[string]queue.Limit{"": {MaxChildren: 2}, "*": {}}})
		require.Equal(t, "a a b a b c", shares(t, q, "a a b c a b"))
	})
}
