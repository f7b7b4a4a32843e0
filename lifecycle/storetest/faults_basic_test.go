package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

func capabilityFaults() []fault {
	return []fault{
		{
			name: "history is declared and not there", demand: "Capabilities/are_honest",
			store: func() lifecycle.Store { return struct{ lifecycle.Store }{newBent()} },
		},
		{
			name: "no change is declared", demand: "Capabilities/are_honest",
			plant: func(b *bent) { b.has.Changes = 0 },
		},
		{
			name: "capabilities come with the first commit", demand: "Capabilities/never_change",
			plant: func(b *bent) {
				b.has.History = false
				b.edited(func(*lifecycle.Commit) { b.has.History = true })
			},
		},
		{
			name: "more changes than declared are taken", demand: "Capabilities/undeclared_changes_are_refused",
			plant: func(b *bent) { b.commit = b.inner.Commit },
		},
		{
			name: "preconditions do not count", demand: "Capabilities/undeclared_changes_are_refused",
			plant: func(b *bent) {
				b.commit = func(ctx context.Context, c *lifecycle.Commit) error {
					if len(c.Changes) > limit {
						return errors.ErrUnsupported
					}
					return b.inner.Commit(ctx, c)
				}
			},
		},
		{
			name: "messages are dropped without a word", demand: "Capabilities/undeclared_messages_are_refused",
			plant: func(b *bent) {
				b.has.Messages = false
				b.edited(func(c *lifecycle.Commit) { c.Messages = nil })
			},
		},
	}
}

func getFaults() []fault {
	return []fault{
		{
			name: "absent is an error", demand: "Get/absent_is_no_error",
			plant: func(b *bent) {
				b.get = func(ctx context.Context, k lifecycle.Key) (lifecycle.StoredRecord, error) {
					r, err := b.inner.Get(ctx, k)
					if err == nil && !r.Exists() {
						err = lifecycle.ErrNotFound
					}
					return r, err
				}
			},
		},
		{
			name: "an absent record has no key", demand: "Get/absent_is_no_error",
			plant: func(b *bent) {
				b.shown(func(r *lifecycle.StoredRecord) {
					if !r.Exists() {
						r.Key = lifecycle.Key{}
					}
				})
			},
		},
		{
			name: "the target is not kept", demand: "Get/returns_what_was_written",
			plant: func(b *bent) { b.eachChange(func(ch *lifecycle.StoredChange) { ch.To.Target = "" }) },
		},
		{
			name: "arguments of work are text", demand: "Get/returns_what_was_written",
			plant: func(b *bent) {
				b.eachChange(func(ch *lifecycle.StoredChange) { ch.To.Args = []byte(strings.ToValidUTF8(string(ch.To.Args), "?")) })
			},
		},
		{
			name: "numbers go through floating point", demand: "Get/returns_what_was_written",
			plant: func(b *bent) {
				b.eachChange(func(ch *lifecycle.StoredChange) { ch.To.Epoch = uint64(float64(ch.To.Epoch)) })
			},
		},
		{
			name: "an empty field leaves the old one", demand: "Get/returns_what_was_written",
			plant: func(b *bent) {
				b.eachChange(func(ch *lifecycle.StoredChange) {
					if ch.To.Reason == "" {
						ch.To.Reason = b.now(ch.To.Key).Reason
					}
				})
			},
		},
		{
			name: "an empty saved payload is none", demand: "Get/keeps_payloads",
			plant: func(b *bent) {
				b.shown(func(r *lifecycle.StoredRecord) {
					if r.Saved != nil && len(r.Saved) == 0 {
						r.Saved = nil
					}
				})
			},
		},
		{
			name: "payloads are compacted", demand: "Get/keeps_payloads",
			plant: func(b *bent) {
				b.shown(func(r *lifecycle.StoredRecord) {
					if r.Payload != nil {
						r.Payload = []byte(strings.ReplaceAll(string(r.Payload), "  ", " "))
					}
				})
			},
		},
		{
			name: "payloads share a buffer", demand: "Get/payloads_are_not_overwritten",
			plant: func(b *bent) {
				buffer := make([]byte, 0, 1<<10)
				b.get = func(ctx context.Context, k lifecycle.Key) (lifecycle.StoredRecord, error) {
					b.mu.Lock()
					defer b.mu.Unlock()
					r, err := b.inner.Get(ctx, k)
					if data := r.Payload; len(data) > 0 && len(data) < cap(buffer) {
						buffer = append(buffer[:0], data...)
						r.Payload = []byte(buffer)
					}
					return r, err
				}
			},
		},
		{
			name: "the record before is returned now and then", demand: "Get/sees_every_acknowledged_commit",
			plant: func(b *bent) {
				calls, last := 0, map[lifecycle.Key][2]lifecycle.StoredRecord{}
				b.get = func(ctx context.Context, k lifecycle.Key) (lifecycle.StoredRecord, error) {
					b.mu.Lock()
					defer b.mu.Unlock()
					r, err := b.inner.Get(ctx, k)
					known := last[k]
					if known[1].Revision != r.Revision {
						known = [2]lifecycle.StoredRecord{known[1], r}
						last[k] = known
					}
					if calls++; calls%7 == 0 && known[0].Revision != "" {
						return known[0], err
					}
					return r, err
				}
			},
		},
		{
			name: "a removed object keeps its origin", demand: "Get/absent_again_after_removal",
			plant: func(b *bent) {
				b.shown(func(r *lifecycle.StoredRecord) {
					if !r.Exists() && r.Sequence > 0 {
						r.Origin = idle
					}
				})
			},
		},
		{
			name: "a removed object keeps its owner", demand: "Get/absent_again_after_removal",
			plant: func(b *bent) {
				b.shown(func(r *lifecycle.StoredRecord) {
					if !r.Exists() && r.Sequence > 0 {
						r.Owner, r.Epoch = "one", 1
					}
				})
			},
		},
		{
			name: "a removed object is still listed", demand: "Get/absent_again_after_removal",
			plant: func(b *bent) {
				b.list = func(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
					found, err := b.inner.List(ctx, q)
					if left := b.now(key("a")); err == nil && len(found) == 0 && left.Sequence > 0 && !left.Exists() && q.After < "a" && q.Machine == machine {
						found = append(found, left)
					}
					return found, err
				}
			},
		},
	}
}

