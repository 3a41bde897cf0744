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
	maxRetryWait = time.Minute            // a host that names more is not waited for
	leastRetry   = 100 * time.Millisecond // also where a host names less
	firstBackoff = time.Second            // where a host names nothing; doubled each time
)

// retry reports whether to send the request again, and how long to wait before. A wait that is too long is not begun: the program gets the
// answer now.
func (c *Client) retry(a *Answer, who Caller, q recurgent.Request, retries int) (time.Duration, bool) {
	if a.Response == nil || retries >= min(q.Retry, maxRetries) || !repeatable(a.method, a.keyed, a.Response.Status) {
		return 0, false
	}
	if Writes(q.Method) && a.hops > 0 {
		// the host did the write, and led to the answer by a redirect: sending it again would be another one
		return 0, false
	}
	wait, named := retryAfter(a.Response.Header["Retry-After"], c.now())
	if !named {
		wait = firstBackoff << min(retries, maxRetries)
	}
	wait = max(wait, leastRetry)
	return wait, wait <= maxRetryWait && (who.End.IsZero() || c.now().Add(wait).Before(who.End))
}

// repeatable reports whether a request that was answered with the status may be sent again. Idempotent methods (RFC 9110, section 9.2.2)
// may after both. Another write may after 429, by which the host refused it (RFC 6585, section 4); 503 may come of a proxy whose
// server has done the work, so that the host must have a key by which it knows the request again.
func repeatable(method string, keyed bool, status int) bool {
	switch status {
	case http.StatusTooManyRequests:
		return true
	case http.StatusServiceUnavailable:
		return keyed || method != http.MethodPost && method != http.MethodPatch
	}
	return false
}

// retryAfter reads a Retry-After field, seconds or a date (RFC 9110, section 10.2.3). A number too large to read is a very long time.
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
