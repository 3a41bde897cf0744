package contract

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"sync"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Resolved is a contract after Merge, with all that calls ask of it. It is shared and must not be changed.
type Resolved struct {
	Contract    *agent.Contract // nil for none
	Source      string          // none, hash, fields, merged
	Fingerprint string          // of the whole contract, or "none"
	Checked     string          // of its machine-checked parts, or "none"
	Written     string          // Checked of earlier versions, which differs where the parts are written in another way
	// the deliverable is not what the registry has: the call, its session or a delegation brought it
	Own     bool
	Schema  *Schema // never nil; Empty where nothing is checked
	Words   Words
	Ignored []InvalidError // senseless constraints that were left out; nobody is held to them
}

// A Cache keeps resolved contracts, each deliverable compiled once, whatever layers it came from. It is bounded and safe for concurrent use. The zero Cache is
// not usable: NewCache makes one.
type Cache struct {
	half int // entries in a generation; two generations are kept

	mu         sync.RWMutex
	young, old map[string]*Resolved // guarded by mu
	compiled   map[string]*Resolved // of young, by what is machine-checked; guarded by mu
	size       int                  // bytes of the young keys; guarded by mu
	none       *Resolved            // set once
	keys       sync.Pool
}

// maxCachedBytes bounds the keys of one generation of a Cache.
const maxCachedBytes = 4 << 20

// NewCache returns a Cache of at most about n contracts; 1024 when n is 0.
func NewCache(n int) *Cache {
	if n <= 0 {
		n = 1024
	}
	return &Cache{half: max(n/2, 1), young: map[string]*Resolved{}, old: map[string]*Resolved{},
		compiled: map[string]*Resolved{},
		none: &Resolved{Source: SourceNone, Fingerprint: agent.FingerprintNone, Checked: agent.FingerprintNone,
			Written: agent.FingerprintNone, Schema: &Schema{}, Words: (&Layers{}).words(nil)},
		keys: sync.Pool{New: func() any { b := make([]byte, 0, 1024); return &b }}}
}

// Resolve merges the layers and compiles the result, or hands out what it compiled before; that costs no allocation.
// What makes no sense is left out and listed in Ignored, a deliverable that cannot be used at all as a whole: the door
// where a contract comes in is where it is refused (Compile), not the calls that come after.
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
	if l.ByProgram { // the same layers in another order have another source
		key = append(key, 1)
	}
	*buf = key
	if r := c.find(key); r != nil {
		return r
	}
	return c.keep(string(key), c.resolve(l))
}

// deliverableOf is the fingerprint of what a value is held to: a signature, which is of the turns, is left out.
func deliverableOf(c *agent.Contract) string {
	if c == nil {
		return agent.FingerprintNone
	}
	return CheckedFingerprint(&agent.Contract{Deliverable: c.Deliverable})
}

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
	case errors.As(err, &unusable):
		r.Ignored = append(r.Ignored, *unusable)
	}
	return r
}

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

// keep stores r, unless another call stored the same meanwhile.
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

// appendLayer appends what the contract says, each part with its length before it, so that no two contracts share a key.
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