func commitFaults() []fault {
	return []fault{
		{
			name: "what was removed cannot be made again", demand: "Commit/creates_moves_removes",
			plant: func(b *bent) {
				b.eachChange(func(ch *lifecycle.StoredChange) {
					if ch.From == "" && b.now(ch.To.Key).Sequence > 0 {
						ch.Expect = "never"
					}
				})
			},
		},
		{
			name: "the time of the change is not filled", demand: "Commit/fills_the_record",
			plant: func(b *bent) {
				b.commit = func(ctx context.Context, c *lifecycle.Commit) error {
					before := again(c)
					err := b.limited(ctx, c)
					for i := range c.Changes {
						c.Changes[i].To.ChangedAt = before.Changes[i].To.ChangedAt
					}
					return err
				}
			},
		},
		{
			name: "the caller's deadline stays", demand: "Commit/fills_the_record",
			plant: func(b *bent) {
				b.commit = func(ctx context.Context, c *lifecycle.Commit) error {
					before := again(c)
					err := b.limited(ctx, c)
					for i := range c.Changes {
						if c.Changes[i].Timeout == 0 {
							c.Changes[i].To.Deadline = before.Changes[i].To.Deadline
						}
					}
					return err
				}
			},
		},
		{
			name: "deadlines have minutes only", demand: "Commit/deadline_counts_from_the_change",
			plant: func(b *bent) {
				b.eachChange(func(ch *lifecycle.StoredChange) { ch.Timeout = ch.Timeout.Truncate(time.Minute) })
			},
		},
		{
			name: "the deadline is not cleared", demand: "Commit/deadline_is_cleared",
			plant: func(b *bent) {
				b.eachChange(func(ch *lifecycle.StoredChange) {
					if before := b.now(ch.To.Key).Deadline; ch.Timeout == 0 && !before.IsZero() {
						ch.Timeout = max(1, time.Until(before))
					}
				})
			},
		},
		{
			name: "lost update: the expected revision is ignored", demand: "Commit/wrong_revision_conflicts",
			plant: func(b *bent) {
				b.eachChange(func(ch *lifecycle.StoredChange) {
					if now := b.now(ch.To.Key); now.State == ch.From {
						ch.Expect = now.Revision
					}
				})
			},
		},
		{
			name: "the expected state is ignored", demand: "Commit/wrong_state_conflicts",
			plant: func(b *bent) {
				b.eachChange(func(ch *lifecycle.StoredChange) {
					if now := b.now(ch.To.Key); now.Revision == ch.Expect {
						ch.From = now.State
					}
				})
			},
		},
		{
			name: "states are compared without case", demand: "Commit/wrong_state_conflicts",
			plant: func(b *bent) {
				b.eachChange(func(ch *lifecycle.StoredChange) {
					if now := b.now(ch.To.Key); strings.EqualFold(now.State, ch.From) {
						ch.From = now.State
					}
				})
			},
		},
		{
			name: "a creation overwrites", demand: "Commit/existence_is_part_of_the_condition",
			plant: func(b *bent) {
				b.eachChange(func(ch *lifecycle.StoredChange) {
					if now := b.now(ch.To.Key); ch.From == "" && now.Exists() {
						ch.From, ch.Expect = now.State, now.Revision
					}
				})
			},
		},
		{
			name: "a conflict without the record", demand: "Commit/conflict_carries_the_winner",
			plant: func(b *bent) {
				b.commit = func(ctx context.Context, c *lifecycle.Commit) error {
					err := b.limited(ctx, c)
					if conflict, ok := errors.AsType[*lifecycle.ConflictError](err); ok {
						conflict.Current = lifecycle.StoredRecord{}
					}
					return err
				}
			},
		},
		{
			name: "a conflict does not say what was expected", demand: "Commit/conflict_carries_the_winner",
			plant: func(b *bent) {
				b.commit = func(ctx context.Context, c *lifecycle.Commit) error {
					err := b.limited(ctx, c)
					if conflict, ok := errors.AsType[*lifecycle.ConflictError](err); ok {
						conflict.Expect = ""
					}
					return err
				}
			},
		},
		{
			name: "a refused change is written", demand: "Commit/refused_writes_nothing",
			plant: func(b *bent) {
				b.commit = func(ctx context.Context, c *lifecycle.Commit) error {
					b.mu.Lock()
					defer b.mu.Unlock()
					err := b.limited(ctx, c)
					if conflict, ok := errors.AsType[*lifecycle.ConflictError](err); ok {
						now := conflict.Current
						_ = b.inner.Commit(ctx, commitOf(change(now, broken)))
					}
					return err
				}
			},
		},
		{
			name: "what changes nothing is not written", demand: "Commit/same_content_is_a_change",
			plant: func(b *bent) {
				b.commit = func(ctx context.Context, c *lifecycle.Commit) error {
					b.mu.Lock()
					defer b.mu.Unlock()
					ch := &c.Changes[0]
					now := b.now(ch.To.Key)
					to := now
					to.Sequence++
					if len(c.Changes) == 1 && ch.Expect == now.Revision && !ch.Remove && differences(ch.To, to) == "" {
						ch.To.Revision = now.Revision
						return nil
					}
					return b.limited(ctx, c)
				}
			},
		},
		{
			name: "the last change of a key counts", demand: "Commit/malformed_is_refused",
			plant: func(b *bent) {
				b.edited(func(c *lifecycle.Commit) {
					for i := len(c.Changes) - 1; i > 0; i-- {
						if c.Changes[i].To.Key == c.Changes[i-1].To.Key {
							c.Changes = slices.Delete(c.Changes, i-1, i)
						}
					}
				})
			},
		},
		{
			name: "an epoch without an owner is dropped", demand: "Commit/malformed_is_refused",
			plant: func(b *bent) {
				b.eachChange(func(ch *lifecycle.StoredChange) {
					if ch.To.Owner == "" {
						ch.To.Epoch = 0
					}
				})
			},
		},
		{
			name: "no limit is no records", demand: "Commit/malformed_is_refused",
			plant: func(b *bent) {
				b.list = func(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
					if q.Limit <= 0 {
						return nil, nil
					}
					return b.inner.List(ctx, q)
				}
			},
		},
	}
}

