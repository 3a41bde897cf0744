package predict

import (
	"encoding/json"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Audit actions from which the ledger of named signatures is built.
const (
	opSignaturePut    = "signature.put"
	opSignatureDelete = "signature.delete"
)

// applyNamed applies one audit entry to the signatures, keyed by name.
func applyNamed(all map[string]Named, e agent.AuditEntry) {
	switch e.Action {
	case opSignaturePut:
		var s Named
		if json.Unmarshal(e.After, &s) == nil {
			all[e.Target] = s
		}
	case opSignatureDelete:
		delete(all, e.Target)
	}
}
