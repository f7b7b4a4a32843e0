package inspect

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/interlock-go/interlock/fsm/diagram"
	"github.com/interlock-go/interlock/lifecycle"
)

// picture answers with the page that draws the picture.
func (p *Page) picture(w http.ResponseWriter, r *http.Request) error {
	m, err := p.machine(r)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Security-Policy", picturePolicy)
	return p.write(w, r, http.StatusOK, view{Route: "picture", Machine: m.table().Name})
}

// dot returns the table as DOT text. Each state has the number of its objects below its name
// and a link to them, and a thick red border if some of them are stuck. With a state as
// parameter at, the picture marks that state instead, and reads nothing from the store.
func (p *Page) dot(ctx context.Context, r *http.Request) (string, error) {
	m, err := p.machine(r)
	if err != nil {
		return "", err
	}
	if at := r.URL.Query().Get("at"); at != "" {
		if _, _, err := m.table().ParseStatus(at, ""); err != nil {
			return "", err
		}
		return diagram.DOT(m.table(), &diagram.Config{Current: at}), nil
	}
	c, err := p.count(ctx, m)
	if err != nil {
		return "", err
	}
	stuckIn := map[string]int{}
	for i := range c.stuck {
		stuckIn[c.stuck[i].From]++
	}
	labels := map[string]string{}
	for _, s := range c.States {
		labels[s.State] = fmt.Sprint(s.Count) + orMore(c.More)
		if n := stuckIn[s.State]; n > 0 {
			labels[s.State] += fmt.Sprintf(" (%d%s stuck)", n, orMore(c.Stuck == lifecycle.MaxPage))
		}
	}
	text := strings.TrimSuffix(diagram.DOT(m.table(), &diagram.Config{Labels: labels}), "}\n")
	for i, s := range m.table().States { // DOT names them s0, s1, ...
		if _, counted := labels[s.Name]; counted {
			text += fmt.Sprintf("\ts%d [URL=\"objects?%s\"]\n", i, url.Values{"machine": {m.table().Name}, "state": {s.Name}}.Encode())
		}
		if stuckIn[s.Name] > 0 {
			text += fmt.Sprintf("\ts%d [class=stuck color=\"#c0392b\" penwidth=3]\n", i)
		}
	}
	return text + "}\n", nil
}

// orMore returns what follows a number that is a lower bound.
func orMore(more bool) string {
	if more {
		return " or more"
	}
	return ""
}
