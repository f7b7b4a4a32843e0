package servers

import (
	"os"
	"testing"
)

// missing ends a test whose engine is missing.
func missing(t testing.TB, engine, how string) {
	t.Helper()
	if os.Getenv("REQUIRE_ENGINES") == "1" {
		t.Fatalf("%s is missing, and REQUIRE_ENGINES=1: %s", engine, how)
	}
	t.Skipf("not run on %s: %s", engine, how)
}
