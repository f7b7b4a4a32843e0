package lifecycle_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	time.Local = time.FixedZone("", -5*3600) // no result depends on the zone of the machine
	goleak.VerifyTestMain(m)
}
