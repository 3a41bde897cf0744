package daemon

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// A rawAgent writes lines to recurgentd mcp and reads lines of it.
type rawAgent struct {
	t    *testing.T
	in   io.WriteCloser
	out  *bufio.Reader
	wait func() error
}

func speakLines(t *testing.T, env []string, args ...string) *rawAgent {
	t.Helper()
	cmd := rig.Command(t, env, append([]string{"mcp"}, args...)...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return &rawAgent{t, in, bufio.NewReaderSize(out, 1<<20), cmd.Wait}
}

func (a *rawAgent) say(text string) {
	a.t.Helper()
	if _, err := io.WriteString(a.in, text); err != nil {
		a.t.Fatal(err)
	}
}

// hear reads a message; nil at the end.
func (a *rawAgent) hear() (message object) {
	a.t.Helper()
	text, err := a.out.ReadString('\n')
	if err == io.EOF && text == "" {
		return nil
	}
	if err != nil {
		a.t.Fatalf("%q: %v", text, err)
	}
	if err := json.Unmarshal([]byte(text), &message); err != nil {
		a.t.Fatalf("%q: %v", text, err)
	}
	return message
}

// shake makes the handshake of that version, after the beginning of a line.
func (a *rawAgent) shake(begin, version string) object {
	a.t.Helper()
	a.say(begin + `{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"` + version +
		`","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}` + "\r\n")
	hello := a.hear()
	a.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n")
	result, _ := hello["result"].(object)
	if hello["id"] != "hello" || result["protocolVersion"] != version {
		a.t.Fatalf("the handshake: %v", hello)
	}
	return result
}

// A line that is not a message gets the fitting error and ends nothing; what stands last is answered, too,
// and nothing of a request comes after its result.
func TestMCPStdioLines(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, script())
	m.Release()
	d := rig.Start(t, m)
	a := speakLines(t, nil, "--url", d.URL)
	capabilities, _ := a.shake("\ufeff", legacy)["capabilities"].(object)
	if capabilities["tools"] == nil || capabilities["prompts"] != nil || capabilities["logging"] != nil ||
		capabilities["completions"] != nil {
		t.Errorf("declared: %v", capabilities)
	}
	fault := func(line string, code float64, id any) {
		t.Helper()
		a.say(line)
		got := a.hear()
		wrong, _ := got["error"].(object)
		if id, there := got["id"]; !there || wrong["code"] != code {
			t.Errorf("%.60s: %v (id %v), want %v", line, got, id, code)
		}
		if !rig.Equal(got["id"], id) {
			t.Errorf("%.60s: id %v, want %v", line, got["id"], id)
		}
	}
	fault("what?\n", -32700, nil)
	fault("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]\n", -32600, nil)
	fault("{\"jsonrpc\":\"2.0\",\"id\":5}\r\n", -32600, 5.0)
	fault(`{"jsonrpc":"2.0","id":6,"method":"`+strings.Repeat("x", 9<<20)+`"}`+"\n", -32600, nil)
	for _, method := range []string{"prompts/list", "completion/complete", "logging/setLevel", "tools/sing"} {
		fault(`{"jsonrpc":"2.0","id":8,"method":"`+method+`","params":{}}`+"\n", -32601, 8.0)
	}
	a.say(`{"jsonrpc":"2.0","id":9,"method":"tools/list"}` + "\n")
	tools, _ := a.hear()["result"].(object)["tools"].([]any)
	var names []string
	for _, one := range tools {
		names = append(names, one.(object)["name"].(string))
	}
	if got := strings.Join(names, " "); !strings.HasPrefix(got, "call_method find_tools judge_call new_session") {
		t.Errorf("the tools are %s", got)
	}
	a.say(`{"jsonrpc":"2.0","id":10,"method":"tools/call","params":{"name":"call_method","arguments":{"role":"calculator","method":"add","args":"[2, 3]","kwargs":"{}","timeout_ms":"60000"},"_meta":{"progressToken":"p"}}}` + "\n")
	progress := 0
	got := a.hear()
	for ; got != nil && got["id"] == nil; got = a.hear() {
		if got["method"] == "notifications/progress" { // and not that the list of tools has changed
			progress++
		}
	}
	result, _ := got["result"].(object)
	content, _ := result["structuredContent"].(object)
	if value := content["value"]; got["id"] != 10.0 || value != 5.0 || progress == 0 {
		t.Errorf("after %d reports: %v", progress, got)
	}
	a.say(`{"jsonrpc":"2.0","id":11,"method":"ping"}` + "\n" + `{"jsonrpc":"2.0","id":12,"meth`) // and no end
	if err := a.in.Close(); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for one := a.hear(); one != nil; one = a.hear() {
		if one["method"] == "notifications/tools/list_changed" {
			continue
		}
		wrong, _ := one["error"].(object)
		seen[string(rig.Encode(t, []any{one["id"], wrong["code"]}))] = true
	}
	if !seen["[11,null]"] || !seen["[null,-32700]"] || len(seen) != 2 {
		t.Errorf("at the end: %v", seen)
	}
	if err := a.wait(); err != nil {
		t.Errorf("it ends with %v", err)
	}
}

// An agent that ends while a model writes leaves the call to be finished.
func TestMCPStdioForgeOutlivesItsAgent(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, script())
	defer m.Release()
	d := rig.Start(t, m)
	a := speakLines(t, nil, "--url", d.URL)
	a.shake("", legacy)
	a.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"call_method","arguments":{"role":"shop","method":"slow","args":[20,22]},"_meta":{"progressToken":1}}}` + "\n")
	rig.Until(t, "the model is asked", func() bool { return m.Count("shop", "slow") == 1 })
	id := d.List("/v1/calls?status=running")[0]["call_id"].(string)
	if err := a.in.Close(); err != nil {
		t.Fatal(err)
	}
	m.Release()
	rig.Until(t, "the call ends", func() bool { return d.Get("/v1/calls/" + id)["outcome_status"] == "ok" })
	if r := d.Send(http.MethodGet, "/v1/tools/shop/methods/slow", nil, nil); r.Status != http.StatusOK {
		t.Errorf("the program: %d %s", r.Status, r.Body)
	}
	last := object(nil)
	for one := a.hear(); one != nil; one = a.hear() {
		if one["method"] != "notifications/tools/list_changed" {
			last = one
		}
	}
	if last["id"] != 1.0 {
		t.Errorf("the last message is %v, want the result", last)
	}
}
