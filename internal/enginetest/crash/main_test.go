//go:build unix

package crash

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/internal/enginetest/child"
)

func TestMain(m *testing.M) {
	child.Main(asChild, serve)
	goleak.VerifyTestMain(m)
}
