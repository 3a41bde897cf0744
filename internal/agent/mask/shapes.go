package mask

import "bytes"

// A shape describes the form of one well-known kind of secret: its prefix and the characters that follow. The list was
// written for this project, from facts that the issuers document or that source code scanners such as gitleaks look
// for.
type shape struct {
	prefix string
	rest   func(byte) bool // accepts characters after the prefix
	least  int             // their minimum number
	exact  bool            // their number is exactly least
}

// shapes lists the known shapes, by issuer or kind of issuer.
var shapes = []shape{
	// AWS
	{"AKIA", upperDigit, 16, true}, {"ASIA", upperDigit, 16, true}, {"ABIA", upperDigit, 16, true},
	{"ACCA", upperDigit, 16, true},
	{"ghp_", alphanumeric, 30, false}, {"gho_", alphanumeric, 30, false}, {"ghu_", alphanumeric, 30, false},
	{"ghs_", alphanumeric, 30, false},
	{"ghr_", alphanumeric, 30, false}, {"github_pat_", word, 30, false}, // GitHub
	// GitLab
	{"glpat-", word, 20, false}, {"gldt-", word, 20, false}, {"glrt-", word, 20, false}, {"glptt-", word, 20, false},
	{"glcbt-", word, 20, false},
	{"xoxb-", word, 12, false}, {"xoxp-", word, 12, false}, {"xoxa-", word, 12, false}, {"xoxr-", word, 12, false},
	{"xoxs-", word, 12, false},
	// Slack
	{"xoxo-", word, 12, false}, {"xoxe-", word, 12, false}, {"xoxe.xox", dotted, 12, false}, {"xapp-", word, 16, false},
	{"sk_live_", alphanumeric, 10, false}, {"sk_test_", alphanumeric, 10, false}, {"sk_prod_", alphanumeric, 10, false},
	{"rk_live_", alphanumeric, 10, false},
	// Stripe
	{"rk_test_", alphanumeric, 10, false}, {"rk_prod_", alphanumeric, 10, false}, {"whsec_", alphanumeric, 20, false},
	{"sk-ant-", word, 20, false}, {"sk-proj-", word, 20, false}, {"sk-svcacct-", word, 20, false},
	{"sk-admin-", word, 20, false}, {"sk-or-", word, 20, false},
	{"sk-", alphanumeric, 20, false}, {"gsk_", alphanumeric, 30, false}, {"xai-", alphanumeric, 30, false},
	{"pplx-", alphanumeric, 30, false},
	{"hf_", alphanumeric, 30, false}, {"r8_", alphanumeric, 30, false}, // providers of models
	{"AIza", word, 35, false}, {"GOCSPX-", word, 20, false}, {"ya29.", dotted, 20, false}, // Google
	// registries
	{"npm_", alphanumeric, 30, false}, {"pypi-AgE", word, 30, false}, {"rubygems_", alphanumeric, 40, false},
	{"dckr_pat_", word, 20, false},
	{"dop_v1_", alphanumeric, 40, false}, {"doo_v1_", alphanumeric, 40, false}, {"dor_v1_", alphanumeric, 40, false},
	{"dapi", hexDigit, 32, false},
	{"hvs.", word, 24, false}, {"hvb.", word, 24, false}, {"dp.pt.", alphanumeric, 40, false},
	{"pul-", hexDigit, 40, false}, {"dt0c01.", dotted, 40, false},
	{"SG.", dotted, 40, false}, {"xkeysib-", word, 40, false}, {"lin_api_", alphanumeric, 30, false},
	{"ntn_", alphanumeric, 40, false}, {"figd_", word, 30, false},
	{"shpat_", hexDigit, 32, false}, {"shpca_", hexDigit, 32, false}, {"shppa_", hexDigit, 32, false},
	{"shpss_", hexDigit, 32, false}, {"sq0atp-", word, 20, false},
	{"PMAK-", word, 40, false}, {"ATATT3", word, 60, false}, {"sntrys_", dotted, 40, false},
	{"sntryu_", hexDigit, 40, false}, {"glsa_", word, 32, false},
	// others
	{"tskey-", word, 20, false}, {"nvapi-", word, 40, false}, {"LTAI", alphanumeric, 20, false},
	{"AGE-SECRET-KEY-1", upperDigit, 50, false},
}

