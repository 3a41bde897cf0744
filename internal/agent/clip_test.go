package agent_test

import (
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
)

func TestClip(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"": "", "abc": "abc", "abcd": "abcd", "abcde": "abcd…", "äöüß": "äöüß",
		"äöüß!": "äöüß…"} {
		if got := agent.Clip(in, 4); got != want {
			t.Errorf("Clip(%q) = %q, want %q", in, got, want)
		}
	}
}
