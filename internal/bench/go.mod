module github.com/interlock-go/interlock/internal/bench

go 1.26.0

require github.com/interlock-go/interlock v0.0.0

replace github.com/interlock-go/interlock => ../..
