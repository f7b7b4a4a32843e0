// Package store tests lifecycle/etcdstore on etcd: the conformance suite of stores, faults of
// the server and of the network, and the cost of a commit.
package store
