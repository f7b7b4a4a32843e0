package sqllock

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/lock"
)

// query calls a function of the engine. It is one round trip.
func (l *Locker) query(ctx context.Context, function string, args []any, results ...any) error {
	places := make([]string, len(args))
	for i := range args {
		places[i] = fmt.Sprintf("$%d", i+1)
	}
	text := fmt.Sprintf("SELECT * FROM interlock_lock_%s(%s)", function, strings.Join(places, ", "))
	err := l.db.QueryRowContext(ctx, text, args...).Scan(results...)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return lock.Ended(ctx)
	}
	return fmt.Errorf("sqllock: %s: %w", function, err)
}

// report returns the holders in ranges, and those with an id that is not empty, which arrived
// before a number.
func (l *Locker) report(ctx context.Context, r ranges, id string, before int64, most int) (found list[lock.Holder], err error) {
	err = l.query(ctx, "report", []any{l.tree, r.low, r.high, r.mask, id, before, 0, most}, &found)
	return found, err
}

// list is a JSON result of the engine. NULL is an empty one.
type list[T any] []T

// Scan implements [sql.Scanner].
func (l *list[T]) Scan(from any) error {
	var text sql.Null[[]byte]
	if err := text.Scan(from); err != nil || !text.Valid {
		return err
	}
	return json.Unmarshal(text.V, (*[]T)(l))
}

// decision is what the engine decides about an acquisition or a conversion.
type decision struct {
	outcome string // granted, waiting, conflict, full, late, ended or gone
	number  int64  // of arrival; of a grant it is the token
	holders list[lock.Holder]
}

// decide calls a function that decides. The error is errSession if the session ends first.
func (l *Locker) decide(ctx context.Context, s *session, function string, args ...any) (d decision, err error) {
	var number sql.NullInt64
	since := new(any) // which only holders show
	bounded, cancel := s.bound(ctx)
	defer cancel()
	err = l.query(bounded, function, args, &d.outcome, &number, since, &d.holders)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		err = errSession
	}
	d.number = number.Int64
	return d, err
}
