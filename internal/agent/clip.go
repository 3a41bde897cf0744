package agent

// Clip cuts s to at most n characters. It marks a cut with an ellipsis, which comes on top of the n.
func Clip(s string, n int) string {
	count := 0
	for i := range s {
		if count == n {
			return s[:i] + "…"
		}
		count++
	}
	return s
}
