package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/tumblebug"
)

// message is the answer to a request for an action.
type message struct {
	Message string `json:"message"`
}

// newHandler returns the three endpoints of the document.
func newHandler(system *tumblebug.System) http.Handler {
	mux := http.NewServeMux()
	control := func(w http.ResponseWriter, r *http.Request) {
		nsID, mciID, vmID, action := r.PathValue("nsId"), r.PathValue("mciId"), r.PathValue("vmId"), r.FormValue("action")
		force, err := forceOf(r)
		var text string
		switch {
		case err != nil:
		case vmID == "":
			text, err = system.HandleMciAction(r.Context(), nsID, mciID, action, force)
		default:
			text, err = system.HandleMciVmAction(r.Context(), nsID, mciID, vmID, action, force)
		}
		answer(w, message{text}, err)
	}
	mux.HandleFunc("POST /tumblebug/ns/{nsId}/mci/{mciId}", control)
	mux.HandleFunc("POST /tumblebug/ns/{nsId}/mci/{mciId}/vm/{vmId}", control)
	mux.HandleFunc("GET /tumblebug/ns/{nsId}/mci/{mciId}", func(w http.ResponseWriter, r *http.Request) {
		if option := r.FormValue("option"); option != "" && option != "status" {
			answer(w, nil, fmt.Errorf("%w: option %q is not supported", lifecycle.ErrInvalid, option))
			return
		}
		status, err := system.GetMciStatus(r.Context(), r.PathValue("nsId"), r.PathValue("mciId"))
		answer(w, status, err)
	})
	return mux
}

func forceOf(r *http.Request) (bool, error) {
	text := r.FormValue("force")
	if text == "" {
		return false, nil
	}
	force, err := strconv.ParseBool(text)
	if err != nil {
		err = fmt.Errorf("%w: force %q is neither true nor false", lifecycle.ErrInvalid, text)
	}
	return force, err
}

func answer(w http.ResponseWriter, result any, err error) {
	problem, contentType := lifecycle.Problem(err), "application/json"
	if err != nil {
		result, contentType = problem, lifecycle.ProblemContentType
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(problem.Status)
	_ = json.NewEncoder(w).Encode(result) // the client may have disconnected
}
