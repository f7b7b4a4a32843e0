package blazar_test

// relationships is the document's table of that name as it stands there, and
// the line for ERROR, which it lacks.
const relationships = `
CREATING    | pending                    | start_lease: UNDONE                 | end_lease: UNDONE
PENDING     | pending                    | start_lease: UNDONE                 | end_lease: UNDONE
STARTING    | pending or active or error | start_lease: IN_PROGRESS            | end_lease: UNDONE
ACTIVE      | active                     | start_lease: DONE                   | end_lease: UNDONE
TERMINATING | active or deleted or error | start_lease: DONE                   | end_lease: IN_PROGRESS
TERMINATED  | deleted                    | start_lease: DONE                   | end_lease: DONE
DELETING    | Any status                 | start_lease: Any status             | end_lease: Any status
UPDATING    | Any status                 | start_lease: other than IN_PROGRESS | end_lease: other than IN_PROGRESS
ERROR       | error                      | start_lease: DONE or ERROR          | end_lease: UNDONE or ERROR
`
