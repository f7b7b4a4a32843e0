package main

func Example() {
	main()
	// Output:
	// boot vm-1 from debian
	// vm-1 running 10.0.0.7 <nil>
	// lifecycle: fire vm "vm-1": create by user in running: not allowed
	// repeated <nil>
	// 1: create by user, now creating
	// 2: created by worker, now running
}
