# A disk that is attached moves the machine and the disk together; the machine
# ends as it began.

add vm m1
----
= VIRTUAL

run vm m1 deploy
----
= RUNNING

add disk d1
----
= MODELED

add disk d2
----
= MODELED

run disk d1 create
----
= CREATED

do vm m1 attach_disk with=d1
----
   +2m0s  vm m1: RUNNING -> ATTACHING_DISK
   +2m0s  disk d1: CREATED -> ATTACHING
= ATTACHING_DISK
   +2m0s  attach_disk() of vm m1 with disk d1 begins

do vm m1 stop
----
! Cannot execute action at this time
! ErrBusy, fsm.ErrNotAllowed, status 409

do disk d1 delete
----
! Cannot execute action at this time
! ErrBusy, fsm.ErrNotAllowed, status 409

advance 1m
----
   +3m0s  attach_disk() of vm m1 ends
   +3m0s  vm m1: ATTACHING_DISK -> RUNNING
   +3m0s  disk d1: ATTACHING -> ASSIGNED

# The same from the other side; a disk that was only modeled is added.

do disk d2 assign with=m1
----
   +3m0s  disk d2: MODELED -> ASSIGNING
   +3m0s  vm m1: RUNNING -> ADDING_DISK
= ASSIGNING
   +3m0s  add_disk() of vm m1 with disk d2 begins

advance 1m
----
   +4m0s  add_disk() of vm m1 ends
   +4m0s  disk d2: ASSIGNING -> ASSIGNED
   +4m0s  vm m1: ADDING_DISK -> RUNNING

states
----
vm m1: RUNNING with disk d1, d2
disk d1: ASSIGNED at vm m1
disk d2: ASSIGNED at vm m1

# The machine is busy: the disk stays where it is, and the other way round.

add disk d3
----
= MODELED

run disk d3 create
----
= CREATED

do vm m1 reboot
----
   +5m0s  vm m1: RUNNING -> REBOOTING
= REBOOTING
   +5m0s  reboot() of vm m1 begins

do vm m1 attach_disk with=d3
----
! Cannot execute action at this time
! ErrBusy, fsm.ErrNotAllowed, status 409

do disk d1 detach
----
! Cannot execute action at this time
! ErrBusy, fsm.ErrNotAllowed, status 409

advance 1m
----
   +6m0s  reboot() of vm m1 ends
   +6m0s  vm m1: REBOOTING -> RUNNING

do disk d3 delete
----
   +6m0s  disk d3: CREATED -> DELETING
= DELETING
   +6m0s  delete() of disk d3 begins

do vm m1 attach_disk with=d3
----
! Cannot execute action at this time
! ErrBusy, fsm.ErrNotAllowed, status 409

states
----
vm m1: RUNNING with disk d1, d2
disk d1: ASSIGNED at vm m1
disk d2: ASSIGNED at vm m1
disk d3: DELETING

advance 1m
----
   +7m0s  delete() of disk d3 ends
   +7m0s  disk d3: DELETING -> DELETED

# An action on an attached disk alone waits in the queue of its machine, too.

migrate m1
----
= accepted
   +7m0s  migrate() of vm m1 begins

do disk d2 delete
----
   +7m0s  disk d2: ASSIGNED -> DELETING
= DELETING

queues
----
disk d1: 
disk d2: delete waiting
disk d3: 
vm m1: migrate running, delete waiting

advance 1m
----
   +8m0s  migrate() of vm m1 ends
   +8m0s  delete() of disk d2 begins

do vm m1 reboot
----
   +8m0s  vm m1: RUNNING -> REBOOTING
= REBOOTING

queues
----
disk d1: 
disk d2: delete running
disk d3: 
vm m1: delete running, reboot waiting

advance 1m
----
   +9m0s  delete() of disk d2 ends
   +9m0s  disk d2: DELETING -> TOBEDELETED
   +9m0s  reboot() of vm m1 begins

advance 1m
----
  +10m0s  reboot() of vm m1 ends
  +10m0s  vm m1: REBOOTING -> RUNNING

# An attachment that fails leaves both as they were.

add disk d4
----
= MODELED

run disk d4 create
----
= CREATED

method vm m1 attach_disk fails=(no such device)
----
nothing

do vm m1 attach_disk with=d4
----
  +11m0s  vm m1: RUNNING -> ATTACHING_DISK
  +11m0s  disk d4: CREATED -> ATTACHING
= ATTACHING_DISK
  +11m0s  attach_disk() of vm m1 with disk d4 begins

