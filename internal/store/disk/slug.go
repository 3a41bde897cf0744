package disk

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// slug returns the name of the file or directory for a role or method. A plain name stands for itself; any other
// becomes a readable form of it and eight digits of its hash. Two names share a slug only if their hashes collide. The
// file holds the true name, which readers compare.
func slug(name string) string {
	if plain(name) {
		return name
	}
	const readable = 40
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		if b.Len() == readable {
			break
		}
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' {
			b.WriteRune(r)
		} else if s := b.String(); s != "" && s[len(s)-1] != '-' {
			b.WriteByte('-')
		}
	}
	sum := sha256.Sum256([]byte(name))
	return strings.Trim(b.String(), "-") + "-" + hex.EncodeToString(sum[:4])
}

// plain reports whether a name can be its own slug. It must be lower case, because some file systems ignore case; it
// must not be a name with another meaning in the same directory; and it must not look like a slug of another name.
func plain(name string) bool {
	const longest, digits = 64, 8
	if name == "" || len(name) > longest || name == "archive" || name[0] == '-' || name[0] == '_' {
		return false
	}
	for _, c := range []byte(name) {
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	i := strings.LastIndexByte(name, '-')
	return i < 0 || len(name)-i-1 != digits || strings.Trim(name[i+1:], "0123456789abcdef") != ""
}

// validID reports whether an id can be the name of a file or directory.
func validID(id string) bool {
	const longest = 128
	if id == "" || len(id) > longest {
		return false
	}
	for _, c := range []byte(id) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	return true
}
