package main

func Example() {
	main()
	// Output:
	// ALTER TABLE `vms` ADD COLUMN `revision` INTEGER NOT NULL DEFAULT 0;
	// ALTER TABLE `vms` ADD COLUMN `sequence` INTEGER NOT NULL DEFAULT 0;
	// ALTER TABLE `vms` ADD COLUMN `operation` INTEGER;
	// ALTER TABLE `vms` ADD COLUMN `token` BLOB;
	// 2 adopted
	// not placed: lifecycle: adopt vm "9": foreign record: fsm: unknown state: vm: in "runing": not declared
	// 1 adopted
	// lifecycle: fire vm "7": stop by user in stopped: not allowed
	// delete is a conflict: true
	// vm "7" #1 operation 1: running -(override)-> running by migration: the library comes
	// vm "7" #2 operation 1: running -stop-> stopped by user
	// running: 2
}
