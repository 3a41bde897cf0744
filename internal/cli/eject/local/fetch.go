package local

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// Bounds of a fetch.
const (
	fetchTimeout = 15 * time.Second
	maxBody      = 16 << 20
	maxRetries   = 10
	maxRetryWait = time.Minute
	maxRedirects = 3
)

// client performs the requests of Get.
var client = &http.Client{Timeout: fetchTimeout, CheckRedirect: func(_ *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return fmt.Errorf("more than %d redirects", maxRedirects)
	}
	return nil
}}

// downloads has no timeout, because a large body takes its time.
var downloads = &http.Client{CheckRedirect: client.CheckRedirect}

// Get performs a request over net/http. It repeats the request up to q.Retry times while the answer is 429 or 503. It
// does not cache: q.Cache has no effect. Any address may be fetched, including those of this machine, so run only
// programs that you have read.
func Get(q recurgent.Request) (*recurgent.Response, error) {
	for retries := 0; ; retries++ {
		r, err := get(q)
		if err != nil || retries >= min(q.Retry, maxRetries) || !repeatable(strings.ToUpper(q.Method), r.Status) {
			return r, err
		}
		wait := time.Second << retries
		if seconds, err := strconv.Atoi(r.Header["Retry-After"]); err == nil {
			wait = time.Duration(min(max(seconds, 0), 3600)) * time.Second
		} else if at, err := http.ParseTime(r.Header["Retry-After"]); err == nil {
			wait = time.Until(at)
		}
		if wait > maxRetryWait {
			return r, nil
		}
		time.Sleep(wait)
	}
}

// Download gets the URL as a stream over net/http. The caller closes body. A status other than 2xx is an error.
func Download(url string) (name string, body io.ReadCloser, err error) {
	answer, err := downloads.Get(url)
	if err != nil {
		return "", nil, &recurgent.Failure{Type: "fetch_failed", Message: "fetch: " + err.Error()}
	}
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		answer.Body.Close()
		f := &recurgent.Failure{Type: "fetch_failed", Message: "fetch: " + url + " answered " + answer.Status}
		if answer.StatusCode == http.StatusNotFound || answer.StatusCode == http.StatusGone {
			f.Type = "not_found"
		}
		return "", nil, f
	}
	if _, params, err := mime.ParseMediaType(answer.Header.Get("Content-Disposition")); err == nil {
		name = params["filename"]
	}
	if name == "" {
		name = path.Base(answer.Request.URL.Path)
	}
	return name, answer.Body, nil
}

// repeatable reports whether a request answered with the status may be repeated. After 429 the host has done nothing;
// after 503 it may have performed a write.
func repeatable(method string, status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable &&
		method != http.MethodPost && method != http.MethodPatch
}

// get performs a request once.
func get(q recurgent.Request) (*recurgent.Response, error) {
	method := q.Method
	if method == "" {
		method = http.MethodGet
	}
	if len(q.BodyBytes) > 0 {
		q.Body = string(q.BodyBytes)
	}
	r, err := http.NewRequest(method, q.URL, strings.NewReader(q.Body))
	if err != nil {
		return nil, &recurgent.Failure{Type: "denied", Message: "fetch: " + err.Error()}
	}
	for name, value := range q.Header {
		r.Header.Set(name, value)
	}
	answer, err := client.Do(r)
	if err != nil {
		return nil, &recurgent.Failure{Type: "fetch_failed", Message: "fetch: " + err.Error()}
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxBody+1))
	if err != nil {
		return nil, &recurgent.Failure{Type: "fetch_failed", Message: "fetch: " + err.Error()}
	}
	if len(body) > maxBody {
		return nil, &recurgent.Failure{Type: "resource_exhausted",
			Message: fmt.Sprintf("fetch: the answer is over %d bytes", maxBody)}
	}
	header := map[string]string{}
	for name, values := range answer.Header {
		header[name] = strings.Join(values, ", ")
	}
	out := &recurgent.Response{Status: answer.StatusCode, Header: header,
		Body: strings.ToValidUTF8(string(body), "\ufffd"), FetchedAt: time.Now().UTC().Format(time.RFC3339Nano)}
	if !utf8.Valid(body) {
		out.Raw = body
	}
	return out, nil
}
