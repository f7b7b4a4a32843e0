package storetest

import (
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

var metadataDemands = []demand{
	{name: "Metadata/changes_lease_fields_only", check: metadataChangesLeaseFields, clock: fakeClock},
}

// takeOver is a MetadataOnly change that sets the owner and the deadline.
func takeOver(before lifecycle.StoredRecord, owner string, epoch uint64) lifecycle.StoredChange {
	to := before
	to.Owner, to.Epoch = owner, epoch
	return lifecycle.StoredChange{
		Expect: before.Revision, From: before.State, FromOrigin: before.Origin, To: to, Timeout: hour, MetadataOnly: true,
	}
}

// A MetadataOnly change writes owner, epoch, work, arguments, work options and
// deadline under a new revision. All other fields stay, ChangedAt and the sequence
// number included. With Timeout 0 the deadline stays too.
func metadataChangesLeaseFields(t *tester) {
	before := t.write(t.fullChange(t.get(key("a"))))
	t.pass(hour / 2)
	before = t.get(before.Key) // Config.Age may have moved its times
	ch := takeOver(before, "another", 7)
	ch.To.Work, ch.To.Args, ch.To.WorkOptions = "lower", []byte("slowly"), []byte("{}")
	after := t.write(ch)
	t.unchanged("a MetadataOnly change", after)
	require.NotEqual(t, before.Revision, after.Revision)
	if t.movesTime() {
		require.Greater(t, after.Deadline.Sub(before.Deadline), hour/4, "how far the deadline moved in half an hour")
	}
	want := ch.To
	want.Revision, want.Deadline = after.Revision, after.Deadline
	equal(t, want, after, "the record")

	ch = takeOver(after, "a third", 8)
	ch.Timeout = 0
	last := t.write(ch)
	require.True(t, last.Deadline.Equal(after.Deadline), "Timeout 0 moves the deadline to %v", last.Deadline)
	t.unchanged("a MetadataOnly change without a timeout", last)
}
