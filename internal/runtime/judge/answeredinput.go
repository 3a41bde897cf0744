package judge

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/jsonenc"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
)

// InputHash returns a hash that identifies an input.
func InputHash(args []json.RawMessage, kwargs json.RawMessage) string {
	h := sha256.New()
	_, _ = h.Write(agent.Canonical(jsonenc.Array(args))) // a hash takes everything
	_, _ = h.Write(agent.Canonical(kwargs))
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// answeredBefore reports whether the generation once answered the call's input ok, by name or by position. Hashes made
// before the interface was known are those of the input as it was sent.
func answeredBefore(c *call.Call, g *agent.Generation) bool {
	return slices.Contains(g.Answered, InputHash(g.Interface.Named(c.Args, c.Kwargs))) ||
		slices.Contains(g.Answered, InputHash(c.Args, c.Kwargs))
}

// AnsweredInput returns the hash of an input that was answered from a source, or "" if nothing was fetched.
func AnsweredInput(c *call.Call, j Judged) string {
	if len(j.Result.Effects.Fetches) == 0 {
		return ""
	}
	return InputHash(j.Takes.Named(c.Args, c.Kwargs))
}
