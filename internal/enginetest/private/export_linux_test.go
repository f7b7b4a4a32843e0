package private

// Processes returns the processes of a server.
func Processes(s *Server) []int { return processesIn(s.dir) }

// Find is find.
var Find = find

// Dir returns the directory of everything that the server has.
func Dir(s *Server) string { return s.dir }

// Running reports whether the server has a process.
func Running(s *Server) bool { return s.running() }

// MoveTo gives a server the address of another.
func MoveTo(s, other *Server) { s.port = other.port }
