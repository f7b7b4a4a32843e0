#!/bin/sh
# Usage: fuzz.sh TIME
# Runs every fuzz test of the module in the current directory for that time
# each, also after one has failed, and fails if one has.
set -eu

time=$1
# Every package lists its tests by name and ends with a line "ok PACKAGE TIME".
list=$(go test -list '^Fuzz' ./...)
targets=$(printf '%s\n' "$list" | awk '
	/^Fuzz/    { names[++n] = $1 }
	$1 == "ok" { for (i = 1; i <= n; i++) print $2, names[i]; n = 0 }')

status=0
while read -r package name; do
	[ -n "$name" ] || continue
	echo "fuzz $package $name for $time"
	go test -run '^$' -fuzz "^$name\$" -fuzztime "$time" "$package" </dev/null || status=1
done <<END
$targets
END
exit $status
