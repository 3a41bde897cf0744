package mask

import (
	"unicode/utf16"
	"unicode/utf8"
)

// whole widens the span to include JSON escapes that it cuts, because half an escape is invalid JSON.
func whole(b []byte, from, to int) span {
	for at := from - 1; at >= max(0, from-longestEscape+1); at-- {
		if b[at] == '\\' && (at+1 == from || b[at+1] == 'u') {
			if backslashes(b, at+1)%2 == 1 {
				from = at
			}
			break
		}
	}
	if backslashes(b, to)%2 == 1 && to < len(b) {
		switch {
		case b[to] == 'u':
			to = min(to+longestEscape-1, len(b))
		case escaped(b[to]) != 0:
			to++
		}
	}
	return span{from, to, Masked}
}

// backslashes counts the backslashes directly before i.
func backslashes(b []byte, i int) (n int) {
	for n < i && b[i-1-n] == '\\' {
		n++
	}
	return n
}

func alphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

func base64Char(c byte) bool {
	return alphanumeric(c) || c == '+' || c == '/' || c == '-' || c == '_'
}

// unhex returns the value of a hexadecimal digit. For another byte it returns a number larger than any base.
func unhex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return 1 << 12
}

// escaped returns the character that a backslash and c stand for in JSON, or 0.
func escaped(c byte) byte {
	switch c {
	case '"', '\\', '/':
		return c
	case 'n':
		return '\n'
	case 't':
		return '\t'
	case 'r':
		return '\r'
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	}
	return 0
}

// unicodeEscape returns the character of an escape such as \u00e9, or of a surrogate pair of them, and its length in
// bytes.
func unicodeEscape(b []byte) (rune, int) {
	first, n := hexRune(b)
	if !utf16.IsSurrogate(first) || len(b) < 2*n || b[n] != '\\' || b[n+1] != 'u' {
		return first, n
	}
	second, m := hexRune(b[n:])
	if r := utf16.DecodeRune(first, second); r != utf8.RuneError {
		return r, n + m
	}
	return utf8.RuneError, n
}

// hexRune decodes the escape \uXXXX with which b begins, and returns the number of bytes read.
func hexRune(b []byte) (rune, int) {
	n := min(len(b), longestEscape)
	var r rune
	for _, c := range b[2:n] {
		r = r<<4 | rune(unhex(c)&15)
	}
	return r, n
}

// unescape appends the decoded content b of a JSON string, given without its quotes.
func unescape(dst, b []byte) []byte {
	for i := 0; i < len(b); i++ {
		if b[i] != '\\' || i+1 == len(b) {
			dst = append(dst, b[i])
			continue
		}
		i++
		if b[i] != 'u' {
			dst = append(dst, max(escaped(b[i]), 0))
			continue
		}
		r, n := unicodeEscape(b[i-1:])
		dst = append(dst, string(r)...)
		i += n - 2
	}
	return dst
}
