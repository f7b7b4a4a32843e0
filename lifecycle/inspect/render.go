package inspect

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/internal/visible"
)

//go:embed templates
var sources embed.FS

// templates are the pages by name of their route. They stay the same: parsing cannot fail
// at run time, because a test renders all of them.
var templates = sync.OnceValue(func() map[string]*template.Template {
	functions := template.FuncMap{
		"visible": func(x any) string { return visible.Text(fmt.Sprint(x)) },
		"moment":  newMoment, "table": newTable, "indented": indented,
	}
	layout := template.Must(template.New("layout.html").Funcs(functions).ParseFS(sources, "templates/layout.html", "templates/parts.html"))
	pages := map[string]*template.Template{}
	for _, name := range []string{"overview", "machine", "objects", "object", "queues", "locks", "owners", "problem", "picture"} {
		pages[name] = template.Must(template.Must(layout.Clone()).ParseFS(sources, "templates/"+name+".html"))
	}
	return pages
})

// view is a document, and what its page has beside it.
type view struct {
	Heading string
	Machine string // that the page is about; empty: none
	Doc     any    // the JSON form; nil: there is none

	Service string // the title of the config
	Route   string // the name of the template; empty: that of the overview
}

// moment is a time on a page: exact, and how long ago it was or in how long it will be.
type moment struct{ Exact, Text string }

func newMoment(t time.Time) moment {
	text := ""
	if age := time.Since(t); age >= 0 {
		text = short(age) + " ago"
	} else {
		text = "in " + short(-age)
	}
	return moment{t.UTC().Format(time.RFC3339), text}
}

// short returns a duration as a number of its greatest unit of which there are at least two.
func short(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return fmt.Sprintf("%d d", d/(24*time.Hour))
}

// table is the data of the templates "objects" and "stuck".
type table struct {
	Machine, Label string
	Objects        []Object
}

func newTable(machine, label string, objects []Object) table { return table{machine, label, objects} }

// indented returns JSON in several lines, with visible characters only.
func indented(data json.RawMessage) (string, error) {
	var text bytes.Buffer
	err := json.Indent(&text, data, "", "  ")
	lines := strings.Split(text.String(), "\n")
	for i := range lines {
		lines[i] = visible.Text(lines[i])
	}
	return strings.Join(lines, "\n"), err
}
