package fsm

import (
	"reflect"
	"slices"
	"time"
)

// transition reads one element of "transitions".
func (d *document) transition(int) {
	w := d.w
	start := w.next()
	r := TableRow{To: -1}
	number, from := -1, -1
	var ignored, returns, one, several bool
	w.object(func(key string) bool {
		switch key {
		case "from":
			from = d.state()
		case "event":
			r.Event = d.number(&d.events, w.text(MaxName), MaxEvents, "events")
		case "actor":
			one = true
			r.Actors = append(r.Actors, d.actor(w.text(MaxName)))
		case "actors":
			several = true
			r.Actors = d.several(func() int { return d.actor(w.text(MaxName)) })
		case "to":
			r.To = d.state()
		case "guard":
			r.Guard = w.text(MaxName)
		case "return":
			returns = w.boolean()
		case "ignore":
			ignored = w.boolean()
		case "any":
			r.Any = w.boolean()
		case "except":
			r.Except = d.several(d.state)
		case "origin":
			r.Origin = d.several(d.state)
		case "forced":
			r.Forced = w.boolean()
		case "supersede":
			r.Supersede = w.boolean()
		case "within":
			r.Within = d.duration()
		case "action":
			r.Action = w.text(MaxText)
		case "section":
			r.Section = w.text(MaxText)
		case "note":
			r.Doc = w.text(MaxText)
		case "row":
			if number = w.integer(); number < 0 {
				w.fail("a negative number")
			}
		default:
			return false
		}
		return true
	}, "from", "event")
	switch {
	case w.err != nil:
		return
	case one && several:
		w.failAt(start, "both actor and actors")
	case ignored && returns:
		w.failAt(start, "both ignore and return")
	case returns && r.To >= 0:
		w.failAt(start, "both return and to")
	case ignored:
		r.Then, r.To = ThenIgnore, -1
	case returns:
		r.Then = ThenReturn
	case r.To < 0:
		w.failAt(start, "neither to nor return nor ignore")
	}
	if r.Within > 0 {
		if sweeper := d.actor(string(Sweeper)); !slices.Contains(r.Actors, sweeper) {
			r.Actors = append(r.Actors, sweeper)
		}
	}
	d.add(r, from, number, start)
}

// add makes a row of a transition, or gives the row of its number one more
// source.
func (d *document) add(r TableRow, from, number, start int) {
	w, t := d.w, d.t
	if i, ok := d.rows[number]; ok {
		whole := t.Rows[i]
		whole.From = nil
		if !reflect.DeepEqual(whole, r) {
			w.failAt(start, "differs in more than the source from the transition before it in row %d", number)
			return
		}
		t.Rows[i].From = append(t.Rows[i].From, from)
		return
	}
	if len(t.Rows) == MaxRows {
		w.failAt(start, "more than %d rows", MaxRows)
		return
	}
	if number >= 0 {
		d.rows[number] = len(t.Rows)
	}
	r.From = []int{from}
	t.Rows = append(t.Rows, r)
}

// several reads an array that is left out where it would be empty.
func (d *document) several(item func() int) (list []int) {
	d.w.list(maxNamed, func(int) { list = append(list, item()) })
	if len(list) == 0 {
		d.w.fail("an empty list: leave the field out")
	}
	return list
}

func (d *document) duration() time.Duration {
	s := d.w.text(MaxName)
	v, err := time.ParseDuration(s)
	if err != nil || v == 0 {
		d.w.fail("want a duration such as \"1m30s\" and not zero, found %q", clip(s))
	}
	return v
}
