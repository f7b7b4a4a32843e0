package tumblebug

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/interlock-go/interlock/lifecycle"
)

// The paths of the document.
const (
	mciPath = "/tumblebug/ns/{nsId}/mci/{mciId}"
	vmPath  = mciPath + "/vm/{vmId}"
)

// Handler returns the REST API of the document for a system, to be served at /tumblebug/:
//
//	POST      /tumblebug/ns/{nsId}/mci/{mciId}?action={action}            HandleMciAction
//	POST      /tumblebug/ns/{nsId}/mci/{mciId}/vm/{vmId}?action={action}  HandleMciVmAction
//	GET, HEAD /tumblebug/ns/{nsId}/mci/{mciId}?option=status              GetMciStatus
//
// An action is forced with force=true. Default: false. The values are those of
// [strconv.ParseBool]. The only option is status, which is the default. Every other
// parameter, and a parameter that is given twice, is refused. Bodies are not read.
//
// The answer to an action is a JSON object with the text of the method as its message.
// The answer to a request for the status is a [MciStatus]. An error is the
// [lifecycle.ProblemDetails] of the error of the method, with its status code. Other paths
// and methods of HTTP are refused by [http.ServeMux].
//
// The context of a request bounds the calls of the method; an action that has started
// continues without it. Handler authenticates no client, so a service does that before
// it calls the handler. The handler is safe for concurrent use.
func Handler(s *System) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+mciPath, func(w http.ResponseWriter, r *http.Request) {
		status, err := s.serveStatus(r)
		answer(w, status, err)
	})
	serve := func(w http.ResponseWriter, r *http.Request) {
		text, err := s.serveAction(r)
		answer(w, map[string]string{"message": text}, err)
	}
	mux.HandleFunc("POST "+mciPath, serve)
	mux.HandleFunc("POST "+vmPath, serve)
	return mux
}

func (s *System) serveStatus(r *http.Request) (MciStatus, error) {
	query, err := parameters(r, "option")
	if err != nil {
		return MciStatus{}, err
	}
	if option := query.Get("option"); query.Has("option") && option != "status" {
		return MciStatus{}, fmt.Errorf("%w: option %q is not supported", lifecycle.ErrInvalid, option)
	}
	return s.GetMciStatus(r.Context(), r.PathValue("nsId"), r.PathValue("mciId"))
}

func (s *System) serveAction(r *http.Request) (string, error) {
	query, err := parameters(r, "action", "force")
	if err != nil {
		return "", err
	}
	force := false
	if text := query.Get("force"); query.Has("force") {
		if force, err = strconv.ParseBool(text); err != nil {
			return "", fmt.Errorf("%w: force %q is neither true nor false", lifecycle.ErrInvalid, text)
		}
	}
	nsID, mciID, action := r.PathValue("nsId"), r.PathValue("mciId"), query.Get("action")
	if vmID := r.PathValue("vmId"); vmID != "" {
		return s.HandleMciVmAction(r.Context(), nsID, mciID, vmID, action, force)
	}
	return s.HandleMciAction(r.Context(), nsID, mciID, action, force)
}

// parameters returns the parameters of a request, which has each of these names at most
// once and no others. A request for a dry run, for example, must not start an action.
func parameters(r *http.Request, names ...string) (url.Values, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, fmt.Errorf("%w: query: %w", lifecycle.ErrInvalid, err)
	}
	for name, values := range query {
		if len(values) > 1 || !slices.Contains(names, name) {
			return nil, fmt.Errorf("%w: parameter %q is not supported, or is given twice", lifecycle.ErrInvalid, name)
		}
	}
	return query, nil
}

// answer writes a result, or the problem of an error.
func answer(w http.ResponseWriter, result any, err error) {
	problem, contentType := lifecycle.Problem(err), "application/json"
	if err != nil {
		result, contentType = problem, lifecycle.ProblemContentType
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(problem.Status)
	_ = json.NewEncoder(w).Encode(result) // the client may have disconnected
}
