package runtime

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent/jsonenc"
)

// init completes a call whose other fields are set.
func (c *Call) init() {
	if c.args == nil {
		c.args = []json.RawMessage{}
	}
	if len(c.kwargs) == 0 {
		c.kwargs = json.RawMessage("{}")
	}
	c.compact()
	c.maskInput(c.storedInterface())
}

// compact removes insignificant whitespace from the inputs. Doing it once pays off: they are checked, and copied for
// the run, the journal, the history and the log.
func (c *Call) compact() {
	shared := true
	for i, a := range c.args {
		text := jsonenc.Compact(a)
		if len(text) == len(a) {
			continue
		}
		if shared {
			c.args, shared = slices.Clone(c.args), false
		}
		c.args[i] = text
	}
	c.kwargs, c.inputHistory = jsonenc.Compact(c.kwargs), jsonenc.Compact(c.inputHistory)
}

// setterKey returns the context key that a method named "key=" writes, or "".
func setterKey(method string) string {
	key, isSetter := strings.CutSuffix(method, "=")
	if !isSetter {
		return ""
	}
	return key
}
