package sqltest

import (
	"flag"
	"testing"

	"github.com/go-sql-driver/mysql"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	for name, value := range map[string]string{"rapid.checks": "20", "rapid.nofailfile": "true"} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	// The driver logs every connection that a test has cut.
	if err := mysql.SetLogger(&mysql.NopLogger{}); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
