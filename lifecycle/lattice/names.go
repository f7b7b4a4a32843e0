package lattice

// SystemID names a system. For a [Controller] it is one segment of a path: not empty, and
// without a slash.
type SystemID string

// DeployID names a deploy of a system. Deploys and teardowns have names of their own.
type DeployID string

// TeardownID names a teardown of a system.
type TeardownID string
