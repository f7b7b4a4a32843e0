# A method that does not come back: self-healing reports the object and puts it
# back to the state it came from, and what the method says later counts for
# nothing.

add vm m1
----
= VIRTUAL

run vm m1 deploy
----
= RUNNING

run vm m1 pause
----
= PAUSED

method vm m1 delete takes=10h
----
nothing

do vm m1 delete
----
   +2m0s  vm m1: PAUSED -> DELETING
= DELETING
   +2m0s  delete() of vm m1 begins

advance 29m
----
nothing

heal
----
= 0 stuck, 0 expired

advance 1m1s
----
nothing

heal
----
stuck: vm m1 was DELETING, moved to PAUSED
= 1 stuck, 0 expired
  +32m1s  delete() of vm m1 is told to end
  +32m1s  vm m1: DELETING -> PAUSED, stuck

heal
----
= 0 stuck, 0 expired

states
----
vm m1: PAUSED

# An action that waits for its turn is not stuck, however long that takes; its
# time begins with its turn.

add vm m2
----
= VIRTUAL

run vm m2 deploy
----
= RUNNING

method vm m2 migrate takes=3h
----
nothing

method vm m2 stop takes=25m
----
nothing

migrate m2
----
= accepted
  +33m1s  migrate() of vm m2 begins

do vm m2 stop
----
  +33m1s  vm m2: RUNNING -> STOPPING
= STOPPING

advance 2h
----
nothing

heal
----
= 0 stuck, 0 expired

advance 1h
----
+3h33m1s  migrate() of vm m2 ends
+3h33m1s  stop() of vm m2 begins

advance 24m
----
nothing

heal
----
= 0 stuck, 0 expired

advance 1m
----
+3h58m1s  stop() of vm m2 ends
+3h58m1s  vm m2: STOPPING -> HALTED

# A machine and its disk, both stuck.

add disk d1
----
= MODELED

run disk d1 create
----
= CREATED

method vm m1 attach_disk takes=10h
----
nothing

do vm m1 attach_disk with=d1
----
+3h59m1s  vm m1: PAUSED -> ATTACHING_DISK
+3h59m1s  disk d1: CREATED -> ATTACHING
= ATTACHING_DISK
+3h59m1s  attach_disk() of vm m1 with disk d1 begins

advance 31m
----
nothing

heal
----
stuck: vm m1 was ATTACHING_DISK, moved to PAUSED
stuck: disk d1 was ATTACHING, moved to CREATED
= 2 stuck, 0 expired
+4h30m1s  attach_disk() of vm m1 is told to end
+4h30m1s  disk d1: ATTACHING -> CREATED, stuck
+4h30m1s  vm m1: ATTACHING_DISK -> PAUSED, stuck

states
----
vm m1: PAUSED
vm m2: HALTED
disk d1: CREATED

# The same, while they wait for a migration that takes longer than that.

method vm m1 migrate takes=2h
----
nothing

method vm m1 attach_disk takes=20m
----
nothing

migrate m1
----
= accepted
+4h30m1s  migrate() of vm m1 begins

do vm m1 attach_disk with=d1
----
+4h30m1s  vm m1: PAUSED -> ATTACHING_DISK
+4h30m1s  disk d1: CREATED -> ATTACHING
= ATTACHING_DISK

advance 119m
----
nothing

heal
----
= 0 stuck, 0 expired

advance 2m
----
+6h30m1s  migrate() of vm m1 ends
+6h30m1s  attach_disk() of vm m1 with disk d1 begins

heal
----
= 0 stuck, 0 expired

advance 20m
----
+6h50m1s  attach_disk() of vm m1 ends
+6h50m1s  vm m1: ATTACHING_DISK -> PAUSED
+6h50m1s  disk d1: ATTACHING -> ASSIGNED

# A status that was set by somebody who died.

update vm m2 HALTED DELETING
----
+6h51m1s  vm m2: HALTED -> DELETING
= DELETING

advance 31m
----
nothing

heal
----
stuck: vm m2 was DELETING, moved to HALTED
= 1 stuck, 0 expired
+7h22m1s  vm m2: DELETING -> HALTED, stuck

# The same action begins in two states; back is where this one began.

add account a1
----
= CONFIRMED

run account a1 disable
----
= DISABLED

method account a1 destroy takes=10h
----
nothing

do account a1 destroy
----
+7h23m1s  account a1: DISABLED -> DESTROYING
= DESTROYING
+7h23m1s  destroy() of account a1 begins

advance 40m
----
nothing

heal
----
stuck: account a1 was DESTROYING, moved to DISABLED
= 1 stuck, 0 expired
 +8h3m1s  account a1: DESTROYING -> DISABLED, stuck
 +8h3m1s  destroy() of account a1 is told to end

states
----
vm m1: PAUSED with disk d1
vm m2: HALTED
account a1: DISABLED
disk d1: ASSIGNED at vm m1
