package sqllocktest

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/internal/enginetest/child"
)

func TestMain(m *testing.M) {
	child.Main(asHolder, hold)
	goleak.VerifyTestMain(m)
}
