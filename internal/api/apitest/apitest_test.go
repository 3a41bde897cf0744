package apitest

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// complaints stands in for a testing.TB and collects its errors.
type complaints struct {
	testing.TB
	errors []string
}

func (c *complaints) Errorf(format string, args ...any) {
	c.errors = append(c.errors, fmt.Sprintf(format, args...))
}

// answers is a server that replies to every request with the same body.
type answers struct{ media, body string }

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {a.media},
		"X-Request-Id": {"req_1"}}, Body: io.NopCloser(strings.NewReader(a.body)), Request: r}, nil
}

// Every line of an export is checked against the schema of a record, not only the first.
func TestLinesAreChecked(t *testing.T) {
	t.Parallel()
	good := `{"call_id":"call_1","seq":1,"timestamp":"2026-11-21T02:10:00.123Z","speaker":"user","role":"r","method_name":"m","args":[],"kwargs":{},"outcome_summary":{"status":"ok","ok":true,"error_type":null,"retriable":false}}` + "\n"
	tests := []struct{ name, media, body, complaint string }{
		{"nothing", mediaLines, "", ""},
		{"two records", mediaLines, good + good, ""},
		{"a member of a newer version", mediaLines, strings.Replace(good, `"role"`, `"mood":"x","role"`, 1), ""},
		{"a second line that is no record", mediaLines, good + `{"call_id":"call_2"}` + "\n", "line 2"},
		{"a second line with another speaker", mediaLines, good + strings.Replace(good, `"user"`, `"nobody"`, 1),
			"line 2"},
		{"a line that is no JSON", mediaLines, good + "{\n", "line 2"},
		{"a line that does not end", mediaLines, good + strings.TrimSpace(good), "does not end"},
		{"a page in place of lines", mediaLines, `{"data":[],"next_cursor":null,"size":0}` + "\n", "line 1"},
		{"lines in place of a page", "application/json", good, "differs"},
	}
	for _, tt := range tests {
		c := &complaints{TB: t}
		client := http.Client{Transport: Over(c, answers{tt.media, tt.body})}
		res, err := client.Get("http://localhost/v1/sessions/sess_1/history")
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if got := strings.Join(c.errors, "\n"); (tt.complaint == "") != (got == "") ||
			!strings.Contains(got, tt.complaint) {
			t.Errorf("%s: errors %q, want %q", tt.name, got, tt.complaint)
		}
	}
}
