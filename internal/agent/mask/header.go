package mask

import (
	"bytes"
	"encoding/base64"
	"strings"
)

// findCredentials finds credentials after the name of an authorization scheme: "Bearer x".
func (p *pass) findCredentials() {
	p.after("earer ", func(b []byte) bool {
		return len(b) >= shortestShape || len(b) >= 8 && bytes.ContainsAny(b, "0123456789")
	})
	p.after("asic ", encodesUser)
}

// after masks each token that follows the end of a scheme's name and that credentials accepts.
func (p *pass) after(scheme string, credentials func([]byte) bool) {
	for i := 0; ; {
		n := bytes.Index(p.b[i:], []byte(scheme))
		if n < 0 {
			return
		}
		i += n + len(scheme)
		end := i
		for end < len(p.b) && tokenChar(p.b[end]) {
			end++
		}
		p.steps += n + end - i
		if credentials(p.b[i:end]) {
			p.all = append(p.all, span{i, end, Masked})
		}
	}
}

// tokenChar reports whether c may be part of a token68 (RFC 7235) in a header.
func tokenChar(c byte) bool {
	return alphanumeric(c) || strings.IndexByte("-._~+/=", c) >= 0
}

// encodesUser reports whether b is base64 of user:password, as in basic authentication.
func encodesUser(b []byte) bool {
	if len(b) < 6 {
		return false
	}
	plain, err := base64.StdEncoding.DecodeString(string(b))
	if err != nil {
		plain, err = base64.RawStdEncoding.DecodeString(string(b))
	}
	return err == nil && bytes.IndexByte(plain, ':') >= 0
}

// header returns the bounds of the secret in a header value with several words: credentials after their scheme, or
// cookies. For other values to is 0. equals is the index of the last = in the first word.
func header(b []byte, first, end, equals int, name []byte) (from, to int) {
	if endsWith(name, "cookie") {
		if alreadyMasked(b[first:end]) {
			return first, end
		}
		if equals > first {
			return first, lineEnd(b, first)
		}
		return 0, 0
	}
	for _, scheme := range []string{"bearer", "basic", "token", "apikey", "negotiate", "bot", "digest",
		"aws4-hmac-sha256"} {
		if end-first != len(scheme) || !strings.EqualFold(string(b[first:end]), scheme) || end == len(b) ||
			b[end] != ' ' {
			continue
		}
		if (scheme == "digest" || strings.HasPrefix(scheme, "aws")) && !alreadyMasked(b[end+1:]) {
			return end + 1, lineEnd(b, end)
		}
		for to = end + 1; to < len(b) && !endsValues[b[to]]; {
			to++
		}
		return end + 1, to
	}
	return 0, 0
}

// lineEnd returns the end of the line or of the quotation around i.
func lineEnd(b []byte, i int) int {
	if n := bytes.IndexAny(b[i:], "\r\n\"'"); n >= 0 {
		for n > 0 && b[i+n-1] == '\\' {
			n--
		}
		return i + n
	}
	return len(b)
}
