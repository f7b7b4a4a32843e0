package models

import (
	"fmt"
	"slices"
)

// trials runs every trial once.
func trials[T any, R any](run func(T) (R, error)) func(T) R {
	known := make(map[string]R)
	return func(trial T) R {
		key := fmt.Sprint(trial)
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
