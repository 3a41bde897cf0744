package replicas

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/provider/openaitest"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// What a program of the capped namespace costs, in tokens: less than a request reserves.
const (
	costPrompt     = 4000
	costCompletion = 1000
	cost           = costPrompt + costCompletion
)

// newModel writes the programs of the load. No two are the same, so that the checksum says which answer a program is.
func newModel(t *testing.T) *rig.Model {
	m := rig.NewModel(t, nil)
	var written atomic.Int64
	m.Default(func(r openaitest.Request) openaitest.Reply {
		code, reply := rig.ProgGiven, openaitest.Reply{}
		switch {
		case r.Repair:
			code = rig.ProgFixes
		case r.Method == counter("") || r.Method == counter(capped):
			code = rig.ProgIncrement
		case strings.HasPrefix(r.Method, "flaky"):
			code = rig.ProgMayPanic
		case strings.HasPrefix(r.Method, "cost"):
			reply.Prompt, reply.Completion = costPrompt, costCompletion
		}
		reply.Code = code + fmt.Sprintf("\n// program %d\n", written.Add(1))
		return reply
	})
	return m
}

// asked is what the model was asked for by methods that cost much, in tokens.
func asked(m *rig.Model) (tokens int) {
	for _, q := range m.Questions() {
		if strings.HasPrefix(q.Method, "cost") {
			tokens += cost
		}
	}
	return tokens
}