// renamed replaces all revisions by a function of the record.
func renamed(name func(r *lifecycle.StoredRecord) lifecycle.Revision) func(b *bent) {
	return func(b *bent) {
		b.eachChange(func(ch *lifecycle.StoredChange) {
			if now := b.now(ch.To.Key); name(&now) == ch.Expect {
				ch.Expect = now.Revision
			}
		})
		b.shown(func(r *lifecycle.StoredRecord) {
			b.mu.Lock()
			defer b.mu.Unlock()
			r.Revision = name(r)
		})
	}
}

// renumbered makes the numbers of a key begin anew when forget says so of an
// absent record.
func renumbered(forget func(k lifecycle.Key) bool) func(b *bent) {
	type numbers struct {
		sequence  uint64
		operation lifecycle.OpID
	}
	return func(b *bent) {
		gone := map[lifecycle.Key]numbers{}
		b.eachChange(func(ch *lifecycle.StoredChange) {
			n := gone[ch.To.Key]
			ch.To.Sequence += n.sequence
			ch.To.Operation += n.operation
		})
		b.shown(func(r *lifecycle.StoredRecord) {
			b.mu.Lock()
			defer b.mu.Unlock()
			if now := b.now(r.Key); !r.Exists() && r.Revision == now.Revision && forget(r.Key) {
				gone[r.Key] = numbers{r.Sequence, r.Operation}
			}
			n := gone[r.Key]
			r.Sequence -= min(n.sequence, r.Sequence)
			r.Operation -= min(n.operation, r.Operation)
		})
	}
}

