package locktest

import (
	"testing"

	"github.com/interlock-go/interlock/internal/suitetest"
)

// The package documentation lists the demands that run: with their names, in
// their order, in their words.
func TestDocumentationListsTheDemands(t *testing.T) {
	var list []string
	for _, d := range demands() {
		list = append(list, d.name+": "+d.says)
	}
	suitetest.Documented(t, list)
}
