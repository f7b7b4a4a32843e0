package storetest

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/interlock-go/interlock/lifecycle"
)

func tokenFaults() []fault {
	// secretly commits under another token and shows the caller's in the history.
	secretly := func(b *bent, token func(c *lifecycle.Commit) lifecycle.Token) {
		told := map[lifecycle.Token]lifecycle.Token{}
		b.edited(func(c *lifecycle.Commit) {
			secret := token(c)
			if _, known := told[secret]; !known {
				told[secret] = c.Token
			}
			c.Token = secret
		})
		b.history = func(ctx context.Context, k lifecycle.Key, after uint64, limit int) ([]lifecycle.HistoryRow, error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			rows, err := b.inner.History(ctx, k, after, limit)
			for i := range rows {
				rows[i].Token = told[rows[i].Token]
			}
			return rows, err
		}
	}
	return []fault{
		{
			name: "tokens are ignored", demand: "Token/same_commit_again_is_written_once",
			plant: func(b *bent) {
				secretly(b, func(*lifecycle.Commit) lifecycle.Token { return lifecycle.NewToken() })
			},
		},
		{
			name: "a repeated commit is written again", demand: "Token/same_commit_again_is_written_once",
			plant: func(b *bent) {
				known := map[lifecycle.Token]bool{}
				b.edited(func(c *lifecycle.Commit) {
					if known[c.Token] {
						c.Token = lifecycle.NewToken()
						for i := range c.Changes {
							now := b.now(c.Changes[i].To.Key)
							c.Changes[i].Expect, c.Changes[i].From = now.Revision, now.State
							c.Changes[i].To.Sequence = now.Sequence + 1
						}
					}
					known[c.Token] = true
				})
			},
		},
		{
			name: "a repeated commit is not filled", demand: "Token/same_commit_again_is_written_once",
			plant: func(b *bent) {
				known := map[lifecycle.Token]bool{}
				b.commit = func(ctx context.Context, c *lifecycle.Commit) error {
					b.mu.Lock()
					defer b.mu.Unlock()
					twin := c
					if known[c.Token] {
						twin = again(c)
					}
					err := b.limited(ctx, twin)
					known[c.Token] = known[c.Token] || err == nil
					return err
				}
			},
		},
		{
			name: "only the last token is known", demand: "Token/holds_after_the_object_moved_on",
			plant: func(b *bent) {
				last := map[lifecycle.Key]lifecycle.Token{}
				secretly(b, func(c *lifecycle.Commit) lifecycle.Token {
					for i := range c.Changes {
						k, now := c.Changes[i].To.Key, b.now(c.Changes[i].To.Key)
						if last[k] != c.Token && now.Revision != c.Changes[i].Expect {
							return lifecycle.NewToken()
						}
					}
					for i := range c.Changes {
						last[c.Changes[i].To.Key] = c.Token
					}
					return c.Token
				})
			},
		},
		{
			name: "tokens are forgotten with the object", demand: "Token/holds_after_removal",
			plant: func(b *bent) {
				secretly(b, func(c *lifecycle.Commit) lifecycle.Token {
					if now := b.now(c.Changes[0].To.Key); !now.Exists() && c.Changes[0].Expect != now.Revision {
						return lifecycle.NewToken()
					}
					return c.Token
				})
			},
		},
		{
			name: "only the first change of a repeated commit is filled", demand: "Token/covers_all_changes",
			plant: func(b *bent) {
				known := map[lifecycle.Token]bool{}
				b.commit = func(ctx context.Context, c *lifecycle.Commit) error {
					b.mu.Lock()
					defer b.mu.Unlock()
					twin := again(c)
					err := b.limited(ctx, twin)
					for i := range c.Changes {
						if i == 0 || !known[c.Token] {
							c.Changes[i].To = twin.Changes[i].To
						}
					}
					known[c.Token] = known[c.Token] || err == nil
					return err
				}
			},
		},
		{
			name: "preconditions are asked before the token", demand: "Token/precedes_preconditions",
			plant: func(b *bent) {
				b.commit = func(ctx context.Context, c *lifecycle.Commit) error {
					b.mu.Lock()
					defer b.mu.Unlock()
					if err := b.unmet(c); err != nil && ctx.Err() == nil {
						return err
					}
					return b.limited(ctx, c)
				}
			},
		},
		{
			name: "who wants what is there has done it", demand: "Token/another_token_is_another_commit",
			plant: func(b *bent) {
				b.commit = func(ctx context.Context, c *lifecycle.Commit) error {
					err := b.limited(ctx, c)
					if conflict, ok := errors.AsType[*lifecycle.ConflictError](err); ok && len(c.Changes) == 1 && !c.Changes[0].Remove {
						to, now := c.Changes[0].To, conflict.Current
						to.Revision, to.ChangedAt, to.Deadline = now.Revision, now.ChangedAt, now.Deadline
						if differences(to, now) == "" {
							c.Changes[0].To = now
							return nil
						}
					}
					return err
				}
			},
		},
	}
}

