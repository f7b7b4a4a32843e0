package lifecycle_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

func TestCommitCheck(t *testing.T) {
	to := func(id, state string) lifecycle.StoredChange {
		return lifecycle.StoredChange{To: lifecycle.StoredRecord{Key: lifecycle.Key{Machine: "m", ID: id}, State: state}}
	}
	metadata := func(from string, remove bool) lifecycle.StoredChange {
		ch := to("a", "idle")
		ch.From, ch.MetadataOnly, ch.Remove = from, true, remove
		return ch
	}
	ownerless := to("a", "idle")
	ownerless.To.Epoch = 2
	requested := to("a", "idle")
	requested.Request = "r1"
	other := []lifecycle.Precondition{{Key: lifecycle.Key{Machine: "m", ID: "z"}}}
	has := lifecycle.Capabilities{Changes: 2}
	for name, test := range map[string]struct {
		commit lifecycle.Commit
		want   error
		text   string
	}{
		"one change":        {lifecycle.Commit{Changes: []lifecycle.StoredChange{to("a", "idle")}}, nil, ""},
		"two changes":       {lifecycle.Commit{Changes: []lifecycle.StoredChange{to("a", "idle"), to("b", "idle")}}, nil, ""},
		"with precondition": {lifecycle.Commit{Changes: []lifecycle.StoredChange{to("a", "idle")}, Require: other}, nil, ""},
		"metadata only":     {lifecycle.Commit{Changes: []lifecycle.StoredChange{metadata("idle", false)}}, nil, ""},
		"nothing": {
			lifecycle.Commit{Require: other},
			lifecycle.ErrInvalid,
			"lifecycle: invalid request: commit without changes",
		},
		"too many": {
			lifecycle.Commit{Changes: []lifecycle.StoredChange{to("a", "idle"), to("b", "idle")}, Require: other},
			errors.ErrUnsupported,
			"unsupported operation: 3 changes and preconditions in one commit, at most 2",
		},
		"messages": {
			lifecycle.Commit{Changes: []lifecycle.StoredChange{to("a", "idle")}, Messages: make([]lifecycle.Message, 1)},
			errors.ErrUnsupported,
			"unsupported operation: messages in a commit",
		},
		"request without history": {
			lifecycle.Commit{Changes: []lifecycle.StoredChange{requested}},
			errors.ErrUnsupported,
			"unsupported operation: a request id: the store keeps no history",
		},
		"no state": {
			lifecycle.Commit{Changes: []lifecycle.StoredChange{to("a", "")}},
			lifecycle.ErrInvalid,
			`lifecycle: invalid request: change of m "a" without a state`,
		},
		"epoch without owner": {
			lifecycle.Commit{Changes: []lifecycle.StoredChange{ownerless}},
			lifecycle.ErrInvalid,
			`lifecycle: invalid request: change of m "a" with epoch 2 and without an owner`,
		},
		"no state in the second": {
			lifecycle.Commit{Changes: []lifecycle.StoredChange{to("a", "idle"), to("b", "")}},
			lifecycle.ErrInvalid,
			`lifecycle: invalid request: change of m "b" without a state`,
		},
		"twice": {
			lifecycle.Commit{Changes: []lifecycle.StoredChange{to("a", "idle"), to("a", "moving")}},
			lifecycle.ErrInvalid,
			`lifecycle: invalid request: two changes of m "a" in one commit`,
		},
		"metadata only move": {
			lifecycle.Commit{Changes: []lifecycle.StoredChange{metadata("", false)}},
			lifecycle.ErrInvalid,
			`lifecycle: invalid request: change of metadata only of m "a" from absent to idle`,
		},
		"metadata only removal": {
			lifecycle.Commit{Changes: []lifecycle.StoredChange{metadata("idle", true)}},
			lifecycle.ErrInvalid,
			`lifecycle: invalid request: change of metadata only of m "a" from idle to idle`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := test.commit
			if c.Token = lifecycle.NewToken(); test.want == nil {
				require.NoError(t, c.Check(has))
			} else {
				err := c.Check(has)
				require.ErrorIs(t, err, test.want)
				require.EqualError(t, err, test.text)
			}
		})
	}
	unnamed := lifecycle.Commit{Changes: []lifecycle.StoredChange{to("a", "idle")}}
	require.ErrorIs(t, unnamed.Check(has), lifecycle.ErrInvalid)
	require.ErrorContains(t, unnamed.Check(has), "without a token")
}
