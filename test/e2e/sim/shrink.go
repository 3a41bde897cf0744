package sim

// Shrink removes steps as long as fails reports that the rest fails, and returns what is left. It asks at most that
// many times. It is the removing half of ddmin (Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing
// Input", TSE 28(2), 2002).
func Shrink(steps []Step, most int, fails func([]Step) bool) []Step {
	for size := len(steps) / 2; size > 0 && most > 0; {
		removed := false
		for at := 0; at < len(steps) && most > 0; {
			rest := append(append([]Step{}, steps[:at]...), steps[min(at+size, len(steps)):]...)
			most--
			if fails(rest) {
				steps, removed = rest, true
			} else {
				at += size
			}
		}
		if size > 1 || !removed {
			size /= 2
		}
	}
	return steps
}
