// Package bench is a module of its own, so that what Interlock is compared with
// never becomes a dependency of Interlock. Each directory compares one package;
// "make bench" runs them all.
package bench
