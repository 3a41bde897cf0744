package client

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A Judgement is a person's judgement of a call.
type Judgement struct {
	Verdict   string          `json:"verdict"`            // right or wrong
	Expected  json.RawMessage `json:"expected,omitempty"` // nil means not given; null is a value
	ErrorType string          `json:"expected_error_type,omitempty"`
	Note      string          `json:"note,omitempty"`
}

// VerdictPath returns the path of the verdict on a call.
func VerdictPath(id string) string { return CallPath(id) + "/verdict" }

// Judge sends a judgement and returns the reply. With a wait, in whole seconds, the daemon replies after the first
// attempt at a correction, or after that time. waited is false if there is no attempt to wait for.
func (c *Client) Judge(ctx context.Context, callID string, j Judgement,
	wait time.Duration) (data []byte, waited bool, err error) {
	header := http.Header{}
	if wait > 0 {
		header.Set("Prefer", "wait="+strconv.Itoa(int(wait.Seconds())))
	}
	resp, err := c.send(ctx, http.MethodPost, VerdictPath(callID), header, j)
	if err != nil {
		return nil, false, err
	}
	data, err = c.read(resp, "the verdict")
	return data, resp.Header.Get("Preference-Applied") != "", err
}

// Value returns valid JSON as it is, and any other text as a JSON string, for values that people type.
func Value(text string) json.RawMessage {
	if json.Valid([]byte(text)) {
		return json.RawMessage(strings.TrimSpace(text))
	}
	quoted, err := json.Marshal(text)
	if err != nil {
		panic("a string has no JSON form: " + err.Error()) // encoding/json encodes every string
	}
	return quoted
}
