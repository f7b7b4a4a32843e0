package storetest

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

func metadataFaults() []fault {
	return []fault{
		{
			name: "a heartbeat makes young", demand: "Metadata/changes_owner_work_and_deadline",
			plant: func(b *bent) {
				commit := b.commit
				b.commit = func(ctx context.Context, c *lifecycle.Commit) error {
					err := commit(ctx, c)
					for i := range c.Changes {
						if err == nil && c.Changes[i].MetadataOnly {
							c.Changes[i].To.ChangedAt = c.Changes[i].To.Deadline.Add(-c.Changes[i].Timeout)
						}
					}
					return err
				}
			},
		},
		{
			name: "a heartbeat takes nothing over", demand: "Metadata/changes_owner_work_and_deadline",
			plant: func(b *bent) {
				b.eachChange(func(ch *lifecycle.StoredChange) {
					if ch.MetadataOnly {
						ch.To.Owner = b.now(ch.To.Key).Owner
					}
				})
			},
		},
		{
			name: "a heartbeat keeps the work", demand: "Metadata/changes_owner_work_and_deadline",
			plant: func(b *bent) {
				b.eachChange(func(ch *lifecycle.StoredChange) {
					if ch.MetadataOnly {
						now := b.now(ch.To.Key)
						ch.To.Work, ch.To.Args, ch.To.WorkOptions = now.Work, now.Args, now.WorkOptions
					}
				})
			},
		},
		{
			name: "a change without a timeout clears the deadline", demand: "Metadata/keeps_the_deadline",
			plant: func(b *bent) {
				b.eachChange(func(ch *lifecycle.StoredChange) {
					if ch.MetadataOnly && ch.Timeout == 0 {
						ch.To.Deadline = time.Time{}
					}
				})
			},
		},
		{
			name: "a heartbeat is history", demand: "Metadata/writes_no_history",
			plant: func(b *bent) {
				b.eachChange(func(ch *lifecycle.StoredChange) {
					if ch.MetadataOnly && ch.From == ch.To.State && !ch.Remove {
						ch.MetadataOnly = false
						ch.To.Sequence++
					}
				})
			},
		},
		{
			name: "the last heartbeat wins", demand: "Metadata/is_compared",
			plant: func(b *bent) {
				b.eachChange(func(ch *lifecycle.StoredChange) {
					if ch.MetadataOnly {
						ch.Expect = b.now(ch.To.Key).Revision
					}
				})
			},
		},
		{
			name: "a heartbeat sent again is another", demand: "Metadata/sent_again_conflicts",
			plant: func(b *bent) {
				known := map[lifecycle.Token]bool{}
				b.edited(func(c *lifecycle.Commit) {
					for i := range c.Changes {
						if c.Changes[i].MetadataOnly && known[c.Token] {
							c.Changes[i].Expect = b.now(c.Changes[i].To.Key).Revision
						}
					}
					known[c.Token] = true
				})
			},
		},
		{
			name: "a metadata-only move is made", demand: "Metadata/moves_nothing",
			plant: func(b *bent) {
				b.eachChange(func(ch *lifecycle.StoredChange) {
					if ch.From != ch.To.State || ch.Remove {
						ch.MetadataOnly = false
					}
				})
			},
		},
	}
}
