package mask

import (
	"bytes"
	"encoding/base64"
	"strings"
)

// findCredentials finds what follows a scheme of authorization: "Bearer x".
func (p *pass) findCredentials() {
	p.after("earer ", func(b []byte) bool {
		return len(b) >= shortestShape || len(b) >= 8 && bytes.ContainsAny(b, "0123456789")
	})
	p.after("asic ", encodesUser)
}

// after masks the tokens behind the end of a scheme's name that are credentials of it.
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

// tokenChar reports whether c may be part of a token68 of a header.
func tokenChar(c byte) bool {
	return alphanumeric(c) || strings.IndexByte("-._~+/=", c) >= 0
}

// encodesUser reports whether b is a user with a password as basic authentication has them.
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

// header returns where the secret of a header with several words begins and ends: credentials behind their scheme, or cookies. to is 0 for
// another value. The last = of its first word is at equals.
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

// lineEnd returns the end of the line or of the quotation in which i lies.
func lineEnd(b []byte, i int) int {
	if n := bytes.IndexAny(b[i:], "\r\n\"'"); n >= 0 {
		for n > 0 && b[i+n-1] == '\\' {
			n--
		}
		return i + n
	}
	return len(b)
}
