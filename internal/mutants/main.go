// Command mutants breaks a package on purpose and looks whether its tests see it.
//
//	go run ./internal/mutants [-run REGEXP] [-timeout D] [-least PERCENT] PACKAGE [ARGUMENTS OF GO TEST]
//
// Every file PACKAGE/testdata/mutants/*.txt is a mutant: a class, a line that
// says what it breaks, and lines of source to replace, see [mutant]. It is tested
// by way of go test -overlay, so the checkout is never changed, and one can go on
// working in it meanwhile. The tests are run without a mutant first: what fails
// by itself kills nobody.
//
// A line per mutant says which test killed it, or that it survived and what its
// file says about that. The command fails if less than PERCENT (90) are killed,
// and if a mutant does not apply or does not compile: it is not killed then, its
// file is out of date.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"time"
)

func main() {
	only := flag.String("run", "", "only mutants whose name matches this regular `expression`")
	timeout := flag.Duration("timeout", time.Minute, "a mutant whose tests take `longer` is killed")
	least := flag.Int("least", 90, "how many in a hundred have to be killed")
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	l := &lab{dir: flag.Arg(0), args: flag.Args()[1:], timeout: *timeout}
	if err := try(ctx, l, *only, *least); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// try runs all mutants and prints what became of them.
func try(ctx context.Context, l *lab, only string, least int) error {
	wanted, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	mutants, err := read(filepath.Join(l.dir, "testdata", "mutants"))
	if err != nil {
		return err
	}
	if l.scratch, err = os.MkdirTemp("", "mutants"); err != nil {
		return err
	}
	defer os.RemoveAll(l.scratch)

	if v := l.test(ctx, nil); !v.survived() {
		return fmt.Errorf("the tests fail without a mutant: %s\n%s", v, v.output)
	}
	tried, killed, broken := 0, 0, 0
	for _, m := range mutants {
		if !wanted.MatchString(m.name) {
			continue
		}
		v := l.test(ctx, m)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		tried++
		switch {
		case v.broken != nil:
			broken++
		case !v.survived():
			killed++
		}
		fmt.Printf("%-20s %-34s %s (%.0fs)\n", m.class, m.name, v, v.took.Seconds())
		if v.survived() {
			fmt.Printf("    breaks:   %s\n    survives: %s\n", m.breaks, or(m.survives, "not explained"))
		}
	}
	fmt.Printf("%d mutants, %d killed, %d survived, %d broken\n", tried, killed, tried-killed-broken, broken)
	switch {
	case tried == 0:
		return fmt.Errorf("no mutant in %s matches %q", l.dir, only)
	case broken > 0:
		return fmt.Errorf("%d do not apply or do not compile", broken)
	case killed*100 < tried*least:
		return fmt.Errorf("fewer than %d%% are killed", least)
	}
	return nil
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
