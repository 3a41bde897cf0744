package api

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// parsePrefer reads the Prefer header (RFC 7240). As the RFC demands, it ignores unknown preferences. wait is at most
// maxWait.
func parsePrefer(values []string) (async bool, wait time.Duration, err error) {
	for _, v := range values {
		for p := range strings.SplitSeq(v, ",") {
			p, _, _ = strings.Cut(p, ";")
			name, value, _ := strings.Cut(strings.TrimSpace(p), "=")
			switch strings.ToLower(strings.TrimSpace(name)) {
			case "respond-async":
				async = true
			case "wait":
				n, convErr := strconv.Atoi(strings.Trim(strings.TrimSpace(value), `"`))
				if convErr != nil || n < 0 {
					return false, 0, fault(codeParameter, "Prefer: wait is not a number of seconds",
						"such as Prefer: respond-async, wait=10").in("header:Prefer",
						"wait must be a number of seconds")
				}
				wait = min(time.Duration(min(n, 1<<20))*time.Second, maxWait)
			}
		}
	}
	return async, wait, nil
}

// idempotencyKey returns the key of the header, bare or quoted: drafts of the header used both.
func idempotencyKey(values []string) (string, error) {
	bad := func(detail string) (string, error) {
		return "", fault(codeKeyInvalid, "the Idempotency-Key "+detail, "").in("header:Idempotency-Key", detail)
	}
	if len(values) != 1 {
		return bad("is there more than once")
	}
	key := values[0]
	if len(key) >= 2 && key[0] == '"' && key[len(key)-1] == '"' {
		key = key[1 : len(key)-1]
	}
	if key == "" || len(key) > 255 {
		return bad("must have 1 to 255 characters")
	}
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' {
			return bad("must be visible ASCII")
		}
	}
	return key, nil
}

// traceID returns the trace id of a W3C traceparent header, or "" if there is no valid one.
func traceID(r *http.Request) string {
	given := r.Header["Traceparent"]
	if len(given) != 1 {
		return ""
	}
	p := given[0]
	if len(p) < 55 || p[2] != '-' || p[35] != '-' || p[52] != '-' || p[:2] == "ff" || p[:2] == "00" && len(p) != 55 ||
		len(p) > 55 && p[55] != '-' {
		return ""
	}
	if !lowerHex(p[:2]) || !lowerHex(p[3:35]) || !lowerHex(p[36:52]) || !lowerHex(p[53:55]) ||
		p[3:35] == "00000000000000000000000000000000" || p[36:52] == "0000000000000000" {
		return ""
	}
	return p[3:35]
}

// lowerHex reports whether s consists of lower-case hexadecimal digits, which the standard demands.
func lowerHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f') {
			return false
		}
	}
	return true
}
