package store

import (
	"testing"

	"github.com/interlock-go/interlock/internal/etcdtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }
