package contract

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"sync"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Resolved is a merged contract with everything that a call needs of it. It is shared and must not be changed.
type Resolved struct {
	Contract    *agent.Contract // nil if there is none
	Source      string          // sourceNone, sourceHash, sourceFields or sourceMerged
	Fingerprint string          // of the whole contract, or "none"
	Checked     string          // of its machine-checked parts, or "none"; see CheckedFingerprint
	Written     string          // WrittenFingerprint, which earlier versions recorded as Checked
	// the deliverable differs from the registered one, because the call, its session or a delegation brought it
	Own     bool
	Schema  *Schema // never nil; Empty if nothing is checked
	Words   Words
	Ignored []InvalidError // invalid constraints, which are not checked
}

// A Cache keeps resolved contracts by their layers, and compiles each deliverable once, whatever layers it came from.
// It is bounded and safe for concurrent use. Use NewCache: the zero Cache does not work.
type Cache struct {
	half int // contracts in a generation; two generations are kept

	mu         sync.RWMutex
	young, old map[string]*Resolved // by the bytes of the layers (appendLayer); guarded by mu
	compiled   map[string]*Resolved // contracts of young by Checked; guarded by mu
	size       int                  // bytes of the keys of young; guarded by mu
	none       *Resolved            // result without layers; set once
	keys       sync.Pool            // of *[]byte, buffers for keys
}

// maxCachedBytes bounds the keys of one generation, in bytes.
const maxCachedBytes = 4 << 20

// NewCache returns a Cache of about n contracts at most; 0 means 1024.
func NewCache(n int) *Cache {
	if n <= 0 {
		n = 1024
	}
	return &Cache{half: max(n/2, 1), young: map[string]*Resolved{}, old: map[string]*Resolved{},
		compiled: map[string]*Resolved{},
		none: &Resolved{Source: sourceNone, Fingerprint: agent.FingerprintNone, Checked: agent.FingerprintNone,
			Written: agent.FingerprintNone, Schema: &Schema{}, Words: (&Layers{}).words(nil)},
		keys: sync.Pool{New: func() any { b := make([]byte, 0, 1024); return &b }}}
}

// Resolve merges the layers and compiles the result. A cached result costs no allocation. Invalid constraints are left
// out and listed in Ignored, even a whole deliverable: a call must not fail because of them. Contracts are refused
// where they enter the daemon (Compile).
func (c *Cache) Resolve(l Layers) *Resolved {
	if l.Role == nil && l.Method == nil && l.Delegated == nil && l.Session == nil && l.Call == nil {
		return c.none
	}
	buf := c.keys.Get().(*[]byte)
	defer c.keys.Put(buf)
	key := (*buf)[:0]
	for _, layer := range l.ordered() {
		key = appendLayer(key, layer)
	}
	if l.ByProgram { // ByProgram changes the source of the merged contract
		key = append(key, 1)
	}
	*buf = key
	if r := c.find(key); r != nil {
		return r
	}
	return c.keep(string(key), c.resolve(l))
}

// deliverableOf returns the fingerprint of the deliverable alone. A signature is left out, since it does not bind a
// value.
func deliverableOf(c *agent.Contract) string {
	if c == nil {
		return agent.FingerprintNone
	}
	return CheckedFingerprint(&agent.Contract{Deliverable: c.Deliverable})
}

// resolve merges and compiles. It reuses the schema of another contract with equal checked parts.
func (c *Cache) resolve(l Layers) *Resolved {
	merged, source := Merge(l)
	r := &Resolved{Contract: merged, Source: source, Fingerprint: Fingerprint(merged),
		Checked: CheckedFingerprint(merged), Written: WrittenFingerprint(merged), Schema: &Schema{},
		Words: l.words(merged)}
	if merged == nil {
		return r
	}
	registered, _ := Merge(Layers{Role: l.Role, Method: l.Method})
	r.Own = !absent(merged.Deliverable) && deliverableOf(merged) != deliverableOf(registered)
	c.mu.RLock()
	same := c.compiled[r.Checked]
	c.mu.RUnlock()
	if same != nil {
		r.Schema, r.Ignored = same.Schema, same.Ignored
		return r
	}
	schema, ignored, err := compile(merged.Deliverable, mode{tolerant: true, refs: true})
	r.Ignored = ignored
	var unusable *InvalidError
	switch {
	case err == nil:
		r.Schema = schema
	// the call goes on without any check of its value
	case errors.As(err, &unusable):
		r.Ignored = append(r.Ignored, *unusable)
	}
	return r
}

// find returns the cached contract, or nil. One of the old generation moves to the young one, since it is in use.
func (c *Cache) find(key []byte) *Resolved {
	c.mu.RLock()
	r, hit := c.young[string(key)]
	if !hit {
		r = c.old[string(key)]
	}
	c.mu.RUnlock()
	if r != nil && !hit {
		return c.keep(string(key), r) // still in use: it moves on to the next generation
	}
	return r
}

// keep caches r, and returns the contract that is cached under the key, which another goroutine may have stored first.
// A very long key is not cached. A full young generation becomes the old one, which is dropped.
func (c *Cache) keep(key string, r *Resolved) *Resolved {
	if len(key) > maxCachedBytes/4 {
		return r
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if first := c.young[key]; first != nil {
		return first
	}
	if len(c.young) >= c.half || c.size+len(key) > maxCachedBytes {
		c.old, c.young, c.size = c.young, map[string]*Resolved{}, 0
		c.compiled = map[string]*Resolved{}
	}
	c.young[key] = r
	c.compiled[r.Checked] = r
	c.size += len(key)
	return r
}

// appendLayer appends the contract to the key. Each part is preceded by its length, so different contracts have
// different keys.
func appendLayer(key []byte, k *agent.Contract) []byte {
	if k == nil {
		return append(key, 0)
	}
	key = append(key, 1)
	key = binary.AppendUvarint(key, uint64(len(k.Purpose)))
	key = append(key, k.Purpose...)
	for _, part := range [4]json.RawMessage{k.Deliverable, k.Acceptance, k.FailurePolicy, k.Signature} {
		key = binary.AppendUvarint(key, uint64(len(part)))
		key = append(key, part...)
	}
	return key
}
