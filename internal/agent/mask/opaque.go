package mask

// longestOpaque bounds values that can be opaque, in bytes.
const longestOpaque = 4096

// opaque reports whether a value looks like a secret: at least 16 characters without spaces, of random letters and
// digits. Words, numbers, dates, paths and names with a version do not.
func opaque(b []byte) bool {
	if len(b) < shortestShape || len(b) > longestOpaque {
		return false
	}
	digits, hex, changes := 0, 0, 0
	for i, c := range b {
		if c <= ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '{' {
			return false
		}
		if hexDigit(c) {
			hex++
		}
		if digit(c) {
			digits++
		}
		if changesAt(b, i) {
			changes++
		}
	}
	random := hex == len(b) && len(b) >= 20 || changes >= 5
	return digits > 0 && digits < len(b) && random
}

// opaque calls the function opaque and counts its steps.
func (p *pass) opaque(b []byte) bool {
	p.steps += min(len(b), longestOpaque)
	return opaque(b)
}

// changesAt reports whether the kind of character changes before b[i]: between letters and digits, or between lower and
// upper case. A single capital at the beginning of a word is not a change.
func changesAt(b []byte, i int) bool {
	if i == 0 || !alphanumeric(b[i]) || !alphanumeric(b[i-1]) {
		return false
	}
	c, before := b[i], b[i-1]
	return digit(c) != digit(before) || capital(c) && small(before) || small(c) && capital(before) && i > 1 &&
		upperDigit(b[i-2])
}

func digit(c byte) bool   { return '0' <= c && c <= '9' }
func small(c byte) bool   { return 'a' <= c && c <= 'z' }
func capital(c byte) bool { return 'A' <= c && c <= 'Z' }
