package store

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// refs lists the kept refs, the least recently used first, each with the sessions that stored it.
func refs(c *Contents) string {
	var out []string
	for _, e := range c.Entries {
		out = append(out, e.Ref+"("+strings.Join(e.Sessions, ",")+")")
	}
	return strings.Join(out, " ")
}

func TestContents(t *testing.T) {
	t.Parallel()
	put := func(c *Contents, ref, session string, limit agent.RetentionPolicy) {
		c.Put(Content{Ref: ref, Value: json.RawMessage(`"four"`)}, session, limit) // 6 bytes
	}
	for _, tt := range []struct {
		name  string
		limit agent.RetentionPolicy
		want  string
	}{
		{"no limit", agent.RetentionPolicy{}, "a(s1) b(s1) c(s2)"},
		{"as many as there are", agent.RetentionPolicy{ContentEntries: 3, ContentBytes: 18}, "a(s1) b(s1) c(s2)"},
		{"fewer entries", agent.RetentionPolicy{ContentEntries: 2}, "b(s1) c(s2)"},
		{"fewer bytes", agent.RetentionPolicy{ContentBytes: 17}, "b(s1) c(s2)"},
		{"too small for one", agent.RetentionPolicy{ContentBytes: 5}, ""},
	} {
		var c Contents
		put(&c, "a", "s1", tt.limit)
		put(&c, "b", "s1", tt.limit)
		put(&c, "c", "s2", tt.limit)
		if got := refs(&c); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}

	limit := agent.RetentionPolicy{ContentBytes: 18}
	var c Contents
	put(&c, "a", "s1", limit)
	put(&c, "b", "s2", limit)
	put(&c, "a", "s2", limit) // another session's a is the same one, used last
	if got := refs(&c); got != "b(s2) a(s1,s2)" {
		t.Errorf("stored twice: got %s", got)
	}
	if _, ok := c.Get("b"); !ok || refs(&c) != "a(s1,s2) b(s2)" {
		t.Errorf("read: got %v, %s", ok, refs(&c))
	}
	put(&c, "c", "s1", limit) // the bytes of a, which was stored twice, count once
	if got := refs(&c); got != "a(s1,s2) b(s2) c(s1)" {
		t.Errorf("up to the last byte: got %s", got)
	}
	c.Forget("s1")
	if got := refs(&c); got != "a(s2) b(s2)" {
		t.Errorf("without s1: got %s", got)
	}
	c.Forget("s2")
	if got := refs(&c); got != "" {
		t.Errorf("without both: got %s", got)
	}
	if _, ok := c.Get("a"); ok {
		t.Error("what was forgotten is there")
	}
}
