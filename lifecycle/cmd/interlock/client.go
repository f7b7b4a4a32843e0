package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

const (
	timeout   = 30 * time.Second // of a document, and of the start of a store
	maxAnswer = 256 << 20        // bytes
)

// client reads the documents of an inspect page.
type client struct {
	base *url.URL
	http http.Client
}

// dial sets the URL of the page. It connects to nothing.
func (c *client) dial(addr string) error {
	if !strings.Contains(addr, "://") {
		addr = "http://" + addr
	}
	base, err := url.Parse(addr)
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return fmt.Errorf("%w: -addr is a URL such as http://localhost:8080/inspect", errUsage)
	}
	c.base = base
	return nil
}

// get reads the document of a route.
func (c *client) get(ctx context.Context, route string, query url.Values, doc any) error {
	to := c.base.JoinPath("/", route)
	to.RawQuery = query.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, to.String(), nil)
	if err != nil {
		return err
	}
	r.Header.Set("Accept", "application/json, "+lifecycle.ProblemContentType)
	answer, err := c.http.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body := json.NewDecoder(io.LimitReader(answer.Body, maxAnswer))
	media, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	switch {
	case media == lifecycle.ProblemContentType:
		var p problemError
		if err := body.Decode(&p); err != nil {
			return fmt.Errorf("%s: %s: %w", to.Redacted(), answer.Status, err)
		}
		return &p
	case answer.StatusCode != http.StatusOK || media != "application/json":
		return fmt.Errorf("%s: %s: the answer is not a document of an inspect page", to.Redacted(), answer.Status)
	}
	if err := body.Decode(doc); err != nil {
		return fmt.Errorf("%s: %w", to.Redacted(), err)
	}
	return nil
}

// problemError is a problem of an answer, or of a document.
type problemError struct{ lifecycle.ProblemDetails }

// Error returns the code and the text.
func (e *problemError) Error() string {
	return strings.TrimSuffix(e.Code+": "+e.Detail, ": ")
}
