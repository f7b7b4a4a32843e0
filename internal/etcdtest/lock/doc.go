// Package lock tests lock/etcdlock on etcd: the conformance suite of lock drivers, for one
// process and for several, faults of the server and of the network, and the cost of a pair.
package lock
