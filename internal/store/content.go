package store

import (
	"encoding/json"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Contents keeps results by reference and evicts the least recently used ones first. The zero value is empty. It is not
// safe for concurrent use.
type Contents struct {
	Entries []Kept // least recently used first
	bytes   int    // of all values
}

// Kept is a stored result.
type Kept struct {
	Content
	Sessions []string `json:"sessions"` // the sessions that stored it
}

func (c *Contents) find(ref string) int {
	return slices.IndexFunc(c.Entries, func(e Kept) bool { return e.Ref == ref })
}

// Get returns the result under the reference and marks it as used.
func (c *Contents) Get(ref string) (json.RawMessage, bool) {
	i := c.find(ref)
	if i < 0 {
		return nil, false
	}
	e := c.Entries[i]
	c.Entries = append(slices.Delete(c.Entries, i, i+1), e)
	return e.Value, true
}

// Put stores a result and evicts the least recently used ones that exceed the limits. The value must not change
// afterwards.
func (c *Contents) Put(v Content, session string, limit agent.RetentionPolicy) {
	e := Kept{Content: v}
	if i := c.find(v.Ref); i >= 0 {
		e.Sessions = c.Entries[i].Sessions
		c.drop(i)
	}
	if !slices.Contains(e.Sessions, session) {
		e.Sessions = append(slices.Clip(e.Sessions), session)
	}
	c.Entries = append(c.Entries, e)
	c.bytes += len(e.Value)
	for len(c.Entries) > 0 && (limit.ContentEntries > 0 && len(c.Entries) > limit.ContentEntries ||
		limit.ContentBytes > 0 && c.bytes > limit.ContentBytes) {
		c.drop(0)
	}
}

// Restore adds an entry that was kept before as the most recently used one. It does not apply limits.
func (c *Contents) Restore(e Kept) {
	c.Entries = append(c.Entries, e)
	c.bytes += len(e.Value)
}

func (c *Contents) drop(i int) {
	c.bytes -= len(c.Entries[i].Value)
	c.Entries = slices.Delete(c.Entries, i, i+1)
}

// Forget drops the results that only this session stored.
func (c *Contents) Forget(session string) {
	for i := len(c.Entries) - 1; i >= 0; i-- {
		e := &c.Entries[i]
		e.Sessions = slices.DeleteFunc(slices.Clone(e.Sessions), func(s string) bool { return s == session })
		if len(e.Sessions) == 0 {
			c.drop(i)
		}
	}
}
