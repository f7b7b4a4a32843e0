package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/interlock-go/interlock/lifecycle"
)

// defaultLimit is the length of a list without the parameter limit.
const defaultLimit = 100

func (p *Page) objectList(ctx context.Context, r *http.Request) (view, error) {
	m, err := p.machine(r)
	if err != nil {
		return view{}, err
	}
	query := r.URL.Query()
	doc := ObjectList{
		Time: now(), Machine: m.table().Name, States: append([]string{}, query["state"]...),
		Limit: defaultLimit, Objects: []Object{},
	}
	if doc.Stuck, err = strconv.ParseBool(cmp.Or(query.Get("stuck"), "false")); err != nil {
		return view{}, fmt.Errorf("%w: stuck %q is neither true nor false", lifecycle.ErrInvalid, query.Get("stuck"))
	}
	if limit, err := number(query, "limit"); err != nil {
		return view{}, err
	} else if limit > 0 {
		doc.Limit = int(min(limit, math.MaxInt32)) // the manager refuses more than MaxPage
	}
	if doc.Stuck {
		if len(doc.States) > 0 || query.Has("after") {
			return view{}, fmt.Errorf("%w: the list of stuck objects has no parameter state or after", lifecycle.ErrInvalid)
		}
		most := doc.Limit
		if most < lifecycle.MaxPage {
			most++ // for More
		}
		stuck, err := lifecycle.Stuck(ctx, m, most)
		if err != nil {
			return view{}, err
		}
		doc.More = len(stuck) == most
		doc.Objects = p.explainStuck(ctx, m, stuck[:min(len(stuck), doc.Limit)])
		return view{Heading: "Stuck objects", Machine: doc.Machine, Doc: doc}, nil
	}
	doc.Objects, err = m.list(ctx, doc.States, query.Get("after"), doc.Limit)
	if len(doc.Objects) == doc.Limit {
		var more []Object
		last := doc.Objects[doc.Limit-1].ID
		if more, err = m.list(ctx, doc.States, last, 1); len(more) > 0 {
			doc.Next = last
		}
	}
	return view{Heading: "Objects", Machine: doc.Machine, Doc: doc}, err
}

// explainStuck returns stuck objects with what moves them next. It leaves out those that are
// no longer stuck, or gone. An object that cannot be explained has a problem.
func (p *Page) explainStuck(ctx context.Context, m Machine, stuck []lifecycle.SweepResult) []Object {
	list := []Object{}
	failed := false
	for i := range stuck {
		found := &stuck[i]
		o := Object{ID: found.ID, State: found.From, Operation: found.Operation, Owner: found.Owner, Cause: found.Cause}
		if found.Err != nil { // a foreign record
			o.State, o.Problem = "", new(lifecycle.Problem(found.Err))
			list = append(list, o)
			continue
		}
		x, err := m.Explain(ctx, found.ID)
		switch {
		case errors.Is(err, lifecycle.ErrNotFound):
			continue
		case err != nil:
			err = late(storeOf(m.table().Name), err)
			o.Problem = new(lifecycle.Problem(err))
			if !failed && !errors.Is(err, lifecycle.ErrForeign) {
				failed = true
				p.problem(ctx, err) // for the log, once
			}
		default:
			o = explained(&x)
			if x.Operation == found.Operation && x.State == found.From {
				o.Cause = cmp.Or(o.Cause, found.Cause)
			}
			if o.Cause == "" { // its operation has ended, or is another one
				continue
			}
		}
		list = append(list, o)
	}
	return list
}

// explained returns an object from its explanation.
func explained(x *lifecycle.Explanation) Object {
	return Object{
		ID: x.ID, State: x.State, Kind: x.Kind, Origin: x.Origin, Target: x.Target, Since: x.Since, Operation: x.Operation,
		Owner: x.Owner, Epoch: x.Epoch, Deadline: x.Deadline, Event: x.Event, Actor: x.Actor, Reason: x.Reason,
		Cause: x.Cause, NextMove: x.NextMove,
	}
}

func (p *Page) objectPage(ctx context.Context, r *http.Request) (view, error) {
	m, err := p.machine(r)
	if err != nil {
		return view{}, err
	}
	query := r.URL.Query()
	before, err := number(query, "before")
	if err != nil {
		return view{}, err
	}
	doc := ObjectPage{Time: now(), Machine: m.table().Name, ID: query.Get("id")}
	x, err := m.Explain(ctx, doc.ID)
	var o Object
	if err == nil {
		doc.Explanation = &x
		o, doc.Payload, err = m.get(ctx, doc.ID)
	}
	doc.Version = o.Version
	gone := errors.Is(err, lifecycle.ErrNotFound)
	switch {
	case gone:
		doc.Explanation, doc.Removed = nil, true
	case errors.Is(err, lifecycle.ErrForeign):
		doc.Explanation, doc.Problem = nil, new(lifecycle.Problem(err))
	case err != nil:
		return view{}, err
	}
	rows, failed := newestRows(ctx, m, doc.ID, o.Sequence, before)
	switch {
	case errors.Is(failed, errors.ErrUnsupported):
		doc.NoHistory = true
	case failed != nil && doc.Explanation == nil:
		return view{}, failed
	case failed != nil:
		doc.HistoryProblem = p.problem(ctx, late(storeOf(doc.Machine), failed))
	}
	if gone && len(rows) == 0 {
		return view{}, err
	}
	doc.History = rows
	if n := len(rows); n == shownRows && rows[n-1].Sequence > 1 {
		doc.Before = rows[n-1].Sequence
	}
	return view{Heading: doc.ID, Machine: doc.Machine, Doc: doc}, nil
}

// newestRows returns the last rows of an object's history, the newest first: of those with
// a sequence number below before, unless that is 0. The last change of the object has the
// sequence number last; 0: it is not known, and all rows are read.
func newestRows(ctx context.Context, m Machine, id string, last, before uint64) ([]lifecycle.HistoryRow, error) {
	end := cmp.Or(before, math.MaxUint64) // the rows are below it
	rows, after, limit := []lifecycle.HistoryRow{}, uint64(0), lifecycle.MaxPage
	if last > 0 {
		end = min(end, last+1)
		after, limit = end-min(end, shownRows+1), shownRows
	}
	for {
		page, err := m.History(ctx, id, after, limit)
		if err != nil {
			return rows, err
		}
		for i := range page {
			if after = page[i].Sequence; after < end {
				page[i].At = page[i].At.UTC()
				rows = append(rows, page[i])
			}
		}
		rows = slices.Delete(rows, 0, max(0, len(rows)-shownRows))
		if len(page) < limit || after >= end-1 {
			break
		}
	}
	slices.Reverse(rows)
	return rows, nil
}

// number returns a parameter that is a number above 0; 0: the request does not have it.
func number(query url.Values, name string) (uint64, error) {
	text := query.Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%w: %s %q is not a number above 0", lifecycle.ErrInvalid, name, text)
	}
	return n, nil
}
