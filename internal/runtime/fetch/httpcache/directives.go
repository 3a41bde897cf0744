package httpcache

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// directives maps the lower-case names of Cache-Control directives (RFC 9111, section 5.2) to all their arguments.
type directives map[string][]string

func directivesOf(h http.Header) directives {
	d := directives{}
	for _, part := range split(strings.Join(h["Cache-Control"], ",")) {
		name, value, _ := strings.Cut(part, "=")
		if name = strings.ToLower(strings.TrimSpace(name)); name != "" {
			d[name] = append(d[name], unquoted(strings.TrimSpace(value)))
		}
	}
	return d
}

// split splits a list at its commas, except those in quoted strings.
func split(list string) (parts []string) {
	quoted, from := false, 0
	for i := 0; i < len(list); i++ {
		switch c := list[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case c == ',' && !quoted:
			parts, from = append(parts, list[from:i]), i+1
		}
	}
	return append(parts, list[from:])
}

// unquoted removes the quotes of an argument in quoted form.
func unquoted(s string) string {
	if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' {
		return s[1 : len(s)-1]
	}
	return s
}

func (d directives) has(name string) bool { return len(d[name]) > 0 }

// seconds returns the argument of the directive, and whether the directive is present. An invalid argument, or several
// different ones, count as zero, which makes the answer stale.
func (d directives) seconds(name string) (time.Duration, bool) {
	values := d[name]
	if len(values) == 0 {
		return 0, false
	}
	for _, v := range values {
		if v != values[0] {
			return 0, true
		}
	}
	n, _ := deltaSeconds(values[0])
	return n, true
}

// longest replaces any longer time (RFC 9111, section 1.2.2). Sums of a few such times still fit a time.Duration.
const longest = (1 << 31) * time.Second

// deltaSeconds parses a number of seconds (RFC 9111, section 1.2.2).
func deltaSeconds(s string) (time.Duration, bool) {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		return longest, true
	}
	return time.Duration(n) * time.Second, true
}

// fields returns the elements of a list of tokens, in lower case.
func fields(lines []string) (out []string) {
	for _, s := range strings.Split(strings.Join(lines, ","), ",") {
		if s = strings.ToLower(strings.TrimSpace(s)); s != "" {
			out = append(out, s)
		}
	}
	return out
}
