package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/tumblebug"
)

// serve returns the three endpoints of the document.
func serve(system *tumblebug.System) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /tumblebug/ns/{nsId}/mci/{mciId}", func(w http.ResponseWriter, r *http.Request) {
		force, err := forced(r)
		if err != nil {
			answer(w, nil, err)
			return
		}
		said, err := system.HandleMciAction(r.Context(), r.PathValue("nsId"), r.PathValue("mciId"), r.FormValue("action"), force)
		answer(w, message{said}, err)
	})
	mux.HandleFunc("POST /tumblebug/ns/{nsId}/mci/{mciId}/vm/{vmId}", func(w http.ResponseWriter, r *http.Request) {
		force, err := forced(r)
		if err != nil {
			answer(w, nil, err)
			return
		}
		said, err := system.HandleMciVmAction(r.Context(), r.PathValue("nsId"), r.PathValue("mciId"), r.PathValue("vmId"), r.FormValue("action"), force)
		answer(w, message{said}, err)
	})
	mux.HandleFunc("GET /tumblebug/ns/{nsId}/mci/{mciId}", func(w http.ResponseWriter, r *http.Request) {
		if option := r.FormValue("option"); option != "" && option != "status" {
			answer(w, nil, fmt.Errorf("%w: option %q", lifecycle.ErrInvalid, option))
			return
		}
		status, err := system.GetMciStatus(r.Context(), r.PathValue("nsId"), r.PathValue("mciId"))
		answer(w, status, err)
	})
	return mux
}

// message is what requests answer that have no other result.
type message struct {
	Message string `json:"message"`
}

func forced(r *http.Request) (bool, error) {
	text := r.FormValue("force")
	if text == "" {
		return false, nil
	}
	force, err := strconv.ParseBool(text)
	if err != nil {
		err = fmt.Errorf("%w: force %q", lifecycle.ErrInvalid, text)
	}
	return force, err
}

func answer(w http.ResponseWriter, result any, err error) {
	if err != nil {
		result = message{err.Error()}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(lifecycle.HTTPStatus(err))
	_ = json.NewEncoder(w).Encode(result) // the client may have gone
}
