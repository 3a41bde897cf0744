package mask

import (
	"bytes"
	"net/url"
	"strings"
)

// secretPaths are prefixes of URLs whose remaining path is a secret.
var secretPaths = []string{"hooks.slack.com/services/", "hooks.slack.com/workflows/", "hooks.slack.com/triggers/",
	"discord.com/api/webhooks/",
	"discordapp.com/api/webhooks/", "api.telegram.org/bot", "api.telegram.org/file/bot",
	"webhook.office.com/webhookb2/"}

// url masks the user information, path and parameters of the URL whose scheme ends at i, and returns its end.
func (p *pass) url(i int) int {
	at := i + len("://")
	end := at
	for end < len(p.b) && p.b[end] > ' ' && strings.IndexByte("\"<>\\`", p.b[end]) < 0 {
		end++
	}
	p.steps += end - at
	rest := p.b[at:end]
	host := len(rest)
	if n := bytes.IndexAny(rest, "/?#"); n >= 0 {
		host = n
	}
	if n := bytes.LastIndexByte(rest[:host], '@'); n > 0 {
		scheme := p.b[max(0, i-4):i]
		if user := rest[:n]; !alreadyMasked(user) && (bytes.IndexByte(user, ':') >= 0 ||
			!bytes.HasSuffix(scheme, []byte("ssh"))) {
			p.all = append(p.all, span{at, at + n, inURL})
		}
		at, rest = at+n+1, rest[n+1:]
	}
	path := len(rest)
	if n := bytes.IndexAny(rest, "?#"); n >= 0 {
		path = n
	}
	p.path(at, rest[:path])
	for _, c := range []byte("?#") {
		if n := bytes.IndexByte(rest, c); n >= 0 {
			p.query(at+n+1, rest[n+1:])
			break // the fragment is treated as a last parameter
		}
	}
	return max(end, i+1)
}

// path masks the secret remainder of a path in secretPaths.
func (p *pass) path(at int, rest []byte) {
	for _, known := range secretPaths {
		n := bytes.Index(rest, []byte(known))
		if n < 0 {
			continue
		}
		from, to := n+len(known), len(rest)
		if strings.HasSuffix(known, "bot") {
			if m := bytes.IndexByte(rest[from:], '/'); m >= 0 {
				to = from + m
			}
		}
		if from < to && !alreadyMasked(rest[from:to]) {
			p.all = append(p.all, span{at + from, at + to, inURL})
		}
		return
	}
}

// query masks the values of parameters whose names mark secrets. The names stay.
func (p *pass) query(at int, rest []byte) {
	for len(rest) > 0 {
		n := bytes.IndexAny(rest, "&;#?")
		param := rest
		if n >= 0 {
			param = rest[:n]
		}
		if name, v, ok := bytes.Cut(param, []byte("=")); ok && len(v) > 0 && !alreadyMasked(v) {
			if with := p.parameter(name, v); with != "" {
				p.all = append(p.all, span{at + len(name) + 1, at + len(param), with})
			}
		}
		if n < 0 {
			return
		}
		at, rest = at+n+1, rest[n+1:]
	}
}

// parameter returns the replacement of a parameter's value, or "" if it stays. The value may itself be a URL.
func (p *pass) parameter(name, v []byte) string {
	name, text := unescapeQuery(name), unescapeQuery(v)
	switch p.rules.match(bytes.TrimRight(name, "]")) {
	case always:
		if literal(text) {
			return ""
		}
		return inURL
	case looking:
		if opaque(text) {
			return inURL
		}
	}
	if bytes.Equal(text, v) {
		return ""
	}
	// URLs within URLs are followed to this depth: each level decodes and copies everything below it.
	const deepest = 4
	if p.depth == deepest {
		if suspicious(text) {
			return inURL
		}
		return ""
	}
	inner := pass{rules: p.rules, keep: p.keep, depth: p.depth + 1}
	masked, changed := inner.text(text)
	p.steps += inner.steps
	if !changed {
		return ""
	}
	p.secrets = append(p.secrets, inner.secrets...)
	return url.QueryEscape(string(masked))
}

// unescapeQuery returns a query's name or value decoded, or unchanged if it is malformed.
func unescapeQuery(b []byte) []byte {
	if bytes.IndexByte(b, '%') < 0 && bytes.IndexByte(b, '+') < 0 {
		return b
	}
	text, err := url.QueryUnescape(string(b))
	if err != nil {
		return b
	}
	return []byte(text)
}

// collectSpan collects the secret in a masked span, decoded if it was part of a URL.
func (p *pass) collectSpan(text []byte, s span) {
	if !p.keep || s.with != Masked && s.with != inURL {
		if p.keep && !strings.Contains(s.with, "%") {
			p.leaves(text) // a masked JSON value
		}
		return
	}
	if s.with == inURL {
		if plain, err := url.QueryUnescape(string(text)); err == nil {
			text = []byte(plain)
		}
		if _, password, ok := bytes.Cut(text, []byte(":")); ok {
			p.collect(password)
		}
	}
	p.collect(text)
}
