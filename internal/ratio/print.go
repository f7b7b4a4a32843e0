package ratio

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// Print writes a line for each figure:
//
//	ratio NAME VALUE goal<=GOAL
//
// The value has two decimals. Print panics if a figure has a name that would
// break the line.
func Print(w io.Writer, figures []Figure) {
	for _, f := range figures {
		if f.Name == "" || strings.ContainsAny(f.Name, " \t\r\n") {
			panic(fmt.Sprintf("ratio: bad name %q", f.Name))
		}
		goal := strconv.FormatFloat(f.Goal, 'f', -1, 64)
		fmt.Fprintf(w, "ratio %s %.2f goal<=%s\n", f.Name, f.Value, goal)
	}
}

// PrintMachine writes a line with the CPU, the number of processors that this process may
// use, the platform and the Go version.
func PrintMachine(w io.Writer) {
	fmt.Fprintf(w, "machine %s, %d cores, %s/%s, %s\n",
		cpu(), runtime.GOMAXPROCS(0), runtime.GOOS, runtime.GOARCH, runtime.Version())
}

// cpu returns the first model name in /proc/cpuinfo, with single spaces. Not every system
// has one.
func cpu() string {
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		if key, value, _ := strings.Cut(line, ":"); strings.TrimSpace(key) == "model name" {
			return strings.Join(strings.Fields(value), " ")
		}
	}
	return "unknown CPU"
}
