package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/internal/visible"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/inspect"
)

// runList reads all pages of the list.
func runList(ctx context.Context, c *call, args []string) error {
	all := inspect.ObjectList{Objects: []inspect.Object{}}
	for query := (url.Values{"machine": args, "state": c.states}); ; query.Set("after", all.Next) {
		want := lifecycle.MaxPage
		if c.limit > 0 {
			want = min(want, c.limit-len(all.Objects))
		}
		query.Set("limit", strconv.Itoa(want))
		var page inspect.ObjectList
		if err := c.get(ctx, "objects", query, &page); err != nil {
			return err
		}
		page.Objects = append(all.Objects, page.Objects...)
		if all = page; all.Next == "" || len(all.Objects) == c.limit {
			break
		}
	}
	all.Limit = c.limit
	return c.show(all, func(p *printer) { p.objects(&all) })
}

// runStuck lists the stuck objects of one machine or of all.
func runStuck(ctx context.Context, c *call, machines []string) error {
	if len(machines) == 0 {
		var all inspect.Overview
		if err := c.get(ctx, "", nil, &all); err != nil {
			return err
		}
		for _, m := range all.Machines {
			machines = append(machines, m.Name)
		}
	}
	lists, found := []inspect.ObjectList{}, 0
	var failed error // of the first machine that cannot be read; the others are listed
	for _, name := range machines {
		var list inspect.ObjectList
		query := url.Values{"machine": {name}, "stuck": {"1"}, "limit": {strconv.Itoa(lifecycle.MaxPage)}}
		if err := c.get(ctx, "objects", query, &list); err != nil {
			failed = cmp.Or(failed, fmt.Errorf("machine %s: %w", name, err))
			continue
		}
		lists = append(lists, list)
		found += len(list.Objects)
	}
	err := c.show(lists, func(p *printer) {
		for i := range lists {
			p.objects(&lists[i])
		}
	})
	if found > 0 {
		failed = cmp.Or(failed, errStuck)
	}
	return cmp.Or(err, failed)
}

// objects prints a list.
func (p *printer) objects(l *inspect.ObjectList) {
	heads := "MACHINE, ID, STATE, AGE, OWNER, DEADLINE, LAST CHANGE"
	if l.Stuck {
		heads += ", CAUSE, NEXT MOVE"
	}
	p.table(len(l.Objects), heads)
	for _, o := range l.Objects {
		if o.Problem != nil {
			o.State, o.Event = cmp.Or(o.State, "unreadable"), o.Problem.Code
		} else {
			o.Event = lastChange(&o)
		}
		cells := []any{l.Machine, o.ID, o.State, span(o.Since, l.Time), o.Owner, span(l.Time, o.Deadline), o.Event}
		if l.Stuck {
			cells = append(cells, o.Cause, o.NextMove)
		}
		p.row(cells...)
	}
	if l.Next != "" || l.More {
		p.row(l.Machine, "there are more")
	}
}

// lastChange returns the last change; empty: nothing is known about it, because a table of the
// service has no columns for it.
func lastChange(o *inspect.Object) string {
	if o.Actor == "" {
		return o.Event
	}
	return cmp.Or(o.Event, "added") + " by " + string(o.Actor)
}

// runObject shows an object for get and explain.
func runObject(ctx context.Context, c *call, args []string) error {
	var doc inspect.ObjectPage
	err := c.get(ctx, "object", url.Values{"machine": args[:1], "id": args[1:]}, &doc)
	switch {
	case err != nil:
		return err
	case doc.Problem != nil:
		return &problemError{*doc.Problem}
	case doc.Explanation == nil:
		detail := fmt.Sprintf("object %q of machine %s was removed, see its history", doc.ID, doc.Machine)
		if c.dsn != "" { // the store of the command has the history of all objects
			detail = fmt.Sprintf("object %q of machine %s was removed, or is in a table of the service: see its history, or use -addr", doc.ID, doc.Machine)
		}
		return &problemError{lifecycle.ProblemDetails{Status: http.StatusNotFound, Code: "not-found", Detail: detail}}
	}
	return c.show(doc, func(p *printer) {
		if c.name == "explain" {
			p.text(doc.Explanation.Verbose())
			return
		}
		p.text(doc.Explanation.String())
		if doc.Version != "" {
			p.text("  version: " + visible.Escaped(doc.Version) + "\n")
		}
		var payload bytes.Buffer
		if err := json.Compact(&payload, doc.Payload); err == nil {
			p.text("  payload: " + payload.String() + "\n")
		}
	})
}

func runHistory(ctx context.Context, c *call, args []string) error {
	var doc inspect.ObjectPage
	err := c.get(ctx, "object", url.Values{"machine": args[:1], "id": args[1:]}, &doc)
	switch {
	case err != nil:
		return err
	case doc.NoHistory:
		return errors.New("the store keeps no history")
	case doc.HistoryProblem != nil: // no row is not the answer
		return &problemError{*doc.HistoryProblem}
	}
	return c.show(doc.History, func(p *printer) {
		p.table(len(doc.History), "SEQUENCE, AT, OPERATION, EVENT, ACTOR, FROM, TO, REASON")
		for _, h := range doc.History {
			p.row(h.Sequence, h.At.Format(time.RFC3339), h.Operation, h.Event, h.Actor, h.From, h.To, h.Reason)
		}
		if doc.Before > 0 {
			p.row("there are more")
		}
	})
}
