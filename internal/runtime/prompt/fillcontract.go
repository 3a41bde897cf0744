package prompt

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// The filled types hold rendered parts of the user message; an empty string is left out of it.
type filledContract struct{ Purpose, Deliverable, Acceptance, FailurePolicy, Signature string }

type filledTool struct{ Role, Own, Purpose, Methods, Deliverable, Weak string }

func fillContract(k *agent.Contract, most int) *filledContract {
	if k.Empty() {
		return nil
	}
	return &filledContract{Purpose: plain(k.Purpose, min(maxPurpose, most)), Deliverable: part(k.Deliverable, most),
		Acceptance:    part(k.Acceptance, most),
		FailurePolicy: part(k.FailurePolicy, most), Signature: part(k.Signature, most)}
}

type filledRecheck struct {
	Code   string
	Before *filledContract
}

func fillRecheck(r *Recheck, b bounds) *filledRecheck {
	f := &filledRecheck{Code: earlierProgram(r.Code),
		Before: fillContract(&agent.Contract{Purpose: r.Before.Purpose, Acceptance: r.Before.Acceptance,
			FailurePolicy: r.Before.FailurePolicy}, b.contract)}
	if len(f.Code) > b.code {
		f.Code = cut(f.Code, b.code) + "\n// ... the rest is left out"
	}
	return f
}

// part renders a JSON part of a contract, or returns "" if it is absent or null.
func part(raw json.RawMessage, most int) string {
	if trimmed := strings.TrimSpace(string(raw)); trimmed == "" || trimmed == "null" {
		return ""
	}
	return readable(raw, most)
}

func fillTool(t Tool) filledTool {
	methods := make([]string, 0, 8)
	for _, m := range t.Methods[:min(len(t.Methods), 8)] {
		methods = append(methods, plain(m, 200))
	}
	if more := len(t.Methods) - len(methods); more > 0 {
		methods = append(methods, fmt.Sprintf("%d more", more))
	}
	f := filledTool{Role: plain(agent.Quoted(t.Role), 200), Purpose: plain(t.Purpose, 240),
		Methods: strings.Join(methods, "; "), Weak: plain(t.Weak, 200)}
	if d := part(t.Deliverable, maxContract); d != "" {
		f.Deliverable = cut(d, 400)
	}
	return f
}

// contextKeys lists the keys of the context with the shapes of their values, sorted by key.
func contextKeys(shapes map[string]string) []string {
	keys := make([]string, 0, len(shapes))
	for k := range shapes {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	var out []string
	for _, k := range keys[:min(len(keys), maxKeys)] {
		out = append(out, plain(k, 60)+": "+plain(shapes[k], maxShape))
	}
	if more := len(keys) - len(out); more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return out
}
