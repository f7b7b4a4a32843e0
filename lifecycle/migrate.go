package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/decide"
)

// Migration is the result of one page of [Migrate]. It is a plain value.
type Migration struct {
	Migrated int     // records that were written in the manager's version
	Current  int     // records that were of this version already
	Failed   []error // one [*Error] for each record that could not be migrated, in order of id
	// Next is the After of the next page. Empty: this was the last page.
	Next string
}

// Migrate writes the records of one page in the manager's version: at most limit
// objects with ids greater than after, bytewise. A limit of 0 or less is [MaxPage]. State,
// origin and payload are converted by [Config].Older. The operation, its owner and its
// work go on. A deadline starts again with the timeout of the manager's table; in a pause of
// [Retries] it starts at the end of the pause. Each record is a commit of its own with a
// history row. Its event is [Migrated], and it leads from the old name of the state to the
// new one. BeforeCommit sees it as a change from the state to the same
// state. It needs no row of the table and runs no guard.
//
//	for after := ""; ; {
//		page, err := lifecycle.Migrate(ctx, vms, "operator", after, 0)
//		...
//		if after = page.Next; after == "" {
//			break
//		}
//	}
//
// Migrate can be repeated, and run in several processes: a record of the manager's version
// is not written again. After an interruption continue at the last Next, or start again.
// The actor is as in [Manager.Override].
//
// A record that cannot be migrated stays as it was and is in Failed: [ErrForeign], the
// error of BeforeCommit, or the store's about this record. The error is [ErrMisconfigured]
// without [Config].Switch, [ErrInvalid], [fsm.ErrWrongActor] for the sweeper,
// [ErrUnavailable], [ErrClosed], or the context's. It ends the page. The Migration then has
// the records before it, and its Next continues with the record that it is about.
func Migrate(ctx context.Context, m AnyManager, actor fsm.Actor, after string, limit int) (Migration, error) {
	page, err := m.untyped().migrate(ctx, actor, after, limit)
	if err != nil {
		return page, m.untyped().failed("migrate", "", err)
	}
	return page, nil
}

func (c *core) migrate(ctx context.Context, actor fsm.Actor, after string, most int) (page Migration, err error) {
	page.Next = after
	most, err = limit(most)
	err = errors.Join(err, checkText("actor", string(actor), MaxID))
	switch {
	case err != nil:
		return page, err
	case !c.switched:
		return page, fmt.Errorf("%w: Config.Switch of %s does not permit version %q", ErrMisconfigured, c.table.Name, c.version)
	case strings.TrimSpace(string(actor)) == "":
		return page, fmt.Errorf("%w: a migration needs an actor", ErrInvalid)
	case actor == fsm.Sweeper:
		return page, fmt.Errorf("%w: only sweeps act as %s", fsm.ErrWrongActor, fsm.Sweeper)
	}
	found, err := c.list(ctx, Query{Machine: c.table.Name, After: after, WithoutPayload: true, Limit: most})
	if err != nil {
		return page, err
	}
	for i := range found {
		if found[i].Version == c.version {
			page.Current++
		} else if err := c.migrateOne(ctx, actor, found[i].ID, &page); err != nil {
			return page, err
		}
		page.Next = found[i].ID
		if c.progress != nil {
			c.progress("migrate a page of "+c.table.Name, i+1, len(found))
		}
	}
	if len(found) < most {
		page.Next = ""
	}
	return page, nil
}

// migrateOne migrates one object and counts it. Its error ends the page.
func (c *core) migrateOne(ctx context.Context, actor fsm.Actor, id string, page *Migration) error {
	r := &request{core: c, verb: "migrate", key: c.key(id), event: Migrated, ask: decide.Request{Verb: decide.Migrate, Actor: actor}, anyState: true}
	_, err := apply(ctx, []*request{r}, nil)
	switch {
	case err == nil && r.written():
		page.Migrated++
	case err == nil:
		page.Current++ // another process was faster
	case err == ErrNotFound: // it was removed meanwhile; an error of BeforeCommit only matches it
	case ctx.Err() != nil, errors.Is(err, ErrUnavailable), errors.Is(err, ErrClosed):
		return err
	default:
		page.Failed = append(page.Failed, r.fail(ctx, err))
	}
	return nil
}
