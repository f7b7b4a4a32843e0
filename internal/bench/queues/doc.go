// Package queues measures the queue of this repository against a work queue of
// client-go with a list of functions for each key.
package queues