// byFirst holds the shapes by the first byte of their prefix.
var byFirst = func() (table [256][]shape) {
	for _, s := range shapes {
		table[s.prefix[0]] = append(table[s.prefix[0]], s)
	}
	return table
}()

func upperDigit(c byte) bool { return 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' }
func hexDigit(c byte) bool   { return unhex(c) < 16 }
func word(c byte) bool       { return alphanumeric(c) || c == '_' || c == '-' }
func dotted(c byte) bool     { return word(c) || c == '.' }

// shortestShape is a lower bound of the length of all shapes.
const shortestShape = 16

// inRun marks the characters that secrets consist of. A run is a stretch of them. Most texts have no run of
// shortestShape characters, and are skipped in steps of nearly that length.
var inRun = func() (table [256]bool) {
	for c := range 256 {
		table[c] = dotted(byte(c))
	}
	return table
}()

// nextRun returns the first run of at least shortestShape characters at or after i; from is len(b) if there is none.
func nextRun(b []byte, i int) (from, to int) {
	for i+shortestShape <= len(b) {
		last := i + shortestShape - 1
		for last >= i && inRun[b[last]] {
			last--
		}
		if last >= i {
			i = last + 1
			continue
		}
		to = i + shortestShape
		for to < len(b) && inRun[b[to]] {
			to++
		}
		return i, to
	}
	return len(b), len(b)
}

// findShapes finds secrets of well-known shapes.
func (p *pass) findShapes() {
	b := p.b
	for from, to := nextRun(b, 0); from < len(b); from, to = nextRun(b, to) {
		lastDot := max(from, to-leastJWT) // no JSON Web Token begins after it
		for lastDot > from && b[lastDot] != '.' {
			lastDot--
		}
		for i := from; i < to; i++ {
			if i > from && alphanumeric(b[i-1]) && i != from+2 || byFirst[b[i]] == nil && b[i] != 'e' {
				continue
			}
			if i == from+2 && alphanumeric(b[i-1]) && (from == 0 || b[from-1] != '%') {
				continue // after a percent sign, the first two digits belong to an escape
			}
			if end := p.shapeEnd(b[:to], i, lastDot); end > 0 {
				p.all = append(p.all, span{i, end, Masked})
				i = end
			}
		}
	}
}

// shapeEnd returns the end of the secret that begins at i, or 0.
func (p *pass) shapeEnd(b []byte, i, lastDot int) int {
	if i < lastDot {
		if end := jwtEnd(b, i); end > 0 {
			return end
		}
	}
	for k := range byFirst[b[i]] {
		s := &byFirst[b[i]][k]
		if !hasPrefix(b[i:], s.prefix) {
			continue
		}
		end := i + len(s.prefix)
		most := len(b)
		if s.exact {
			most = min(most, end+s.least+1)
		}
		for end < most && s.rest(b[end]) {
			end++
		}
		p.steps += end - i
		if n := end - i - len(s.prefix); n == s.least || n > s.least && !s.exact {
			return end
		}
	}
	return 0
}

func hasPrefix(b []byte, prefix string) bool {
	return len(b) >= len(prefix) && string(b[:len(prefix)]) == prefix
}

// leastJWT is the minimum length of the first part of a JSON Web Token, and of the rest including its dot.
const leastJWT = 12

// jwtEnd returns the end of a JSON Web Token that begins at i, or 0. It requires {" in base64, a dot, and further
// parts.
func jwtEnd(b []byte, i int) int {
	if !bytes.HasPrefix(b[i:], []byte("eyJ")) {
		return 0
	}
	dot := bytes.IndexByte(b[i:], '.')
	if dot < leastJWT || len(b)-i-dot < leastJWT {
		return 0
	}
	return len(b) // a run has only characters of a token
}
