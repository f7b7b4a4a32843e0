# What is in the recycle bin is destroyed after a week, and not before.

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

run vm m1 delete
----
= DELETED

add cloudspace c1
----
= VIRTUAL

run cloudspace c1 deploy
----
= DEPLOYED

run cloudspace c1 delete
----
= DELETED

states
----
vm m1: DELETED with disk d1
cloudspace c1: DELETED
disk d1: TOBEDELETED at vm m1

advance 167h
----
nothing

heal
----
= 0 stuck, 0 expired

# A cloudspace can be restored until then.

run cloudspace c1 restore
----
= DEPLOYED

advance 2h
----
nothing

method disk d1 destroy takes=3m
----
nothing

method vm m1 destroy fails=(the node is off)
----
nothing

heal
----
+169h7m0s  vm m1: DELETED -> DESTROYING, expire
+169h7m0s  disk d1: TOBEDELETED -> DESTROYING, expire
= 0 stuck, 2 expired
+169h7m0s  destroy() of vm m1 begins

advance 4m
----
+169h8m0s  destroy() of vm m1 fails
+169h8m0s  destroy() of disk d1 begins
+169h8m0s  vm m1: DESTROYING -> DELETED, stuck: destroy: the node is off
+169h11m0s  destroy() of disk d1 ends
+169h11m0s  disk d1: DESTROYING -> DESTROYED

states
----
vm m1: DELETED with disk d1
cloudspace c1: DEPLOYED
disk d1: DESTROYED at vm m1

# What could not be destroyed is in the bin for another week.

method vm m1 destroy
----
nothing

heal
----
= 0 stuck, 0 expired

advance 169h
----
nothing

heal
----
+338h11m0s  vm m1: DELETED -> DESTROYING, expire
= 0 stuck, 1 expired
+338h11m0s  destroy() of vm m1 begins

advance 1m
----
+338h12m0s  destroy() of vm m1 ends
+338h12m0s  vm m1: DESTROYING -> DESTROYED

states
----
vm m1: DESTROYED with disk d1
cloudspace c1: DEPLOYED
disk d1: DESTROYED at vm m1