states
----
vm m1: ATTACHING_DISK with disk d1, d2, d4
disk d1: ASSIGNED at vm m1
disk d2: TOBEDELETED at vm m1
disk d3: DELETED
disk d4: ATTACHING at vm m1

advance 1m
----
  +12m0s  attach_disk() of vm m1 fails
  +12m0s  disk d4: ATTACHING -> CREATED, stuck: attach_disk: no such device
  +12m0s  vm m1: ATTACHING_DISK -> RUNNING, stuck: attach_disk: no such device

states
----
vm m1: RUNNING with disk d1, d2
disk d1: ASSIGNED at vm m1
disk d2: TOBEDELETED at vm m1
disk d3: DELETED
disk d4: CREATED

# So does a detachment.

method vm m1 detach_disk fails=(it is mounted)
----
nothing

do vm m1 detach_disk with=d1
----
  +12m0s  vm m1: RUNNING -> DETACHING_DISK
  +12m0s  disk d1: ASSIGNED -> DETACHING
= DETACHING_DISK
  +12m0s  detach_disk() of vm m1 with disk d1 begins

advance 1m
----
  +13m0s  detach_disk() of vm m1 fails
  +13m0s  disk d1: DETACHING -> ASSIGNED, stuck: detach_disk: it is mounted
  +13m0s  vm m1: DETACHING_DISK -> RUNNING, stuck: detach_disk: it is mounted

states
----
vm m1: RUNNING with disk d1, d2
disk d1: ASSIGNED at vm m1
disk d2: TOBEDELETED at vm m1
disk d3: DELETED
disk d4: CREATED

# A disk of another machine, one that there is not, one that is attached already.

add vm m2
----
= VIRTUAL

run vm m2 deploy
----
= RUNNING

do vm m2 detach_disk with=d1
----
! lifecycle: fire ovc-disk "d1": detach by api in ASSIGNED: lifecycle: precondition failed: disk "d1" is not attached to "m2"
! lifecycle.ErrPrecondition, status 412

do disk d1 detach with=m2
----
! ovc: lifecycle: precondition failed: disk "d1" is not attached to "m2"
! lifecycle.ErrPrecondition, status 412

do vm m2 attach_disk with=d1
----
! lifecycle: fire ovc-disk "d1": attach by api in ASSIGNED: fsm: not allowed
! fsm.ErrNotAllowed, status 409

do vm m2 attach_disk with=d9
----
! lifecycle: fire ovc-disk "d9": attach by api: lifecycle: not found
! lifecycle.ErrNotFound, status 404

do disk d4 attach with=m9
----
! lifecycle: fire ovc-vm "m9": attach_disk by api: lifecycle: not found
! lifecycle.ErrNotFound, status 404

# Detached, and attached elsewhere.

method vm m1 detach_disk
----
nothing

run disk d1 detach
----
= CREATED

run vm m2 attach_disk with=d1
----
= RUNNING

states
----
vm m1: RUNNING with disk d2
vm m2: RUNNING with disk d1
disk d1: ASSIGNED at vm m2
disk d2: TOBEDELETED at vm m1
disk d3: DELETED
disk d4: CREATED

# A machine without a disk that anybody knows of, and a disk without a machine.

run vm m2 add_disk
----
= RUNNING

run disk d4 attach
----
= ASSIGNED

run disk d4 detach
----
= CREATED

# A machine that is deleted takes its disks along, in one commit.

run vm m2 attach_disk with=d4
----
= RUNNING

do vm m2 delete
----
  +20m0s  vm m2: RUNNING -> DELETING
  +20m0s  disk d1: ASSIGNED -> DELETING
  +20m0s  disk d4: ASSIGNED -> DELETING
= DELETING
  +20m0s  delete() of vm m2 with disk d1, d4 begins

do disk d1 destroy
----
! Cannot execute action at this time
! ErrBusy, fsm.ErrNotAllowed, status 409

advance 1m
----
  +21m0s  delete() of vm m2 ends
  +21m0s  vm m2: DELETING -> DELETED
  +21m0s  disk d1: DELETING -> TOBEDELETED
  +21m0s  disk d4: DELETING -> TOBEDELETED

states
----
vm m1: RUNNING with disk d2
vm m2: DELETED with disk d1, d4
disk d1: TOBEDELETED at vm m2
disk d2: TOBEDELETED at vm m1
disk d3: DELETED
disk d4: TOBEDELETED at vm m2
