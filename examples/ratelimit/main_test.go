package main

import (
	"strings"
	"testing"
	"testing/synctest"
)

// The calls come at the rate of the region, and a refused one after its pause.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		if err := run(t.Context(), &out); err != nil {
			t.Fatal(err)
		}
		want := "0s vm-1: started\n100ms vm-2: started\n200ms vm-3: too many calls: try again after 250ms\n" +
			"300ms vm-4: started\n450ms vm-3: started\n"
		if out.String() != want {
			t.Errorf("the calls are\n%s, not\n%s", out.String(), want)
		}
	})
}
