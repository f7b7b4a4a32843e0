package pgqueuetest

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// long is set for runs without limits.
var long = os.Getenv("INTERLOCK_LONG") == "1"

func TestMain(m *testing.M) {
	if text := os.Getenv(asChild); text != "" {
		if err := child(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	for name, value := range map[string]string{"rapid.checks": "10", "rapid.nofailfile": "true"} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}
