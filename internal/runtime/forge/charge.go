package forge

import (
	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/spend"
	"github.com/recurgentd/recurgentd/internal/runtime/storage"
)

// CapOfOwner reports whether the call failed because its owner reached a spending cap or a storage share.
func CapOfOwner(o *agent.Outcome) bool {
	return o != nil && (o.ErrorType == agent.ErrBudgetExceeded && o.Metadata["scope"] == spend.ScopeOwner ||
		storage.IsFull(o) && o.Metadata["share"] == storage.ShareOwner)
}

// ModelOut reports whether the outcome means that no model could be asked: the provider failed, or a cap or a storage
// share was used up.
func ModelOut(o *agent.Outcome) bool {
	return o.ErrorType == agent.ErrProvider || storage.IsFull(o) || o.ErrorType == agent.ErrBudgetExceeded &&
		!o.Authored && o.Metadata["resets_at"] != nil
}
