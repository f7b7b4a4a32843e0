package pgqueuetest

import (
	"flag"
	"testing"

	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/internal/enginetest/child"
)

func TestMain(m *testing.M) {
	child.Main(asChild, work)
	for name, value := range map[string]string{"rapid.checks": "10", "rapid.nofailfile": "true"} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}
