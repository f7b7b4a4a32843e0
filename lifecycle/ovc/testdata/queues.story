# A queue begins with the first request, or by itself, and is there until it is
# stopped.

queues
----
nothing

queue vm m1
----
= created: true

queue vm m1
----
= created: false

queue server m1
----
! ovc: lifecycle: invalid request: no kind of object is called "server"
! lifecycle.ErrInvalid, status 400

queues
----
vm m1: 

add vm m1
----
= VIRTUAL

run vm m1 deploy
----
= RUNNING

queues
----
vm m1: 

# Stopping waits for what was accepted, and takes nothing more.

migrate m1
----
= accepted
   +1m0s  migrate() of vm m1 begins

do vm m1 pause
----
   +1m0s  vm m1: RUNNING -> PAUSING
= PAUSING

stop vm m1
----
nothing

migrate m1
----
! Cannot execute action at this time
! ErrBusy, status 409

do vm m1 resume
----
! Cannot execute action at this time
! ErrBusy, queue.ErrStopping, status 409

queues
----
vm m1: migrate running, pause waiting

advance 1m
----
   +2m0s  migrate() of vm m1 ends
   +2m0s  pause() of vm m1 begins

do account none disable
----
! lifecycle: do ovc-account "none": disable by api: lifecycle: not found
! lifecycle.ErrNotFound, status 404

advance 1m
----
   +3m0s  pause() of vm m1 ends
   +3m0s  vm m1: PAUSING -> PAUSED
   +3m0s  the queue of vm m1 is stopped: <nil>

queues
----
nothing

# Afterwards a request creates the queue anew.

do vm m1 resume
----
   +3m0s  vm m1: PAUSED -> RESUMING
= RESUMING
   +3m0s  resume() of vm m1 begins

queues
----
vm m1: resume running

stop account nobody
----
   +3m0s  the queue of account nobody is stopped: <nil>

# Terminating waits for all, and is for good.

add vm m2
----
= VIRTUAL

advance 1s
----
nothing

do vm m2 deploy
----
   +3m1s  vm m2: VIRTUAL -> DEPLOYING
= DEPLOYING
   +3m1s  deploy() of vm m2 begins

terminate
----
nothing

do vm m2 pause
----
! lifecycle: do ovc-vm "m2": pause by api: queue: terminated: pause refused, 0 waiting
! queue.ErrTerminated, status 503

add vm m3
----
= VIRTUAL

do vm m3 deploy
----
! lifecycle: do ovc-vm "m3": deploy by api: queue: terminated: deploy refused, 0 waiting
! queue.ErrTerminated, status 503

states
----
vm m1: RESUMING
vm m2: DEPLOYING
vm m3: VIRTUAL

advance 2m
----
   +4m0s  resume() of vm m1 ends
   +4m0s  vm m1: RESUMING -> RUNNING
   +4m1s  deploy() of vm m2 ends
   +4m1s  vm m2: DEPLOYING -> RUNNING
   +4m1s  all queues are terminated: <nil>

queues
----
nothing

queue vm m1
----
! queue: terminated
! queue.ErrTerminated, status 503

states
----
vm m1: RUNNING
vm m2: RUNNING
vm m3: VIRTUAL

do vm m3 deploy
----
! lifecycle: do ovc-vm "m3": deploy by api: queue: terminated: deploy refused, 0 waiting
! queue.ErrTerminated, status 503
