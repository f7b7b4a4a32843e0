package browsertest

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestVendored compares the files of others with the sha256 that their README has.
func TestVendored(t *testing.T) {
	for _, file := range []string{"testdata/axe/axe.min.js", "../../lifecycle/inspect/static/graphviz/graphviz.js"} {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			readme, err := os.ReadFile(filepath.Join(filepath.Dir(file), "README.md"))
			require.NoError(t, err)
			require.Contains(t, string(readme), fmt.Sprintf("| sha256 of %s | %x |", filepath.Base(file), sha256.Sum256(data)))
		})
	}
}
