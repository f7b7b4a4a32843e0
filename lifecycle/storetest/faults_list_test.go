package storetest

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// whole replaces what a query finds by a selection of all that there is: the
// records of all machines in order of machine and id.
func (b *bent) whole(pick func(q lifecycle.Query, r *lifecycle.StoredRecord, now time.Time) bool, order func(x, y lifecycle.StoredRecord) int) {
	machines := map[string]bool{}
	b.edited(func(c *lifecycle.Commit) {
		for i := range c.Changes {
			machines[c.Changes[i].To.Machine] = true
		}
	})
	b.list = func(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
		if _, err := b.inner.List(ctx, q); err != nil {
			return nil, err
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		var found []lifecycle.StoredRecord
		for m := range machines {
			objects, err := b.inner.List(ctx, lifecycle.Query{Machine: m, Limit: 1 << 20})
			if err != nil {
				return nil, err
			}
			found = append(found, objects...)
		}
		now := time.Now()
		found = slices.DeleteFunc(found, func(r lifecycle.StoredRecord) bool { return !pick(q, &r, now) })
		slices.SortFunc(found, order)
		found = found[:min(q.Limit, len(found))]
		for i := range found {
			if q.WithoutPayload {
				found[i].Payload, found[i].Saved, found[i].Args = nil, nil, nil
			}
		}
		return found, nil
	}
}

func byID(x, y lifecycle.StoredRecord) int { return cmp.Compare(x.ID, y.ID) }

// selects is what a sound store does.
func selects(q lifecycle.Query, r *lifecycle.StoredRecord, now time.Time) bool {
	return r.Machine == q.Machine && r.ID > q.After && inStates(q, r) && oldEnough(q, r, now) && late(q, r, now) &&
		(!q.NoDeadline || r.Deadline.IsZero()) && (!q.Unowned || r.Owner == "") && abandoned(q, r)
}

func abandoned(q lifecycle.Query, r *lifecycle.StoredRecord) bool {
	return q.NotOwnedBy == nil || r.Owner != "" && !slices.Contains(q.NotOwnedBy, ref(r.Owner, r.Epoch))
}

// selecting is a fault of a query: it is answered as the edited one.
func selecting(edit func(q *lifecycle.Query)) func(b *bent) {
	return func(b *bent) {
		b.list = func(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
			edit(&q)
			return b.inner.List(ctx, q)
		}
	}
}

func inStates(q lifecycle.Query, r *lifecycle.StoredRecord) bool {
	return len(q.States) == 0 || slices.Contains(q.States, r.State)
}

func oldEnough(q lifecycle.Query, r *lifecycle.StoredRecord, now time.Time) bool {
	return now.Sub(r.ChangedAt) >= q.UnchangedFor
}

func late(q lifecycle.Query, r *lifecycle.StoredRecord, now time.Time) bool {
	return !q.Overdue || !r.Deadline.IsZero() && now.After(r.Deadline)
}

func listFaults() []fault {
	return []fault{
		{
			name: "a list without payloads", demand: "List/returns_what_get_returns",
			plant: func(b *bent) {
				b.list = func(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
					found, err := b.inner.List(ctx, q)
					for i := range found {
						found[i].Payload = nil
					}
					return found, err
				}
			},
		},
		{
			name: "machines are matched by prefix", demand: "List/of_one_machine",
			plant: func(b *bent) {
				b.whole(func(q lifecycle.Query, r *lifecycle.StoredRecord, now time.Time) bool {
					prefix := strings.HasPrefix(r.Machine, q.Machine)
					q.Machine = r.Machine
					return prefix && selects(q, r, now)
				}, byID)
			},
		},
		{
			name: "the index of states knows the first", demand: "List/by_state",
			plant: func(b *bent) {
				first := map[lifecycle.Key]string{}
				b.whole(func(q lifecycle.Query, r *lifecycle.StoredRecord, now time.Time) bool {
					if first[r.Key] == "" {
						first[r.Key] = r.State
					}
					indexed := *r
					indexed.State = first[r.Key]
					return selects(q, &indexed, now)
				}, byID)
			},
		},
		{
			name: "states are matched by origin too", demand: "List/by_state",
			plant: func(b *bent) {
				b.whole(func(q lifecycle.Query, r *lifecycle.StoredRecord, now time.Time) bool {
					resting := *r
					resting.State = r.Origin
					return selects(q, r, now) || selects(q, &resting, now)
				}, byID)
			},
		},
		{
			name: "ids are sorted without case", demand: "List/in_order_of_id",
			plant: func(b *bent) {
				b.whole(selects, func(x, y lifecycle.StoredRecord) int {
					return cmp.Or(cmp.Compare(strings.ToLower(x.ID), strings.ToLower(y.ID)), byID(x, y))
				})
			},
		},
		{
			name: "after an unknown id comes everything", demand: "List/after_an_id",
			plant: func(b *bent) {
				b.list = func(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
					if now := b.now(lifecycle.Key{Machine: q.Machine, ID: q.After}); !now.Exists() {
						q.After = ""
					}
					return b.inner.List(ctx, q)
				}
			},
		},
		{
			name: "the limit is taken before the states are", demand: "List/pages_are_full",
			plant: func(b *bent) {
				b.list = func(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
					states := q.States
					q.States = nil
					found, err := b.inner.List(ctx, q)
					q.States = states
					return slices.DeleteFunc(found, func(r lifecycle.StoredRecord) bool { return !inStates(q, &r) }), err
				}
			},
		},
		{
			name: "a list skips one at the border of a page", demand: "List/every_object_once",
			plant: func(b *bent) {
				b.list = func(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
					if q.After == "" || q.Limit < 1 {
						return b.inner.List(ctx, q)
					}
					q.Limit++
					found, err := b.inner.List(ctx, q)
					return found[min(1, len(found)):], err
				}
			},
		},
		{
			name: "a list repeats one at the border of a page", demand: "List/every_object_once",
			plant: func(b *bent) {
				b.list = func(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
					found, err := b.inner.List(ctx, q)
					border := b.now(lifecycle.Key{Machine: q.Machine, ID: q.After})
					if err == nil && border.Exists() && inStates(q, &border) && q.Limit > 1 {
						found = slices.Insert(found, 0, border)
						found = found[:min(q.Limit, len(found))]
					}
					return found, err
				}
			},
		},
		{
			name: "pages are counted, not continued", demand: "List/every_object_once_while_others_change",
			plant: func(b *bent) {
				// How many were before the next page when the last was read.
				before := map[string]int{}
				b.list = func(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
					if q.Limit <= 0 || q.After == "" {
						clear(before)
					}
					page, whole := q, q
					offset, known := before[q.After]
					if !known {
						offset = 0
					} else {
						whole.After = ""
					}
					whole.Limit = offset + max(page.Limit, 0)
					found, err := b.inner.List(ctx, whole)
					if err != nil {
						return nil, err
					}
					found = found[min(offset, len(found)):]
					if len(found) > 0 {
						before[found[len(found)-1].ID] = offset + len(found)
					}
					return found, nil
				}
			},
		},
		{
			name: "owners are known by name alone", demand: "List/not_owned_by",
			plant: func(b *bent) {
				b.whole(func(q lifecycle.Query, r *lifecycle.StoredRecord, now time.Time) bool {
					alive := slices.ContainsFunc(q.NotOwnedBy, func(o lifecycle.OwnerRef) bool { return o.Name == r.Owner })
					return selects(q, r, now) && (q.NotOwnedBy == nil || !alive)
				}, byID)
			},
		},
		{
			name: "owners are known by their beginnings", demand: "List/not_owned_by",
			plant: func(b *bent) {
				b.whole(func(q lifecycle.Query, r *lifecycle.StoredRecord, now time.Time) bool {
					alive := slices.ContainsFunc(q.NotOwnedBy, func(o lifecycle.OwnerRef) bool {
						return o.Name != "" && strings.HasPrefix(r.Owner, o.Name) && o.Epoch == r.Epoch
					})
					return selects(q, r, now) && !alive
				}, byID)
			},
		},
		{
			name: "of many owners only the first are excluded", demand: "List/not_owned_by",
			plant: selecting(func(q *lifecycle.Query) {
				if len(q.NotOwnedBy) > 300 {
					q.NotOwnedBy = q.NotOwnedBy[:1]
				}
			}),
		},
		{
			name: "no living owners select nothing in particular", demand: "List/not_owned_by",
			plant: selecting(func(q *lifecycle.Query) {
				if len(q.NotOwnedBy) == 0 {
					q.NotOwnedBy = nil
				}
			}),
		},
		{
			name: "no owner is a dead one", demand: "List/not_owned_by",
			plant: func(b *bent) {
				b.whole(func(q lifecycle.Query, r *lifecycle.StoredRecord, now time.Time) bool {
					owners := q.NotOwnedBy
					q.NotOwnedBy = nil
					return selects(q, r, now) && (owners == nil || !slices.Contains(owners, ref(r.Owner, r.Epoch)))
				}, byID)
			},
		},
		{
			name: "the ranges between owners are read one after the other", demand: "List/not_owned_by_in_pages",
			plant: func(b *bent) {
				b.list = func(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
					if q.NotOwnedBy == nil || q.Limit <= 0 {
						return b.inner.List(ctx, q)
					}
					all := q
					all.Limit = 1 << 20
					found, err := b.inner.List(ctx, all)
					slices.SortStableFunc(found, func(x, y lifecycle.StoredRecord) int { return cmp.Compare(x.Owner, y.Owner) })
					found = found[:min(q.Limit, len(found))]
					slices.SortFunc(found, byID)
					return found, err
				}
			},
		},
		{
			name: "owned objects are listed as unowned", demand: "List/unowned",
			plant: selecting(func(q *lifecycle.Query) { q.Unowned = false }),
		},
		{
			name: "a deadline that is not over is none", demand: "List/no_deadline",
			plant: func(b *bent) {
				b.whole(func(q lifecycle.Query, r *lifecycle.StoredRecord, now time.Time) bool {
					none := q.NoDeadline && !now.After(r.Deadline)
					q.NoDeadline = q.NoDeadline && !none
					return selects(q, r, now)
				}, byID)
			},
		},
		{
			name: "payloads are listed all the same", demand: "List/without_payload",
			plant: selecting(func(q *lifecycle.Query) { q.WithoutPayload = false }),
		},
		{
			name: "without a payload the record is a summary", demand: "List/without_payload",
			plant: func(b *bent) {
				b.list = func(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
					found, err := b.inner.List(ctx, q)
					for i := range found {
						if q.WithoutPayload {
							found[i].WorkOptions, found[i].Reason = nil, ""
						}
					}
					return found, err
				}
			},
		},
		{
			name: "only a change of state makes young", demand: "Time/list_by_age",
			plant: func(b *bent) {
				type entry struct {
					state string
					since time.Time
				}
				entered := map[lifecycle.Key]entry{}
				b.edited(func(c *lifecycle.Commit) {
					for _, ch := range c.Changes {
						if entered[ch.To.Key].state != ch.To.State {
							entered[ch.To.Key] = entry{ch.To.State, time.Now()}
						}
					}
				})
				b.whole(func(q lifecycle.Query, r *lifecycle.StoredRecord, now time.Time) bool {
					old := *r
					old.ChangedAt = entered[r.Key].since
					return selects(q, &old, now)
				}, byID)
			},
		},
		{
			name: "an age is more than, not at least", demand: "Time/list_by_age",
			plant: func(b *bent) {
				b.whole(func(q lifecycle.Query, r *lifecycle.StoredRecord, now time.Time) bool {
					return selects(q, r, now) && (q.UnchangedFor == 0 || now.Sub(r.ChangedAt) > q.UnchangedFor)
				}, byID)
			},
		},
		{
			name: "no deadline is long over", demand: "Time/list_overdue",
			plant: func(b *bent) {
				b.whole(func(q lifecycle.Query, r *lifecycle.StoredRecord, now time.Time) bool {
					over := now.After(r.Deadline)
					overdue := q.Overdue
					q.Overdue = false
					return selects(q, r, now) && (!overdue || over)
				}, byID)
			},
		},
		{
			name: "one filter is enough", demand: "Time/filters_combine",
			plant: func(b *bent) {
				b.whole(func(q lifecycle.Query, r *lifecycle.StoredRecord, now time.Time) bool {
					either := q
					either.UnchangedFor, either.Overdue = 0, false
					if q.UnchangedFor == 0 || !q.Overdue {
						return selects(q, r, now)
					}
					return selects(either, r, now) && (oldEnough(q, r, now) || late(q, r, now))
				}, byID)
			},
		},
		{
			name: "the limit is taken before the age is", demand: "Time/filters_combine",
			plant: func(b *bent) {
				b.list = func(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
					all := q
					all.UnchangedFor, all.Overdue = 0, false
					found, err := b.inner.List(ctx, all)
					now := time.Now()
					return slices.DeleteFunc(found, func(r lifecycle.StoredRecord) bool { return !selects(q, &r, now) }), err
				}
			},
		},
	}
}

// keyed replaces the keys under which objects are kept.
func keyed(of func(k lifecycle.Key) lifecycle.Key) func(b *bent) {
	return func(b *bent) {
		back := map[lifecycle.Key]lifecycle.Key{}
		b.eachChange(func(ch *lifecycle.StoredChange) {
			k := of(ch.To.Key)
			if _, known := back[k]; !known {
				back[k] = ch.To.Key
			}
			ch.To.Key = k
		})
		b.edited(func(c *lifecycle.Commit) {
			c.Require = slices.Clone(c.Require)
			for i := range c.Require {
				c.Require[i].Key = of(c.Require[i].Key)
			}
		})
		get, history := b.get, b.history
		b.get = func(ctx context.Context, k lifecycle.Key) (lifecycle.StoredRecord, error) {
			r, err := get(ctx, of(k))
			r.Key = k
			return r, err
		}
		b.history = func(ctx context.Context, k lifecycle.Key, after uint64, limit int) ([]lifecycle.HistoryRow, error) {
			rows, err := history(ctx, of(k), after, limit)
			for i := range rows {
				rows[i].Key = k
			}
			return rows, err
		}
		b.shown(func(r *lifecycle.StoredRecord) {
			b.mu.Lock()
			defer b.mu.Unlock()
			if k, known := back[r.Key]; known && of(r.Key) == r.Key {
				r.Key = k
			}
		})
	}
}

func nameFaults() []fault {
	return []fault{
		{
			name: "trailing blanks of ids do not count", demand: "Names/hostile_ids",
			plant: keyed(func(k lifecycle.Key) lifecycle.Key {
				return lifecycle.Key{Machine: k.Machine, ID: strings.TrimRight(k.ID, " ")}
			}),
		},
		{
			name: "ids are cut at 254 bytes", demand: "Names/hostile_ids",
			plant: keyed(func(k lifecycle.Key) lifecycle.Key {
				return lifecycle.Key{Machine: k.Machine, ID: k.ID[:min(254, len(k.ID))]}
			}),
		},
		{
			name: "trailing blanks of states do not count", demand: "Names/hostile_states",
			plant: func(b *bent) {
				b.whole(func(q lifecycle.Query, r *lifecycle.StoredRecord, now time.Time) bool {
					padded := q
					padded.States = nil
					return selects(padded, r, now) && (q.States == nil || slices.ContainsFunc(q.States, func(s string) bool {
						return strings.TrimRight(s, " ") == strings.TrimRight(r.State, " ")
					}))
				}, byID)
			},
		},
		{
			name: "a key is a path", demand: "Names/hostile_machines",
			plant: keyed(func(k lifecycle.Key) lifecycle.Key {
				if machine, rest, cut := strings.Cut(k.Machine, "/"); cut && machine != "" && rest != "" {
					return lifecycle.Key{Machine: machine, ID: rest + "/" + k.ID}
				}
				return k
			}),
		},
		{
			name: "numbers belong to the id alone", demand: "Names/machines_do_not_see_each_other",
			plant: func(b *bent) {
				b.shown(func(r *lifecycle.StoredRecord) {
					if !r.Exists() && r.Machine == "truck" {
						r.Sequence += b.now(key(r.ID)).Sequence
					}
				})
			},
		},
		{
			name: "reasons end at 255 characters", demand: "Names/big_fields",
			plant: func(b *bent) {
				b.eachChange(func(ch *lifecycle.StoredChange) {
					if text := []rune(ch.To.Reason); len(text) > 255 {
						ch.To.Reason = string(text[:255])
					}
				})
			},
		},
		{
			name: "arguments end at 64 KiB", demand: "Names/big_fields",
			plant: func(b *bent) {
				b.eachChange(func(ch *lifecycle.StoredChange) { ch.To.Args = ch.To.Args[:min(len(ch.To.Args), 1<<16-1)] })
			},
		},
		{
			name: "payloads end at 64 KiB", demand: "Names/big_payload",
			plant: func(b *bent) {
				b.shown(func(r *lifecycle.StoredRecord) {
					if data := r.Payload; len(data) > 1<<16 {
						r.Payload = []byte(data[:1<<16])
					}
				})
			},
		},
	}
}
