#!/bin/sh
# Says what changed in the exported API of the root module since its last tag.
set -eu

cd "$(dirname "$0")/../.."
if ! tag=$(git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null); then
	echo "apidiff: there is no tag to compare with"
	exit 0
fi
module=$(go list -m)
modfile=$PWD/internal/tools/go.mod
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# The command names every internal package that it leaves out, as if that were
# an error. It is only of interest where there is one.
apidiff() {
	go tool -modfile="$modfile" apidiff -m "$@" 2>"$tmp/stderr" || { cat "$tmp/stderr" >&2; return 1; }
}

mkdir "$tmp/old"
git archive --output="$tmp/old.tar" "$tag"
tar -x -f "$tmp/old.tar" -C "$tmp/old"
(cd "$tmp/old" && apidiff -w "$tmp/api" "$module")
apidiff "$tmp/api" "$module" >"$tmp/report"

echo "since $tag:"
if [ -s "$tmp/report" ]; then
	awk '!seen[$0]++' "$tmp/report" # a method of a generic type comes once for each instance
else
	echo "no change of the exported API"
fi
