package lifecycle_test

import (
	"testing"

	"github.com/interlock-go/interlock/internal/teetest"
	"github.com/interlock-go/interlock/lifecycle"
)

func TestTee(t *testing.T) { teetest.Run(t, lifecycle.Tee) }
