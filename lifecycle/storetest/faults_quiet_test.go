package storetest

import (
	"context"
	"strings"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

func quietFaults() []fault {
	return []fault{
		{
			name: "a heart-beat makes young", demand: "Quiet/changes_owner_and_deadline",
			plant: func(b *bent) {
				commit := b.commit
				b.commit = func(ctx context.Context, c *lifecycle.Commit) error {
					err := commit(ctx, c)
					for i := range c.Changes {
						if err == nil && c.Changes[i].Quiet {
							c.Changes[i].To.ChangedAt = c.Changes[i].To.Deadline.Add(-c.Changes[i].Within)
						}
					}
					return err
				}
			},
		},
		{
			name: "a heart-beat takes nothing over", demand: "Quiet/changes_owner_and_deadline",
			plant: func(b *bent) {
				b.eachChange(func(ch *lifecycle.StoredChange) {
					if ch.Quiet {
						ch.To.Owner = b.now(ch.To.Key).Owner
					}
				})
			},
		},
		{
			name: "a heart-beat is history", demand: "Quiet/writes_no_history",
			plant: func(b *bent) {
				b.eachChange(func(ch *lifecycle.StoredChange) {
					if ch.Quiet && ch.From == ch.To.State && !ch.Remove {
						ch.Quiet = false
						ch.To.Sequence++
					}
				})
			},
		},
		{
			name: "the last heart-beat wins", demand: "Quiet/is_compared",
			plant: func(b *bent) {
				b.eachChange(func(ch *lifecycle.StoredChange) {
					if ch.Quiet {
						ch.Expect = b.now(ch.To.Key).Revision
					}
				})
			},
		},
		{
			name: "a heart-beat sent again is another", demand: "Quiet/sent_again_conflicts",
			plant: func(b *bent) {
				known := map[lifecycle.Token]bool{}
				b.edited(func(c *lifecycle.Commit) {
					for i := range c.Changes {
						if c.Changes[i].Quiet && known[c.Token] {
							c.Changes[i].Expect = b.now(c.Changes[i].To.Key).Revision
						}
					}
					known[c.Token] = true
				})
			},
		},
		{
			name: "a quiet move is made", demand: "Quiet/moves_nothing",
			plant: func(b *bent) {
				b.eachChange(func(ch *lifecycle.StoredChange) {
					if ch.From != ch.To.State || ch.Remove {
						ch.Quiet = false
					}
				})
			},
		},
		{
			name: "owners are found by their beginnings", demand: "List/by_owner",
			plant: func(b *bent) {
				b.whole(func(q lifecycle.Query, r *lifecycle.StoredRecord, now time.Time) bool {
					owner := q.Owner
					q.Owner = ""
					return selects(q, r, now) && strings.HasPrefix(r.Owner, owner)
				}, byID)
			},
		},
	}
}
