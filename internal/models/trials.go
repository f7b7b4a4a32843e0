package models

import (
	"errors"
	"fmt"
	"slices"
	"sync"
)

// trials runs every trial once, one at a time. An exploration calls it from several
// goroutines.
func trials[T any, R any](run func(T) (R, error)) func(T) R {
	var mu sync.Mutex
	known := make(map[string]R)
	return func(trial T) R {
		key := fmt.Sprint(trial)
		mu.Lock()
		defer mu.Unlock()
		r, ok := known[key]
		if !ok {
			var err error
			if r, err = run(trial); err != nil {
				panic(err) // the exploration returns it as an error with the state
			}
			known[key] = r
		}
		return r
	}
}

// never returns an invariant: no state has the property.
func never[S any](has func(S) bool, problem string) func(S) error {
	return func(s S) error {
		if has(s) {
			return errors.New(problem)
		}
		return nil
	}
}

// placed returns the indexes of the elements with a place, by place. Places count from 1.
func placed[T any](all []T, place func(T) uint8) (list []int) {
	for i, element := range all {
		if place(element) > 0 {
			list = append(list, i)
		}
	}
	slices.SortFunc(list, func(a, b int) int { return int(place(all[a])) - int(place(all[b])) })
	return list
}
