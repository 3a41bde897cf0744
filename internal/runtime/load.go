package runtime

// Load counts the calls that are under way, nested ones included, and those that wait for their session's turn.
func (r *Runtime) Load() (running, waiting int) {
	waiting = r.sessions.length()
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(len(r.running)-waiting, 0), waiting
}
