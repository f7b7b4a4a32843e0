// Package doctest holds a test of the language of the documentation. The test parses
// the documentation of all packages and of their exported identifiers, README.md,
// CHANGELOG.md and .github/CONTRIBUTING.md. It refuses words that hide the actor of a sentence.
package doctest
