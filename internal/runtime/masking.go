package runtime

import (
	"encoding/json"

	"github.com/recurgentd/recurgentd/internal/agent/mask"
)

func maskCall(rules *mask.Rules, args []json.RawMessage, kwargs json.RawMessage) ([]json.RawMessage, json.RawMessage, bool) {
	c := rules.Call(args, kwargs, nil, nil)
	return c.Args, c.Kwargs, c.Changed
}
