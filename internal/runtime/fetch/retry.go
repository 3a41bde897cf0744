package fetch

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// Bounds of retries.
const (
	maxRetries   = 10
	maxRetryWait = time.Minute            // a longer wait is not begun
	leastRetry   = 100 * time.Millisecond // the shortest wait, even if the host asks for less
	firstBackoff = time.Second            // used if the host names no time; doubled each time
)

// retry reports whether to repeat the request, and how long to wait before. If the wait would be too long, the program
// gets the answer now.
func (c *Client) retry(a *Answer, who Caller, q recurgent.Request, retries int) (time.Duration, bool) {
	if a.Response == nil || retries >= min(q.Retry, maxRetries) || !repeatable(a.method, a.keyed, a.Response.Status) {
		return 0, false
	}
	if writes(q.Method) && a.hops > 0 {
		// The host did the write and redirected to the answer. Repeating the request would be another write.
		return 0, false
	}
	wait, named := retryAfter(a.Response.Header["Retry-After"], c.now())
	if !named {
		wait = firstBackoff << min(retries, maxRetries)
	}
	wait = max(wait, leastRetry)
	return wait, wait <= maxRetryWait && (who.End.IsZero() || c.now().Add(wait).Before(who.End))
}

// repeatable reports whether a request that was answered with the status may be repeated. Idempotent methods (RFC 9110,
// section 9.2.2) may be repeated after both statuses. Other writes may be repeated after 429, by which the host refused
// them (RFC 6585, section 4). A 503 may come from a proxy whose server has done the work, so those need a key by which
// the host recognizes the request.
func repeatable(method string, keyed bool, status int) bool {
	switch status {
	case http.StatusTooManyRequests:
		return true
	case http.StatusServiceUnavailable:
		return keyed || method != http.MethodPost && method != http.MethodPatch
	}
	return false
}

// retryAfter parses a Retry-After field, seconds or a date (RFC 9110, section 10.2.3). A number too large to parse
// counts as a very long time.
func retryAfter(field string, now time.Time) (time.Duration, bool) {
	field = strings.TrimSpace(field)
	if field == "" {
		return 0, false
	}
	if strings.Trim(field, "0123456789") == "" {
		seconds, err := strconv.ParseInt(field, 10, 32)
		if err != nil {
			return 2 * maxRetryWait, true
		}
		return time.Duration(seconds) * time.Second, true
	}
	at, err := http.ParseTime(field)
	if err != nil {
		return 0, false
	}
	return max(0, at.Sub(now)), true
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
