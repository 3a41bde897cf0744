package runtime

import (
	"fmt"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

func seeAll(t store.RankedTool) (store.RankedTool, bool) { return t, true }

// Of thousands of tools those are shown that share a word with the task, in the order of their rank, and never more than three
// that do not.
func TestRelatedTools(t *testing.T) {
	t.Parallel()
	var ranked []store.RankedTool
	for i := range 1000 {
		ranked = append(ranked, store.RankedTool{Tool: agent.Tool{Role: fmt.Sprintf("thing_%d", i)}})
	}
	ranked[3].Tool.Purpose = "finds movies that play nearby"
	ranked[500].Methods = []string{"rateMovie"}
	ranked[900].Tool.Role = "film club"
	roles := func(own, task string, limit int) string {
		words := map[string]bool{}
		addWords(words, own)
		addWords(words, task)
		var out []string
		for _, r := range relatedTools(ranked, wanted{own, words, limit, seeAll, maxLooked}) {
			out = append(out, r.Tool.Role)
		}
		return strings.Join(out, " ")
	}
	for _, c := range []struct{ own, task, want string }{
		{"movie night", "suggest", "thing_0 thing_3 thing_500"},
		{"film club", "a movie for all members", "thing_3 thing_500 film club"},
		{"tax", "income", "thing_0 thing_1 thing_3"},
		{"the list", "get all values", "thing_0 thing_1 thing_3"},
	} {
		if got := roles(c.own, c.task, 12); got != c.want {
			t.Errorf("%s, %s: got %s, want %s", c.own, c.task, got, c.want)
		}
	}
	if got := roles("thing", "x", 12); got != "thing_0 thing_1 thing_2 thing_3 thing_4 thing_5 thing_6 thing_7 thing_8 thing_9 thing_10 thing_11" {
		t.Errorf("got %s", got)
	}
	ranked[700].Tool.Purpose = "counts rain drops" // of the unrelated the one that says what it is for
	if got := roles("tax", "income", 12); got != "thing_0 thing_3 thing_700" {
		t.Errorf("got %s", got)
	}
	if got := roles("tax", "income", 1); got != "thing_3" {
		t.Errorf("got %s", got)
	}
	if got := relatedTools(nil, wanted{"x", nil, 12, seeAll, maxLooked}); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}
