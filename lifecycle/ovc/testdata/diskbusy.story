# A machine whose disk is busy is not deleted: neither of them has moved.

add vm m1
----
= VIRTUAL

run vm m1 deploy
----
= RUNNING

add disk d1
----
= MODELED

run disk d1 create
----
= CREATED

run vm m1 attach_disk with=d1
----
= RUNNING

add disk d2
----
= MODELED

run disk d2 assign with=m1
----
= ASSIGNED

do disk d1 delete
----
   +4m0s  disk d1: ASSIGNED -> DELETING
= DELETING
   +4m0s  delete() of disk d1 begins

do vm m1 delete
----
! Cannot execute action at this time
! ErrBusy, fsm.ErrNotAllowed, status 409

states
----
vm m1: RUNNING with disk d1, d2
disk d1: DELETING at vm m1
disk d2: ASSIGNED at vm m1

advance 1m
----
   +5m0s  delete() of disk d1 ends
   +5m0s  disk d1: DELETING -> TOBEDELETED

# It is in the bin by itself now. The machine goes with the other one.

do vm m1 destroy
----
   +5m0s  vm m1: RUNNING -> DESTROYING
   +5m0s  disk d2: ASSIGNED -> DESTROYING
= DESTROYING
   +5m0s  stop() of vm m1 with disk d2 begins

advance 1h
----
   +6m0s  stop() of vm m1 ends
   +6m0s  delete() of vm m1 with disk d2 begins
   +7m0s  delete() of vm m1 ends
   +7m0s  destroy() of vm m1 with disk d2 begins
   +8m0s  destroy() of vm m1 ends
   +8m0s  vm m1: DESTROYING -> DESTROYED
   +8m0s  disk d2: DESTROYING -> DESTROYED

states
----
vm m1: DESTROYED with disk d1, d2
disk d1: TOBEDELETED at vm m1
disk d2: DESTROYED at vm m1

# Destroying fails in the middle: machine and disk are where they began.

add vm m2
----
= VIRTUAL

run vm m2 deploy
----
= RUNNING

add disk d3
----
= MODELED

run disk d3 assign with=m2
----
= ASSIGNED

method vm m2 delete fails=(the storage is read-only)
----
nothing

do vm m2 destroy
----
 +1h7m0s  vm m2: RUNNING -> DESTROYING
 +1h7m0s  disk d3: ASSIGNED -> DESTROYING
= DESTROYING
 +1h7m0s  stop() of vm m2 with disk d3 begins

advance 1h
----
 +1h8m0s  stop() of vm m2 ends
 +1h8m0s  delete() of vm m2 with disk d3 begins
 +1h9m0s  delete() of vm m2 fails
 +1h9m0s  disk d3: DESTROYING -> ASSIGNED, stuck: delete: the storage is read-only
 +1h9m0s  vm m2: DESTROYING -> RUNNING, stuck: delete: the storage is read-only

states
----
vm m1: DESTROYED with disk d1, d2
vm m2: RUNNING with disk d3
disk d1: TOBEDELETED at vm m1
disk d2: DESTROYED at vm m1
disk d3: ASSIGNED at vm m2

# A disk that was destroyed alone.

run disk d3 destroy
----
= DESTROYED

method vm m2 delete
----
nothing

run vm m2 destroy
----
= DESTROYED

states
----
vm m1: DESTROYED with disk d1, d2
vm m2: DESTROYED with disk d3
disk d1: TOBEDELETED at vm m1
disk d2: DESTROYED at vm m1
disk d3: DESTROYED at vm m2

queues
----
disk d1: 
