package private

// Processes returns the server's processes.
func Processes(s *Server) ([]int, error) {
	pids, err := descendants(s.process.cmd.Process.Pid)
	return append(pids, s.process.cmd.Process.Pid), err
}

// Gone reports whether a process has ended.
func Gone(pid int) bool { return gone(pid) }

// Find is find.
var Find = find

// Dir returns the directory of everything the server has.
func Dir(s *Server) string { return s.dir }

// MoveTo gives a server the address of another.
func MoveTo(s, other *Server) { s.port = other.port }
