package client

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A Judgement is what a person says of a call.
type Judgement struct {
	Verdict   string          `json:"verdict"`            // right or wrong
	Expected  json.RawMessage `json:"expected,omitempty"` // nil: not said; null counts
	ErrorType string          `json:"expected_error_type,omitempty"`
	Note      string          `json:"note,omitempty"`
}

// VerdictPath is the path of what a person said of a call.
func VerdictPath(id string) string { return CallPath(id) + "/verdict" }

// Judge sends a judgement and returns what follows from it. With a wait, in whole seconds, the daemon answers after the first
// attempt at a correction, or after that long; waited is false where it has no attempt to wait for.
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

// Value returns text that is valid JSON as it is, and any other as a JSON string: what people type for a value.
func Value(text string) json.RawMessage {
	if json.Valid([]byte(text)) {
		return json.RawMessage(strings.TrimSpace(text))
	}
	quoted, err := json.Marshal(text)
	if err != nil {
		panic("a string has no JSON form: " + err.Error()) // encoding/json writes every string
	}
	return quoted
}
