package rig

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// Metric returns the value of one series of /metrics, summed over the replicas. A missing series counts as 0.
func (d *Daemon) Metric(series string) (sum float64) {
	d.T.Helper()
	for _, one := range d.Each() {
		sum += one.metric(series)
	}
	return sum
}

// Highest returns the largest value of a series among the replicas. It is for values that all replicas show of the same
// thing.
func (d *Daemon) Highest(series string) (most float64) {
	d.T.Helper()
	for _, one := range d.Each() {
		most = max(most, one.metric(series))
	}
	return most
}

// metric is Metric for this one replica.
func (d *Daemon) metric(series string) float64 {
	d.T.Helper()
	for line := range strings.Lines(string(d.Do(http.StatusOK, http.MethodGet, "/metrics", nil).Body)) {
		if rest, ok := strings.CutPrefix(line, series+" "); ok {
			v, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			if err != nil {
				d.T.Fatalf("%s: %v", line, err)
			}
			return v
		}
	}
	return 0
}

// Recommendations returns the recommendations that match the query, such as "?status=open".
func (d *Daemon) Recommendations(query string) []map[string]any {
	d.T.Helper()
	return d.List("/v1/recommendations" + query)
}

// History returns the records of a session, oldest first.
func (d *Daemon) History(session string) []map[string]any {
	d.T.Helper()
	return d.List("/v1/sessions/" + session + "/history?order=asc")
}

// Session creates a session and returns its id. more adds members to the request.
func (d *Daemon) Session(role string, more ...map[string]any) string {
	d.T.Helper()
	body := map[string]any{"role": role}
	for _, m := range more {
		for k, v := range m {
			body[k] = v
		}
	}
	id, _ := d.Do(http.StatusCreated, http.MethodPost, "/v1/sessions", body).Object(d.T)["id"].(string)
	if id == "" {
		d.T.Fatal("a new session has no id")
	}
	return id
}

// A Reply is the reply to a call as a client reads it.
type Reply struct {
	CallID    string `json:"call_id"`
	SessionID string `json:"session_id"`
	TraceID   string `json:"trace_id"`
	Role      string `json:"role"`
	Method    string `json:"method"`
	Outcome   struct {
		Status       string         `json:"status"`
		OK           bool           `json:"ok"`
		Value        any            `json:"value"`
		ErrorType    string         `json:"error_type"`
		ErrorMessage string         `json:"error_message"`
		Retriable    bool           `json:"retriable"`
		Authored     bool           `json:"authored"`
		ToolRole     string         `json:"tool_role"`
		MethodName   string         `json:"method_name"`
		Metadata     map[string]any `json:"metadata"`
	} `json:"outcome"`
	Program struct {
		Source      string  `json:"source"`
		ArtifactHit bool    `json:"artifact_hit"`
		Generation  string  `json:"generation"`
		Checksum    string  `json:"checksum"`
		Trigger     string  `json:"trigger"`
		Doubted     bool    `json:"doubted"`
		Stale       string  `json:"stale"`
		Engine      string  `json:"engine"`
		Tier        string  `json:"tier"`
		BuildMs     float64 `json:"build_ms"`
		Selection   struct {
			Decision string `json:"decision"`
			Reason   string `json:"reason"`
		} `json:"selection"`
	} `json:"program"`
	Attempts   int     `json:"attempts"`
	DurationMs float64 `json:"duration_ms"`
	Usage      struct {
		ModelRequests    int `json:"model_requests"`
		PromptTokens     int `json:"prompt_tokens"`
		CompletionTokens int `json:"completion_tokens"`
	} `json:"usage"`
}

// Invoke makes a call with the given body, which must include the method.
func (d *Daemon) Invoke(session string, body map[string]any) Reply {
	d.T.Helper()
	r := d.Do(http.StatusOK, http.MethodPost, "/v1/sessions/"+session+"/calls", body)
	var got Reply
	r.Into(d.T, &got)
	return got
}

// Call makes a call with positional arguments.
func (d *Daemon) Call(session, method string, args ...any) Reply {
	d.T.Helper()
	if args == nil {
		args = []any{}
	}
	return d.Invoke(session, map[string]any{"method": method, "args": args})
}

// CallWith makes a call with keyword arguments.
func (d *Daemon) CallWith(session, method string, kwargs map[string]any) Reply {
	d.T.Helper()
	return d.Invoke(session, map[string]any{"method": method, "kwargs": kwargs})
}

// WantValue checks that the outcome has the value. If source is not "", it also checks where the program came from.
func (d *Daemon) WantValue(got Reply, value any, source string) {
	d.T.Helper()
	if !got.Outcome.OK || !Equal(value, got.Outcome.Value) {
		d.T.Errorf("%s.%s: got %+v, want value %v", got.Role, got.Method, got.Outcome, value)
	}
	if source != "" && got.Program.Source != source {
		d.T.Errorf("%s.%s: source %q (%+v), want %q", got.Role, got.Method, got.Program.Source, got.Program.Selection,
			source)
	}
}

// WantError checks that the call ended in an error of that type.
func (d *Daemon) WantError(got Reply, errorType string) {
	d.T.Helper()
	if got.Outcome.OK || got.Outcome.Status != "error" || got.Outcome.ErrorType != errorType {
		d.T.Errorf("%s.%s: got %+v, want an error of type %s", got.Role, got.Method, got.Outcome, errorType)
	}
}

// MethodPath returns the URL path of a method's artifact.
func MethodPath(role, method string) string {
	return "/v1/tools/" + url.PathEscape(role) + "/methods/" + url.PathEscape(method)
}

// Artifact returns a method's artifact. The caller must escape role and method.
func (d *Daemon) Artifact(role, method string) map[string]any {
	d.T.Helper()
	return d.Get("/v1/tools/" + role + "/methods/" + method)
}

// Policy patches the policy.
func (d *Daemon) Policy(patch map[string]any) {
	d.T.Helper()
	d.Do(http.StatusOK, http.MethodPatch, "/v1/policy", patch)
}

// LogOf returns the log entry of a call.
func (d *Daemon) LogOf(r Reply) map[string]any {
	d.T.Helper()
	return d.Get("/v1/calls/" + r.CallID)
}
