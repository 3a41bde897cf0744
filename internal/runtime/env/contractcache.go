package env

import (
	"sync"

	"github.com/recurgentd/recurgentd/internal/contract"
)

// Contracts caches compiled contracts by content: a warm call neither canonicalises nor compiles one. The zero
// value is ready.
type Contracts struct {
	once  sync.Once
	cache *contract.Cache
}

// Resolve merges and compiles the layers of a contract.
func (cs *Contracts) Resolve(l contract.Layers) *contract.Resolved {
	cs.once.Do(func() { cs.cache = contract.NewCache(0) })
	return cs.cache.Resolve(l)
}