func numberFaults() []fault {
	return []fault{
		{
			name: "a sequence number with a gap", demand: "Numbers/sequence_has_no_gap",
			plant: func(b *bent) {
				skipped := map[lifecycle.Key]uint64{}
				b.eachChange(func(ch *lifecycle.StoredChange) {
					if ch.To.Sequence%5 == 0 {
						skipped[ch.To.Key]++
					}
					ch.To.Sequence += skipped[ch.To.Key]
				})
			},
		},
		{
			name: "a revision that repeats", demand: "Numbers/revisions_never_repeat",
			plant: renamed(func(r *lifecycle.StoredRecord) lifecycle.Revision {
				return lifecycle.Revision(fmt.Sprint(r.Sequence % 16))
			}),
		},
		{
			name: "a revision that repeats after removal", demand: "Numbers/revisions_never_repeat_after_removal",
			plant: func(b *bent) {
				lives := map[lifecycle.Key]uint64{} // the first sequence number of the present life
				renamed(func(r *lifecycle.StoredRecord) lifecycle.Revision {
					if !r.Exists() {
						lives[r.Key] = r.Sequence
						return "absent"
					}
					return lifecycle.Revision(fmt.Sprint(r.Sequence - min(r.Sequence, lives[r.Key])))
				})(b)
			},
		},
		{
			name: "numbers begin anew after removal", demand: "Numbers/go_on_after_removal",
			plant: renumbered(func(lifecycle.Key) bool { return true }),
		},
		{
			name: "numbers begin anew after many removals", demand: "Numbers/go_on_after_many_removals",
			plant: func(b *bent) {
				var removed []lifecycle.Key
				renumbered(func(k lifecycle.Key) bool { return slices.Index(removed, k) < len(removed)-kept })(b)
				b.eachChange(func(ch *lifecycle.StoredChange) {
					if ch.Remove {
						removed = append(slices.DeleteFunc(removed, func(k lifecycle.Key) bool { return k == ch.To.Key }), ch.To.Key)
					}
				})
			},
		},
		{
			name: "a creation asks only whether the object exists", demand: "Numbers/outdated_creation_conflicts",
			plant: func(b *bent) {
				b.eachChange(func(ch *lifecycle.StoredChange) {
					if now := b.now(ch.To.Key); ch.From == "" && !now.Exists() {
						ch.Expect = now.Revision
						ch.To.Sequence = now.Sequence + 1
					}
				})
			},
		},
		{
			name: "the revision is a sum of the content", demand: "Numbers/leaving_and_returning_conflicts",
			plant: renamed(func(r *lifecycle.StoredRecord) lifecycle.Revision {
				return lifecycle.Revision(fmt.Sprintf("%q %q %d", r.State, r.Origin, r.Operation))
			}),
		},
	}
}
