# Scenario 1 of the document: a machine is migrated, which nobody sees. A user
# destroys it meanwhile: the request is accepted and done after the migration. A
# second request is not.

add vm m1
----
= VIRTUAL

run vm m1 deploy
----
= RUNNING

method vm m1 migrate takes=10m
----
nothing

migrate m1
----
= accepted
   +1m0s  migrate() of vm m1 begins

states
----
vm m1: RUNNING

do vm m1 destroy
----
   +1m0s  vm m1: RUNNING -> DESTROYING
= DESTROYING

do vm m1 stop
----
! Cannot execute action at this time
! ErrBusy, fsm.ErrNotAllowed, status 409

do vm m1 destroy
----
! Cannot execute action at this time
! ErrBusy, fsm.ErrNotAllowed, status 409

migrate m1
----
! Cannot execute action at this time
! ErrBusy, status 409

queues
----
vm m1: migrate running, destroy waiting

advance 10m
----
  +11m0s  migrate() of vm m1 ends
  +11m0s  stop() of vm m1 begins

# The method destroy is composed of three. When the machine is destroyed, its
# queue has ended.

advance 3m
----
  +12m0s  stop() of vm m1 ends
  +12m0s  delete() of vm m1 begins
  +13m0s  delete() of vm m1 ends
  +13m0s  destroy() of vm m1 begins
  +14m0s  destroy() of vm m1 ends
  +14m0s  vm m1: DESTROYING -> DESTROYED

states
----
vm m1: DESTROYED

queues
----
nothing

do vm m1 destroy
----
! lifecycle: do ovc-vm "m1": destroy by api in DESTROYED: fsm: not allowed
! fsm.ErrNotAllowed, status 409

# Migrations that wait for each other, and an action that waits for both.

add vm m2
----
= VIRTUAL

run vm m2 deploy
----
= RUNNING

add vm m3
----
= VIRTUAL

run vm m3 deploy
----
= RUNNING

migrate m2
----
= accepted
  +16m0s  migrate() of vm m2 begins

migrate m2
----
= accepted

do vm m2 destroy
----
  +16m0s  vm m2: RUNNING -> DESTROYING
= DESTROYING

method vm m3 migrate takes=95s
----
nothing

migrate m3
----
= accepted
  +16m0s  migrate() of vm m3 begins

migrate m3
----
= accepted

do vm m3 reboot
----
  +16m0s  vm m3: RUNNING -> REBOOTING
= REBOOTING

advance 1h
----
  +17m0s  migrate() of vm m2 ends
  +17m0s  migrate() of vm m2 begins
 +17m35s  migrate() of vm m3 ends
 +17m35s  migrate() of vm m3 begins
  +18m0s  migrate() of vm m2 ends
  +18m0s  stop() of vm m2 begins
  +19m0s  stop() of vm m2 ends
  +19m0s  delete() of vm m2 begins
 +19m10s  migrate() of vm m3 ends
 +19m10s  reboot() of vm m3 begins
  +20m0s  delete() of vm m2 ends
  +20m0s  destroy() of vm m2 begins
 +20m10s  reboot() of vm m3 ends
 +20m10s  vm m3: REBOOTING -> RUNNING
  +21m0s  destroy() of vm m2 ends
  +21m0s  vm m2: DESTROYING -> DESTROYED

# A migration that fails changes nothing that users see.

method vm m3 migrate fails=(no node has room)
----
nothing

migrate m3
----
= accepted
+1h16m0s  migrate() of vm m3 begins

advance 2m
----
+1h17m35s  migrate() of vm m3 fails

states
----
vm m1: DESTROYED
vm m2: DESTROYED
vm m3: RUNNING

# Machines that are not there, or not deployed.

migrate m4
----
! lifecycle: get ovc-vm "m4": lifecycle: not found
! lifecycle.ErrNotFound, status 404

add vm m4
----
= VIRTUAL

migrate m4
----
! lifecycle: occupy ovc-vm "m4": migrate in VIRTUAL: fsm: not allowed
! fsm.ErrNotAllowed, status 409
