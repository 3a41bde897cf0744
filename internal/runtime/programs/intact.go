package programs

import (
	"sync"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Intact caches the texts of programs whose checksums were verified, so a warm call does not hash its program
// again. The zero value is ready.
type Intact struct {
	mu    sync.RWMutex
	texts map[string]string // by checksum; guarded by mu
}

// Has reports whether the generation's text matches its checksum.
func (c *Intact) Has(g *agent.Generation) bool {
	const most = 1024 // texts of at most 64 KiB each; the store's cache usually shares their memory
	c.mu.RLock()
	text, known := c.texts[g.CodeChecksum]
	c.mu.RUnlock()
	if known && text == g.Code { // usually the same memory, which compares fast
		return true
	}
	if agent.Checksum(g.Code) != g.CodeChecksum {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.texts == nil || len(c.texts) >= most {
		c.texts = map[string]string{}
	}
	c.texts[g.CodeChecksum] = g.Code
	return true
}
