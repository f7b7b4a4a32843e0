# Requests of users: the object is in its transition state when the request has
# been accepted, and nobody begins another action during one.

add vm m1
----
= VIRTUAL

do vm m1 deploy
----
     +0s  vm m1: VIRTUAL -> DEPLOYING
= DEPLOYING
     +0s  deploy() of vm m1 begins

do vm m1 deploy
----
! Cannot execute action at this time
! ErrBusy, fsm.ErrNotAllowed, status 409

do vm m1 pause
----
! Cannot execute action at this time
! ErrBusy, fsm.ErrNotAllowed, status 409

advance 1m
----
   +1m0s  deploy() of vm m1 ends
   +1m0s  vm m1: DEPLOYING -> RUNNING

# A step that the table does not have, an action that the kind does not have, a
# kind that there is not.

do vm m1 resume
----
! lifecycle: do ovc-vm "m1": resume by api in RUNNING: fsm: not allowed
! fsm.ErrNotAllowed, status 409

do vm m1 enable
----
! lifecycle: do ovc-vm "m1": enable by api: fsm: unknown event
! fsm.ErrUnknownEvent, status 400

do server m1 stop
----
! ovc: lifecycle: invalid request: no kind of object is called "server"
! lifecycle.ErrInvalid, status 400

do vm m2 stop
----
! lifecycle: do ovc-vm "m2": stop by api: lifecycle: not found
! lifecycle.ErrNotFound, status 404

do vm m1 done
----
! lifecycle: do ovc-vm "m1": done by api in RUNNING: fsm: not allowed
! fsm.ErrNotAllowed, status 409

do vm m1 pause with=d1
----
! ovc: lifecycle: invalid request: pause of a vm has no other object
! lifecycle.ErrInvalid, status 400

add vm m1
----
! lifecycle: add ovc-vm "m1" by api in RUNNING: lifecycle: exists already, RUNNING at revision "3"
! lifecycle.ErrExists, status 409

add server m1
----
! ovc: lifecycle: invalid request: no kind of object is called "server"
! lifecycle.ErrInvalid, status 400

# An action that fails leads back to where it began.

run vm m1 pause
----
= PAUSED

method vm m1 reboot fails=(the hypervisor does not answer)
----
nothing

do vm m1 reboot
----
   +2m0s  vm m1: PAUSED -> REBOOTING
= REBOOTING
   +2m0s  reboot() of vm m1 begins

advance 1m
----
   +3m0s  reboot() of vm m1 fails
   +3m0s  vm m1: REBOOTING -> PAUSED, stuck: reboot: the hypervisor does not answer

method vm m1 reboot
----
nothing

run vm m1 reboot
----
= RUNNING

run vm m1 stop
----
= HALTED

# The document has no action that starts a halted machine.

do vm m1 deploy
----
! lifecycle: do ovc-vm "m1": deploy by api in HALTED: fsm: not allowed
! fsm.ErrNotAllowed, status 409

run vm m1 delete
----
= DELETED

do vm m1 destroy
----
! lifecycle: do ovc-vm "m1": destroy by api in DELETED: fsm: not allowed
! fsm.ErrNotAllowed, status 409

# Only administrators pause, resume and reset cloudspaces.

add cloudspace c1
----
= VIRTUAL

run cloudspace c1 deploy
----
= DEPLOYED

do cloudspace c1 pause
----
! lifecycle: do ovc-cloudspace "c1": pause by api: fsm: wrong actor
! fsm.ErrWrongActor, status 403

run cloudspace c1 pause admin
----
= PAUSED

do cloudspace c1 resume
----
! lifecycle: do ovc-cloudspace "c1": resume by api: fsm: wrong actor
! fsm.ErrWrongActor, status 403

run cloudspace c1 resume admin
----
= DEPLOYED

do cloudspace c1 reset
----
! lifecycle: do ovc-cloudspace "c1": reset by api: fsm: wrong actor
! fsm.ErrWrongActor, status 403

run cloudspace c1 reset admin
----
= DEPLOYED

run cloudspace c1 delete
----
= DELETED

run cloudspace c1 restore
----
= DEPLOYED

run cloudspace c1 disable
----
= DISABLED

# Different objects do not wait for each other.

add account a1
----
= CONFIRMED

add image i1
----
= VIRTUAL

add node n1
----
= ENABLED

do account a1 disable
----
  +13m0s  account a1: CONFIRMED -> DISABLING
= DISABLING
  +13m0s  disable() of account a1 begins

advance 1s
----
nothing

do image i1 create
----
  +13m1s  image i1: VIRTUAL -> CREATING
= CREATING
  +13m1s  create() of image i1 begins

advance 1s
----
nothing

do node n1 put_in_maintenance
----
  +13m2s  node n1: ENABLED -> PUTTING_IN_MAINTENANCE
= PUTTING_IN_MAINTENANCE
  +13m2s  put_in_maintenance() of node n1 begins

queues
----
account a1: disable running
cloudspace c1: 
image i1: create running
node n1: put_in_maintenance running
vm m1: 

advance 1m
----
  +14m0s  disable() of account a1 ends
  +14m0s  account a1: DISABLING -> DISABLED
  +14m1s  create() of image i1 ends
  +14m1s  image i1: CREATING -> CREATED
  +14m2s  put_in_maintenance() of node n1 ends
  +14m2s  node n1: PUTTING_IN_MAINTENANCE -> MAINTENANCE

run image i1 disable
----
= DISABLED

# The table of the document has DISABLED, DISABLING, CREATED.

run image i1 disable
----
= CREATED

run node n1 enable
----
= ENABLED

run node n1 decommission
----
= DECOMMISSIONED

do node n1 enable
----
! lifecycle: do ovc-node "n1": enable by api in DECOMMISSIONED: fsm: not allowed
! fsm.ErrNotAllowed, status 409

queues
----
account a1: 
cloudspace c1: 
image i1: 
vm m1: 
