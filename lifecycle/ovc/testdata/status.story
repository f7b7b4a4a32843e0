# UpdateStatus: the status is what is expected and becomes the new one, or nothing
# changes.

add vm m1
----
= VIRTUAL

update vm m1 RUNNING PAUSING
----
! 409 Conflict: Other action currently happening on vm ID: m1
! ErrOtherAction, status 409

update vm m1 VIRTUAL DEPLOYING
----
     +0s  vm m1: VIRTUAL -> DEPLOYING
= DEPLOYING

update vm m1 VIRTUAL DEPLOYING
----
! 409 Conflict: Other action currently happening on vm ID: m1
! ErrOtherAction, status 409

update vm m1 DEPLOYING RUNNING
----
     +0s  vm m1: DEPLOYING -> RUNNING
= RUNNING

update vm m1 RUNNING PAUSING
----
     +0s  vm m1: RUNNING -> PAUSING
= PAUSING

# Nobody skips a state, or a transition.

update vm m1 PAUSING HALTED
----
! fsm: not allowed: ovc-vm: to HALTED in PAUSING
! fsm.ErrNotAllowed, status 409

update vm m1 PAUSING DELETING
----
! fsm: not allowed: ovc-vm: to DELETING in PAUSING
! fsm.ErrNotAllowed, status 409

# Back to where it began is the one other way.

update vm m1 PAUSING RUNNING
----
= RUNNING
     +0s  vm m1: PAUSING -> RUNNING, stuck

update vm m1 RUNNING PAUSED
----
! fsm: not allowed: ovc-vm: to PAUSED in RUNNING
! fsm.ErrNotAllowed, status 409

update vm m1 RUNNING RUNNING
----
! fsm: not allowed: ovc-vm: to RUNNING in RUNNING
! fsm.ErrNotAllowed, status 409

update vm m1 RUNNING FLYING
----
! fsm: not allowed: ovc-vm: to FLYING in RUNNING
! fsm.ErrNotAllowed, status 409

update vm m1 FLYING RUNNING
----
! 409 Conflict: Other action currently happening on vm ID: m1
! ErrOtherAction, status 409

update vm m2 RUNNING PAUSING
----
! 409 Conflict: Other action currently happening on vm ID: m2
! ErrOtherAction, lifecycle.ErrNotFound, status 409

update server m1 RUNNING PAUSING
----
! ovc: lifecycle: invalid request: no kind of object is called "server"
! lifecycle.ErrInvalid, status 400

# A halted machine that gets a disk is halted again.

update vm m1 RUNNING STOPPING
----
     +0s  vm m1: RUNNING -> STOPPING
= STOPPING

update vm m1 STOPPING HALTED
----
     +0s  vm m1: STOPPING -> HALTED
= HALTED

update vm m1 HALTED ADDING_DISK
----
     +0s  vm m1: HALTED -> ADDING_DISK
= ADDING_DISK

update vm m1 ADDING_DISK RUNNING
----
! fsm: not allowed: ovc-vm: to RUNNING in ADDING_DISK
! fsm.ErrNotAllowed, status 409

update vm m1 ADDING_DISK HALTED
----
     +0s  vm m1: ADDING_DISK -> HALTED
= HALTED

# What is in the recycle bin is destroyed at the end of its retention, not by a
# change of status.

update vm m1 HALTED DELETING
----
     +0s  vm m1: HALTED -> DELETING
= DELETING

update vm m1 DELETING DELETED
----
     +0s  vm m1: DELETING -> DELETED
= DELETED

update vm m1 DELETED DESTROYING
----
! fsm: not allowed: ovc-vm: to DESTROYING in DELETED
! fsm.ErrNotAllowed, status 409

# A search for one object that finds none, one, or several.

add vm m3 label=web
----
= VIRTUAL

add vm m4 label=web
----
= VIRTUAL

add vm m5 label=db
----
= VIRTUAL

search vm mail VIRTUAL DEPLOYING
----
! 409 Conflict: Other action currently happening on vm
! ErrOtherAction, status 409

search vm db VIRTUAL DEPLOYING
----
     +0s  vm m5: VIRTUAL -> DEPLOYING
= m5 DEPLOYING

search vm db VIRTUAL DEPLOYING
----
! 409 Conflict: Other action currently happening on vm
! ErrOtherAction, status 409

search vm web VIRTUAL DEPLOYING
----
! More than one object was updated
! ErrMoreThanOne, lifecycle.ErrInvalid, status 400

states
----
vm m1: DELETED
vm m3: VIRTUAL
vm m4: VIRTUAL
vm m5: DEPLOYING

update vm m3 VIRTUAL DEPLOYING
----
     +0s  vm m3: VIRTUAL -> DEPLOYING
= DEPLOYING

search vm web VIRTUAL RUNNING
----
! fsm: not allowed: ovc-vm: to RUNNING in VIRTUAL
! fsm.ErrNotAllowed, status 409

search vm web VIRTUAL DEPLOYING
----
     +0s  vm m4: VIRTUAL -> DEPLOYING
= m4 DEPLOYING

# validate_transition is about static states.

validate vm RUNNING PAUSED
----
true

validate vm HALTED RUNNING
----
false

validate vm RUNNING PAUSING
----
false

validate disk ASSIGNED TOBEDELETED
----
true

validate disk ASSIGNED DELETED
----
false

# Nothing is in a state that is none, and nothing leads to it.

search vm db FLYING DEPLOYING
----
! 409 Conflict: Other action currently happening on vm
! ErrOtherAction, status 409

search vm db DEPLOYING FLYING
----
! fsm: not allowed: ovc-vm: to FLYING in DEPLOYING
! fsm.ErrNotAllowed, status 409