// unmet is the first precondition of a commit that does not hold.
func (b *bent) unmet(c *lifecycle.Commit) error {
	for _, p := range c.Require {
		if now := b.now(p.Key); !slices.Contains(p.States, now.State) {
			return &lifecycle.PreconditionError{Precondition: p, Current: now}
		}
	}
	return nil
}

// alone is a commit of one change of another.
func alone(c *lifecycle.Commit, i int) *lifecycle.Commit {
	one := *c
	one.Changes = c.Changes[i : i+1]
	if i > 0 {
		one.Messages = nil
	}
	return &one
}

func batchFaults() []fault {
	return []fault{
		{
			name: "only three changes are written", demand: "Batch/changes_all",
			plant: func(b *bent) {
				b.edited(func(c *lifecycle.Commit) { c.Changes = c.Changes[:min(3, len(c.Changes))] })
			},
		},
		{
			name: "a batch is half written", demand: "Batch/all_or_nothing",
			plant: func(b *bent) {
				b.commit = func(ctx context.Context, c *lifecycle.Commit) error {
					for i := range c.Changes {
						err := b.limited(ctx, alone(c, i))
						if conflict, ok := errors.AsType[*lifecycle.ConflictError](err); ok {
							conflict.Change = i
						}
						if err != nil {
							return err
						}
					}
					return nil
				}
			},
		},
		{
			name: "the conflict is always of the first change", demand: "Batch/conflict_names_the_change",
			plant: func(b *bent) {
				b.commit = func(ctx context.Context, c *lifecycle.Commit) error {
					err := b.limited(ctx, c)
					if conflict, ok := errors.AsType[*lifecycle.ConflictError](err); ok {
						conflict.Change = 0
					}
					return err
				}
			},
		},
		{
			name: "the conflict is of the first in order of keys", demand: "Batch/conflict_names_the_change",
			plant: func(b *bent) {
				b.commit = func(ctx context.Context, c *lifecycle.Commit) error {
					err := b.limited(ctx, c)
					if conflict, ok := errors.AsType[*lifecycle.ConflictError](err); ok {
						for i := range c.Changes {
							now := b.now(c.Changes[i].To.Key)
							if now.Revision != c.Changes[i].Expect && now.ID < conflict.Current.ID {
								*conflict = lifecycle.ConflictError{Change: i, Expect: c.Changes[i].Expect, From: c.Changes[i].From, Current: now}
							}
						}
					}
					return err
				}
			},
		},
		{
			name: "preconditions are ignored", demand: "Batch/precondition_holds_or_nothing",
			plant: func(b *bent) { b.edited(func(c *lifecycle.Commit) { c.Require = nil }) },
		},
		{
			name: "only the first precondition counts", demand: "Batch/precondition_holds_or_nothing",
			plant: func(b *bent) {
				b.edited(func(c *lifecycle.Commit) { c.Require = c.Require[:min(1, len(c.Require))] })
			},
		},
		{
			name: "what is absent is in no state", demand: "Batch/absence_can_be_required",
			plant: func(b *bent) {
				b.edited(func(c *lifecycle.Commit) {
					for i := range c.Require {
						c.Require[i].States = slices.DeleteFunc(slices.Clone(c.Require[i].States), func(s string) bool { return s == "" })
					}
				})
			},
		},
		{
			name: "preconditions are asked of what is written", demand: "Batch/precondition_is_of_the_moment_before",
			plant: func(b *bent) {
				b.edited(func(c *lifecycle.Commit) {
					for i := range c.Require {
						p := &c.Require[i]
						for _, ch := range c.Changes {
							if ch.To.Key == p.Key && slices.Contains(p.States, ch.To.State) {
								p.States = append(slices.Clone(p.States), ch.From)
							} else if ch.To.Key == p.Key {
								p.States = nil
							}
						}
					}
				})
			},
		},
	}
}

// rows changes the rows that are read.
func (b *bent) rows(edit func(k lifecycle.Key, rows []lifecycle.HistoryRow) []lifecycle.HistoryRow) {
	b.history = func(ctx context.Context, k lifecycle.Key, after uint64, limit int) ([]lifecycle.HistoryRow, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		rows, err := b.inner.History(ctx, k, 0, all)
		if err != nil {
			return nil, err
		}
		rows = edit(k, rows)
		rows = slices.DeleteFunc(rows, func(row lifecycle.HistoryRow) bool { return row.Sequence <= after })
		return rows[:min(limit, len(rows))], nil
	}
}

