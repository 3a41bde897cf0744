package call

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/agent/jsonenc"
)

// Init completes a call whose other fields are set.
func (c *Call) Init() {
	if c.Args == nil {
		c.Args = []json.RawMessage{}
	}
	if len(c.Kwargs) == 0 {
		c.Kwargs = json.RawMessage("{}")
	}
	c.compact()
	c.maskInput(c.storedInterface())
}

// InitRoot completes a call that no other call made, as Init does. The call has the timeout for the whole, and belongs
// to "local" without an access token.
func (c *Call) InitRoot(timeout time.Duration) {
	c.Deadline = c.Started.Add(timeout)
	if c.ID == "" {
		c.ID = ids.New("call")
	}
	if c.TraceID == "" {
		c.TraceID = ids.NewTrace()
	}
	if c.Owner == "" {
		c.Owner = agent.LocalOwner
	}
	c.Tree = &c.Own
	if c.Tree.Writes.Call == "" {
		c.Tree.Writes.Call = c.ID
	}
	c.Init()
}

// compact removes insignificant whitespace from the inputs. Doing it once pays off: they are checked, and copied for
// the run, the journal, the history and the log.
func (c *Call) compact() {
	shared := true
	for i, a := range c.Args {
		text := jsonenc.Compact(a)
		if len(text) == len(a) {
			continue
		}
		if shared {
			c.Args, shared = slices.Clone(c.Args), false
		}
		c.Args[i] = text
	}
	c.Kwargs, c.InputHistory = jsonenc.Compact(c.Kwargs), jsonenc.Compact(c.InputHistory)
}

// SetterKey returns the context key that a method named "key=" writes, or "".
func SetterKey(method string) string {
	key, isSetter := strings.CutSuffix(method, "=")
	if !isSetter {
		return ""
	}
	return key
}
