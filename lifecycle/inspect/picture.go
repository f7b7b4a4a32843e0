package inspect

import (
	"context"
	"fmt"
	"net/http"

	"github.com/interlock-go/interlock/fsm/diagram"
)

// picture answers with the page that draws the picture.
func (p *Page) picture(w http.ResponseWriter, r *http.Request) error {
	m, err := p.machine(r)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Security-Policy", picturePolicy)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	return p.render(w, view{Route: "picture", Machine: m.table().Name})
}

// dot returns the table as DOT text, with the number of objects below each state.
func (p *Page) dot(ctx context.Context, r *http.Request) (string, error) {
	m, err := p.machine(r)
	if err != nil {
		return "", err
	}
	c, stuck, err := p.count(ctx, m)
	if err != nil {
		return "", err
	}
	stuckIn := map[string]int{}
	for i := range stuck {
		stuckIn[stuck[i].From]++
	}
	labels := map[string]string{}
	for _, s := range c.States {
		labels[s.State] = fmt.Sprint(s.Count)
		if c.More {
			labels[s.State] += " or more"
		}
		if n := stuckIn[s.State]; n > 0 {
			labels[s.State] += fmt.Sprintf(", %d stuck", n)
		}
	}
	return diagram.DOT(m.table(), &diagram.Config{Labels: labels}), nil
}