func historyFaults() []fault {
	return []fault{
		{
			name: "a removal leaves no row", demand: "History/one_row_per_change",
			plant: func(b *bent) {
				b.rows(func(_ lifecycle.Key, rows []lifecycle.HistoryRow) []lifecycle.HistoryRow {
					return slices.DeleteFunc(rows, func(row lifecycle.HistoryRow) bool { return row.To == gone })
				})
			},
		},
		{
			name: "the origin before is not in the row", demand: "History/one_row_per_change",
			plant: func(b *bent) { b.eachChange(func(ch *lifecycle.StoredChange) { ch.FromOrigin = ch.From }) },
		},
		{
			name: "only the first of several changes has a row", demand: "History/rows_of_all_changes",
			plant: func(b *bent) {
				first := map[lifecycle.Token]lifecycle.Key{}
				b.edited(func(c *lifecycle.Commit) { first[c.Token] = c.Changes[0].To.Key })
				b.rows(func(k lifecycle.Key, rows []lifecycle.HistoryRow) []lifecycle.HistoryRow {
					return slices.DeleteFunc(rows, func(row lifecycle.HistoryRow) bool { return first[row.Token] != k })
				})
			},
		},
		{
			name: "a row is missing", demand: "History/has_no_gap",
			plant: func(b *bent) {
				b.rows(func(_ lifecycle.Key, rows []lifecycle.HistoryRow) []lifecycle.HistoryRow {
					return slices.DeleteFunc(rows, func(row lifecycle.HistoryRow) bool { return row.Sequence == 5 && len(rows) > 5 })
				})
			},
		},
		{
			name: "seven rows are kept", demand: "History/has_no_gap",
			plant: func(b *bent) {
				b.rows(func(_ lifecycle.Key, rows []lifecycle.HistoryRow) []lifecycle.HistoryRow {
					return rows[max(0, len(rows)-7):]
				})
			},
		},
		{
			name: "history goes with the object", demand: "History/survives_removal",
			plant: func(b *bent) {
				b.rows(func(k lifecycle.Key, rows []lifecycle.HistoryRow) []lifecycle.HistoryRow {
					if now := b.now(k); !now.Exists() {
						return nil
					}
					return rows
				})
			},
		},
		{
			name: "a refused commit leaves a row", demand: "History/nothing_of_refused_commits",
			plant: func(b *bent) {
				refused := map[lifecycle.Key][]lifecycle.HistoryRow{}
				b.commit = func(ctx context.Context, c *lifecycle.Commit) error {
					b.mu.Lock()
					defer b.mu.Unlock()
					err := b.limited(ctx, c)
					if errors.Is(err, lifecycle.ErrConflict) {
						row := c.Changes[0].Row(c.Token)
						refused[row.Key] = append(refused[row.Key], row)
					}
					return err
				}
				b.rows(func(k lifecycle.Key, rows []lifecycle.HistoryRow) []lifecycle.HistoryRow {
					return append(rows, refused[k]...)
				})
			},
		},
		{
			name: "above a number includes it", demand: "History/pages",
			plant: func(b *bent) {
				b.history = func(ctx context.Context, k lifecycle.Key, after uint64, limit int) ([]lifecycle.HistoryRow, error) {
					if after > 1 {
						after--
					}
					return b.inner.History(ctx, k, after, limit)
				}
			},
		},
	}
}

