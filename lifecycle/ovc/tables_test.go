package ovc_test

import (
	"testing"

	"github.com/interlock-go/interlock/internal/conform"
	"github.com/interlock-go/interlock/lifecycle/ovc"
)

func TestTablesAreThoseOfTheDocument(t *testing.T) {
	for kind := range ovc.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			files := "testdata/" + string(kind)
			conform.Check(t, kind.Machine().Table(), files+".json", files+".map.txt")
		})
	}
}
