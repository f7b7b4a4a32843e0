package sqltest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// A commit of as many objects as the store declares writes all of them, or none.
func TestManyObjectsAtOnce(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		store, _ := fresh(t, e)
		most := store.Capabilities().Changes
		c := &lifecycle.Commit{Token: lifecycle.NewToken()}
		for i := range most - 200 {
			c.Changes = append(c.Changes, next(lifecycle.StoredRecord{
				Key: lifecycle.Key{Machine: "order", ID: fmt.Sprint("o", i)}, Revision: "0",
			}, 0).Changes...)
		}
		for i := range 200 {
			c.Require = append(c.Require, lifecycle.Precondition{Key: lifecycle.Key{Machine: "truck", ID: fmt.Sprint(i)}, States: []string{""}})
		}
		for i := range 250 {
			c.Messages = append(c.Messages, lifecycle.Message{Topic: "t", Key: fmt.Sprint(i)})
		}
		require.NoError(t, store.Commit(t.Context(), c))
		require.NoError(t, store.Commit(t.Context(), c), "again")
		list, err := store.Messages(t.Context(), 1000)
		require.NoError(t, err)
		require.Len(t, list, 250)
		var numbers []uint64
		for i, m := range list {
			require.Equal(t, fmt.Sprint(i), m.Key)
			numbers = append(numbers, m.Number)
		}
		require.NoError(t, store.Discard(t.Context(), append(numbers, numbers...)...))
		list, err = store.Messages(t.Context(), 1000)
		require.NoError(t, err)
		require.Empty(t, list)

		last := c.Changes[len(c.Changes)-1].To
		require.NoError(t, store.Commit(t.Context(), next(last, 0)))
		all := &lifecycle.Commit{Token: lifecycle.NewToken()}
		for i := range c.Changes {
			all.Changes = append(all.Changes, next(c.Changes[i].To, 0).Changes...)
		}
		var conflict *lifecycle.ConflictError
		require.ErrorAs(t, store.Commit(t.Context(), all), &conflict)
		require.Equal(t, len(all.Changes)-1, conflict.Change)
		require.EqualValues(t, 1, get(t, store, c.Changes[0].To.Key).Sequence)
		all.Changes = append(all.Changes, all.Changes...)
		require.ErrorIs(t, store.Commit(t.Context(), all), errors.ErrUnsupported)
	})
}
