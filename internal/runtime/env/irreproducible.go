package env

import (
	"sync"
)

// FailedProofs caches inputs for which no fixture could be proved, so that not every call tries again. The zero value
// is ready.
type FailedProofs struct {
	mu   sync.Mutex
	keys map[string]bool // guarded by mu
}

// maxFailedProofs bounds the cache; it is emptied when full.
const maxFailedProofs = 4096

// Has reports whether no fixture could be proved for the input.
func (p *FailedProofs) Has(key string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.keys[key]
}

// Add records that no fixture could be proved for the input.
func (p *FailedProofs) Add(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.keys == nil || len(p.keys) >= maxFailedProofs {
		p.keys = map[string]bool{}
	}
	p.keys[key] = true
}
