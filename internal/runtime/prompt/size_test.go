package prompt

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
)

// maxMean is the most bytes that the plain first requests of the recorded tasks may have on average. In these texts a token
// of o200k_base has 4.03 bytes (measured once with github.com/tiktoken-go/tokenizer 0.8.2), so that these are at most 2,300 tokens.
const maxMean = 9260

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
		for _, m := range Program(Input{Kind: provider.KindForge, Role: k.Role, Method: k.Method, Args: k.Calls[0].Args, Kwargs: k.Calls[0].Kwargs, Dialect: allow.Dialect(), FetchMax: "16 MiB",
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
