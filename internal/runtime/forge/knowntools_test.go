package forge

import (
	"fmt"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

func neverWeak(*store.RankedTool) float64 { return 0 }

func seeAll(t store.RankedTool) (store.RankedTool, bool) { return t, true }

// Of thousands of tools, those are shown that share a word with the task, by utility times relevance. If there are
// fewer than five, the best others are added.
func TestRelatedTools(t *testing.T) {
	t.Parallel()
	var ranked []store.RankedTool
	for i := range 1000 {
		ranked = append(ranked, store.RankedTool{Tool: agent.Tool{Role: fmt.Sprintf("thing_%d", i)}})
	}
	ranked[3].Tool.Purpose = "finds movies that play nearby"
	ranked[500].Methods = []string{"rateMovie"}
	ranked[900].Tool.Role = "film club"
	roles := func(own, asked string, limit int) string {
		words := task{}
		words.add("the weather in Oslo", 1)
		words.add(own, 2)
		words.add(asked, 2)
		var out []string
		for _, r := range relatedTools(ranked, wanted{own, nil, words, limit, seeAll, maxLooked, neverWeak}) {
			name := r.Tool.Role
			if r.relevance == 0 {
				name = "(" + name + ")"
			}
			out = append(out, name)
		}
		return strings.Join(out, " ")
	}
	check := func(own, asked string, limit int, want string) {
		t.Helper()
		if got := roles(own, asked, limit); got != want {
			t.Errorf("%s, %s: got %s, want %s", own, asked, got, want)
		}
	}
	check("movie night", "suggest", 12, "thing_3 thing_500 (thing_0) (thing_1) (thing_2)")
	check("film club", "a movie for all members", 12, "film club thing_3 thing_500 (thing_0) (thing_1)")
	check("tax", "income", 12, "(thing_3) (thing_0) (thing_1) (thing_2) (thing_4)")
	check("the list", "get all values", 12, "(thing_3) (thing_0) (thing_1) (thing_2) (thing_4)")
	check("thing", "x", 12,
		"thing_0 thing_1 thing_2 thing_3 thing_4 thing_5 thing_6 thing_7 thing_8 thing_9 thing_10 thing_11")
	ranked[700].Tool.Purpose = "counts rain drops" // a tool with a purpose comes before tools without one
	ranked[2].Score = 1
	check("tax", "income", 12, "(thing_3) (thing_700) (thing_2) (thing_0) (thing_1)")
	check("tax", "income", 1, "(thing_3)")
	ranked[500].Score, ranked[3].State = 0.5, agent.StateDurable // which breaks no order of worth
	check("movie night", "suggest", 2, "thing_500 thing_3")
	ranked[999].Tool.Purpose = "reports the weather of a city" // which a text of the arguments names
	check("plan", "day", 12, "thing_999 (thing_3) (thing_700) (thing_2) (thing_500)")
	if got := relatedTools(nil, wanted{"x", nil, nil, 12, seeAll, maxLooked, neverWeak}); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}
