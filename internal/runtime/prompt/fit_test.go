package prompt

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
	"github.com/recurgentd/recurgentd/internal/runtime/prompt/prompttest"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
)

// maxMean bounds the mean size, in bytes, of the plain first requests of the recorded tasks. In these texts a token of
// o200k_base has 3.95 bytes (measured once with github.com/tiktoken-go/tokenizer 0.10.0), so the mean is at most 2,320
// tokens.
const maxMean = 9160

// The prompt stays short: the mean over the recorded tasks is held to a bound.
func TestSizeOverRecordedTasks(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../../test/e2e/tools/testdata/recorded-tasks.json")
	if err != nil {
		t.Fatal(err)
	}
	var tasks []struct {
		Role, Method, Purpose string
		Deliverable           json.RawMessage
		Calls                 []struct {
			Args   []json.RawMessage
			Kwargs json.RawMessage
		}
	}
	if err := json.Unmarshal(data, &tasks); err != nil || len(tasks) != 30 {
		t.Fatalf("%d tasks, %v", len(tasks), err)
	}
	total := 0
	for _, k := range tasks {
		for _, m := range Program(Input{Kind: provider.KindForge, Role: k.Role, Method: k.Method, Args: k.Calls[0].Args,
			Kwargs: k.Calls[0].Kwargs, Dialect: allow.Dialect(), FetchMax: "16 MiB", Fetches: 200,
			Contract: &agent.Contract{Purpose: k.Purpose, Deliverable: k.Deliverable}}) {
			total += len(m.Content)
		}
	}
	if mean := total / len(tasks); mean > maxMean {
		t.Errorf("a plain first request has %d bytes on average, more than %d", mean, maxMean)
	} else {
		t.Logf("%d bytes on average", mean)
	}
}

// A request for a small context keeps to its bound whatever is in it, and keeps the contract longest.
func TestShortRequests(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("Größe 12.5 <td>x</td>; ", 200)
	quoted, _ := json.Marshal(text)
	for _, name := range []string{"ask", "forge-full", "repair-short"} {
		in := cases()[name]
		in.ModelContext = 4096
		if n := tokens(Program(in)); n > shortTokens {
			t.Errorf("%s: %d tokens", name, n)
		}
		in.Args, in.Kwargs = []json.RawMessage{quoted, quoted}, json.RawMessage(`{"k":`+string(quoted)+`}`)
		in.Evidence, in.Feedback, in.Patterns = []Part{{Most: len(text), Lines: said(text)}}, said(text, text, text),
			[]string{text, text, text, text}
		in.FailedCode, in.FailureMessage, in.FailureMetadata = text, said(text), map[string]any{"x": text}
		in.Examples = []Example{{Args: quoted, Expect: quoted, Note: text}, {Args: quoted, Expect: quoted}}
		for i := range 14 {
			in.KnownTools = append(in.KnownTools, Tool{Role: fmt.Sprint("tool ", i), Purpose: text,
				Methods: []string{text, text}, Deliverable: quoted})
			in.Connections = append(in.Connections, Connection{Name: fmt.Sprint("c", i), Description: text,
				Addresses: []string{text}})
			in.Turns = append(in.Turns, Turn{Method: "ask", Args: quoted, Value: quoted})
			in.HistoryTurns = append(in.HistoryTurns, provider.Message{Role: "user", Content: text})
		}
		in.Contract = &agent.Contract{Purpose: "find what is asked",
			Deliverable: json.RawMessage(`{"type":"object","required":["status"]}`)}
		messages := Program(in)
		if n := tokens(messages); n > shortTokens {
			t.Errorf("%s, with much in it: %d tokens", name, n)
		}
		if user := messages[len(messages)-1].Content; !strings.Contains(user, "purpose: find what is asked\n") ||
			!strings.Contains(user, `{"type":"object","required":["status"]}`) {
			t.Errorf("%s: the contract was cut:\n%s", name, user)
		}
		if _, err := prompttest.Check(messages); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		in.Contract = &agent.Contract{Purpose: text, Deliverable: quoted, Acceptance: quoted, FailurePolicy: quoted}
		if n := tokens(Program(in)); n > shortTokens {
			t.Errorf("%s, with a long contract: %d tokens", name, n)
		}
	}
}
