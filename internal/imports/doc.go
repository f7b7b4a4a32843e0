// Package imports holds no code. Its tests are the dependency budget of the
// repository: which package may import what, with a reason in each line, and
// what no file may mention.
package imports
