package local

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// Bounds of a fetch.
const (
	fetchTimeout = 15 * time.Second
	maxBody      = 1 << 20
	maxRedirects = 3
)

var client = &http.Client{Timeout: fetchTimeout, CheckRedirect: func(_ *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return fmt.Errorf("more than %d redirects", maxRedirects)
	}
	return nil
}}

// Get performs a request over net/http. Any address may be fetched, this machine's own ones too: run programs that you have read.
func Get(q recurgent.Request) (*recurgent.Response, error) {
	method := q.Method
	if method == "" {
		method = http.MethodGet
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
		return nil, &recurgent.Failure{Type: "resource_exhausted", Message: fmt.Sprintf("fetch: the answer is over %d bytes", maxBody)}
	}
	header := map[string]string{}
	for name, values := range answer.Header {
		header[name] = strings.Join(values, ", ")
	}
	return &recurgent.Response{Status: answer.StatusCode, Header: header, Body: strings.ToValidUTF8(string(body), "\ufffd"), FetchedAt: time.Now().UTC().Format(time.RFC3339Nano)}, nil
}
