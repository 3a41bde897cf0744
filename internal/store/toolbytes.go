package store

import "github.com/recurgentd/recurgentd/internal/agent"

// ToolBytes calls add with the bytes of a registered role. Its contracts count for its owner, a proposed contract for
// the owner of the call. A nil tool has none.
func ToolBytes(t *agent.Tool, add func(owner string, b Bytes)) {
	if t == nil {
		return
	}
	n := roleFixed + contractBytes(&t.Contract)
	for name, c := range t.Methods {
		n += int64(len(name)) + contractBytes(&c)
	}
	if p := t.Proposals; p != nil {
		for _, checked := range p.Rejected {
			n += int64(len(checked))
		}
		for i := range p.Open {
			o := &p.Open[i]
			add(o.Owner, Bytes{Tools: roleFixed + int64(len(o.ID)+len(o.Checked)+len(o.By)) +
				contractBytes(&o.Contract)})
		}
	}
	add(t.Owner, Bytes{Tools: n})
}

func contractBytes(c *agent.Contract) int64 {
	return int64(len(c.Purpose)) + jsonBytes(c.Deliverable, c.Acceptance, c.FailurePolicy, c.Signature)
}