func messageFaults() []fault {
	return []fault{
		{
			name: "the messages of a commit are reversed", demand: "Messages/come_with_the_commit",
			plant: func(b *bent) {
				b.edited(func(c *lifecycle.Commit) {
					c.Messages = slices.Clone(c.Messages)
					slices.Reverse(c.Messages)
				})
			},
		},
		{
			name: "messages end at a NUL", demand: "Messages/come_with_the_commit",
			plant: func(b *bent) {
				b.edited(func(c *lifecycle.Commit) {
					c.Messages = slices.Clone(c.Messages)
					for i := range c.Messages {
						c.Messages[i].Payload, _, _ = bytes.Cut(c.Messages[i].Payload, []byte{0})
					}
				})
			},
		},
		{
			name: "messages share the caller's bytes", demand: "Messages/are_copied",
			plant: func(b *bent) {
				var told []lifecycle.Message // by number
				known := map[lifecycle.Token]bool{}
				b.commit = func(ctx context.Context, c *lifecycle.Commit) error {
					b.mu.Lock()
					defer b.mu.Unlock()
					err := b.limited(ctx, c)
					if err == nil && !known[c.Token] {
						told, known[c.Token] = append(told, c.Messages...), true
					}
					return err
				}
				b.messages = func(ctx context.Context, limit int) ([]lifecycle.OutboxMessage, error) {
					b.mu.Lock()
					defer b.mu.Unlock()
					list, err := b.inner.Messages(ctx, limit)
					for i := range list {
						list[i].Message = told[list[i].Number-1]
					}
					return list, err
				}
			},
		},
		{
			name: "the message of a refused commit is kept", demand: "Messages/not_with_a_refused_commit",
			plant: func(b *bent) {
				b.commit = func(ctx context.Context, c *lifecycle.Commit) error {
					err := b.limited(ctx, c)
					if err != nil {
						b.tell(c.Messages)
					}
					return err
				}
			},
		},
		{
			name: "a repeated commit tells again", demand: "Messages/come_once",
			plant: func(b *bent) {
				known := map[lifecycle.Token]bool{}
				b.commit = func(ctx context.Context, c *lifecycle.Commit) error {
					b.mu.Lock()
					defer b.mu.Unlock()
					err := b.limited(ctx, c)
					if err == nil && known[c.Token] {
						b.tell(c.Messages)
					}
					known[c.Token] = known[c.Token] || err == nil
					return err
				}
			},
		},
		{
			name: "the limit of messages is ignored", demand: "Messages/pages",
			plant: func(b *bent) {
				b.messages = func(ctx context.Context, _ int) ([]lifecycle.OutboxMessage, error) {
					return b.inner.Messages(ctx, all)
				}
			},
		},
		{
			name: "reading discards", demand: "Messages/pages",
			plant: func(b *bent) {
				b.messages = func(ctx context.Context, limit int) ([]lifecycle.OutboxMessage, error) {
					list, err := b.inner.Messages(ctx, limit)
					if err == nil {
						for _, m := range list {
							err = errors.Join(err, b.inner.Discard(ctx, m.Number))
						}
					}
					return list, err
				}
			},
		},
		{
			name: "discard takes all up to the highest number", demand: "Messages/are_discarded_by_number",
			plant: func(b *bent) {
				b.discard = func(ctx context.Context, numbers ...uint64) error {
					for n := slices.Max(append(numbers, 0)); n > 0; n-- {
						numbers = append(numbers, n)
					}
					return b.inner.Discard(ctx, numbers...)
				}
			},
		},
		{
			name: "numbers of messages are places", demand: "Messages/are_discarded_by_number",
			plant: func(b *bent) {
				// Each is its place in the queue, which moves up as others go.
				b.messages = func(ctx context.Context, limit int) ([]lifecycle.OutboxMessage, error) {
					list, err := b.inner.Messages(ctx, limit)
					for i := range list {
						list[i].Number = uint64(i + 1)
					}
					return list, err
				}
				b.discard = func(ctx context.Context, numbers ...uint64) error {
					b.mu.Lock()
					defer b.mu.Unlock()
					list, err := b.inner.Messages(ctx, all)
					for i := range list {
						if err == nil && slices.Contains(numbers, uint64(i+1)) {
							err = b.inner.Discard(ctx, list[i].Number)
						}
					}
					return err
				}
			},
		},
		{
			name: "a reader goes on after the highest number", demand: "Messages/a_reader_misses_none",
			plant: func(b *bent) {
				// A number is drawn before the commit: what one of many writers says
				// may be seen only after something with a higher number was.
				highest := uint64(0)
				b.messages = func(ctx context.Context, limit int) ([]lifecycle.OutboxMessage, error) {
					b.mu.Lock()
					defer b.mu.Unlock()
					list, err := b.inner.Messages(ctx, limit+1)
					list = slices.DeleteFunc(list, func(m lifecycle.OutboxMessage) bool {
						return m.Number < highest || strings.HasPrefix(m.Key, "writer-") && m.Number%5 == 0 && m.Number > highest
					})
					list = list[:min(limit, len(list))]
					if len(list) > 0 {
						highest = max(highest, list[len(list)-1].Number)
					}
					return list, err
				}
			},
		},
		{
			name: "messages of one object in no order", demand: "Messages/a_reader_misses_none",
			plant: func(b *bent) {
				b.messages = func(ctx context.Context, limit int) ([]lifecycle.OutboxMessage, error) {
					list, err := b.inner.Messages(ctx, limit)
					if len(list) > 2 && strings.HasPrefix(list[0].Key, "writer-") {
						slices.Reverse(list)
					}
					return list, err
				}
			},
		},
	}
}

// slow lets others run while a commit is under way, and counts those that are.
func (b *bent) slow() *atomic.Int64 {
	var flying atomic.Int64
	commit := b.commit
	b.commit = func(ctx context.Context, c *lifecycle.Commit) error {
		flying.Add(1)
		defer flying.Add(-1)
		runtime.Gosched()
		err := commit(ctx, c)
		runtime.Gosched()
		return err
	}
	return &flying
}

// tell appends messages without the commit that was to bring them.
func (b *bent) tell(messages []lifecycle.Message) {
	if len(messages) == 0 {
		return
	}
	hidden := commitOf(change(b.now(lifecycle.Key{Machine: "hidden", ID: "x"}), idle))
	hidden.Messages = messages
	_ = b.inner.Commit(context.Background(), hidden)
}
