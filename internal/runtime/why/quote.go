package why

import (
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// maxQuoted bounds quoted text, in characters.
const maxQuoted = 200

// word returns s unchanged if it is a plain word, such as an id or a name, else quoted.
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

// quoted returns the first maxQuoted characters of s in quotation marks, with unprintable characters escaped.
func quoted(s string) string { return strconv.Quote(agent.Clip(s, maxQuoted)) }

// printable returns s with unprintable characters escaped. Invalid UTF-8 becomes U+FFFD.
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

// Argument returns s as a single word of a POSIX shell command, quoted if necessary.
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
