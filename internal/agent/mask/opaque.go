package mask

// opaque reports whether a value looks like a secret: at least 16 characters without a space, of random letters and digits. Words,
// numbers, dates, paths and names with a version do not.
func opaque(b []byte) bool {
	if len(b) < shortestShape || len(b) > 4096 {
		return false
	}
	digits, hex, switches, humps := 0, 0, 0, 0
	for i, c := range b {
		switch {
		case c <= ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '{':
			return false
		case hexDigit(c):
			hex++
		}
		digit := '0' <= c && c <= '9'
		if digit {
			digits++
		}
		if i == 0 || !alphanumeric(c) || !alphanumeric(b[i-1]) {
			continue
		}
		before := b[i-1]
		if was := '0' <= before && before <= '9'; was != digit {
			switches++
		}
		if 'A' <= c && c <= 'Z' && 'a' <= before && before <= 'z' || 'a' <= c && c <= 'z' && 'A' <= before && before <= 'Z' && i > 1 && upperDigit(b[i-2]) {
			humps++
		}
	}
	random := hex == len(b) && len(b) >= 20 || switches+humps >= 5
	return digits > 0 && digits < len(b) && random
}
