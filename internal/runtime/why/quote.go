package why

import (
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime"
)

// maxQuoted bounds, in characters, what somebody else wrote.
const maxQuoted = 200

// word is s as it is where it is a plain word such as an id or a name, else quoted.
func word(s string) string {
	plain := s != "" && len(s) <= 80 && !strings.ContainsFunc(s, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' ||
			strings.ContainsRune("_-.:=?!", r))
	})
	if plain {
		return s
	}
	return quoted(s)
}

// quoted is s between quotation marks, with every character escaped that is not printable, at most maxQuoted characters of it.
func quoted(s string) string { return strconv.Quote(runtime.Clip(s, maxQuoted)) }

// printable is s with every character escaped that is not printable.
func printable(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) || r == '\uFFFD' }) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if strconv.IsPrint(r) {
			b.WriteRune(r)
		} else {
			escaped := strconv.QuoteRune(r)
			b.WriteString(escaped[1 : len(escaped)-1])
		}
	}
	return b.String()
}

// Argument is s as one word of a shell's command.
func Argument(s string) string {
	plain := s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' ||
			strings.ContainsRune("_-.:/=,+", r))
	})
	if plain {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
