package tools

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// In the same lifecycle state a tool that answered 20 of 20 calls and was just used precedes one that answered 10 of
// 18: it has the higher score in GET /v1/tools and comes first in the prompt.
func TestSeed001Line237UtilityOrdersWithinAState(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"half.m": {rig.ProgMayPanic}, "whole.m": {rig.ProgMayPanic}})
	m.Otherwise(rig.ProgAdd)
	d := rig.Start(t, m)
	d.Policy(map[string]any{"repair_enabled": false, "max_generation_attempts": 1,
		"degraded": map[string]any{"min_failures": 20}})
	half, whole := d.Session("half"), d.Session("whole")
	d.Call(half, "m", 1)
	for range 8 {
		d.Call(half, "m", "bad")
		d.Call(half, "m", 1)
	}
	d.Call(half, "m", 1)
	for range 20 {
		d.Call(whole, "m", 1)
	}
	score := map[string]float64{}
	state := map[string]any{}
	for _, tool := range d.List("/v1/tools") {
		role := tool["role"].(string)
		score[role], state[role] = tool["score"].(float64), tool["lifecycle_state"]
		if one := d.Get("/v1/tools/" + role); one["lifecycle_state"] != state[role] {
			t.Errorf("%s: %v alone, %v in the list", role, one["lifecycle_state"], state[role])
		}
	}
	if state["half"] != "probation" || state["whole"] != "probation" || score["whole"] != 1 ||
		fmt.Sprintf("%.2f", score["half"]) != "0.56" {
		t.Errorf("states %v, scores %v", state, score)
	}
	d.Call(d.Session("other"), "add", 1, 2)
	prompt := m.LastQuestion()
	text := prompt.System + prompt.User
	known := text[strings.Index(text, "<known_tools>"):]
	if first, second := strings.Index(known, "whole"), strings.Index(known, "half"); first < 0 || second < first {
		t.Errorf("whole stands at %d, half at %d of:\n%s", first, second, known)
	}
}

// The trends report counts starving tools: new ones that prompts do not show and that no program called.
func TestSeed001Line443TrendsShowStarvingTools(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"parent.ask": {rig.Program(
		"\treturn call.Tool(\"hidden\").Call(\"m\", 1).Value, nil")}})
	m.Otherwise(rig.ProgGiven)
	d, ahead := rig.StartAhead(t, m)
	d.Policy(map[string]any{"known_tools_prompt_limit": 2})
	for _, role := range []string{"old one", "old two"} {
		d.Do(201, "PUT", "/v1/tools/"+url.PathEscape(role), map[string]any{"purpose": "old"})
		for range 3 {
			d.Call(d.Session(role), "m", 1)
		}
	}
	ahead("48h")
	for _, role := range []string{"old one", "old two"} {
		d.Call(d.Session(role), "m", 1)
	}
	for _, role := range []string{"hidden", "starved"} { // registered by a person, and never used
		d.Do(201, "PUT", "/v1/tools/"+role, map[string]any{"purpose": "new"})
	}
	trend := func() map[string]any { return d.Get("/v1/reports/trends?window=24h")["known_tools"].(map[string]any) }
	k := trend()
	if k["limit"] != 2.0 || k["tools"] != 4.0 || k["new"] != 2.0 || k["new_shown"] != 0.0 || k["new_starving"] != 2.0 ||
		k["delegated_calls"] != 0.0 {
		t.Errorf("before a use: %v", k)
	}
	d.WantValue(d.Call(d.Session("old one"), "m", 2), 2, "persisted")
	d.Call(d.Session("parent"), "ask", "for it")
	k = trend()
	var starving []string
	for _, role := range k["starving"].([]any) {
		starving = append(starving, role.(string))
	}
	slices.Sort(starving)
	if k["delegated_calls"] != 1.0 || k["delegated_to_new"] != 1.0 || k["new_called"] != 1.0 ||
		!slices.Contains(starving, "starved") || slices.Contains(starving, "hidden") {
		t.Errorf("after a use: %v", k)
	}
	d.Policy(map[string]any{"known_tools_prompt_limit": 12})
	asked := d.LogOf(d.Call(d.Session("starved parent"), "ask", "for it"))["prompt_tools"].([]any)
	if k = trend(); !slices.Contains(asked, any("starved")) || k["new_starving"] != 1.0 ||
		!rig.Equal([]any{"starved parent"}, k["starving"]) {
		t.Errorf("after a prompt that shows %v: %v", asked, k)
	}
}

// Of six roles the one whose purpose is the question stands first and whole, and the others by their names alone.
func TestKnownToolsThatMatter(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{})
	m.Otherwise(rig.ProgGiven)
	d := rig.Start(t, m)
	for role, purpose := range map[string]string{"anna": "converts currencies", "bert": "plans journeys",
		"carl": "rhymes in German", "dora": "forecasts the weather of a city", "emil": "draws maps",
		"fred": "mixes drinks"} {
		d.Do(201, "PUT", "/v1/tools/"+role, map[string]any{"purpose": purpose})
	}
	d.Call(d.Session("helper"), "answer", "What will the weather be tomorrow?")
	_, known, _ := strings.Cut(m.LastQuestion().User, "<known_tools>")
	known, _, _ = strings.Cut(known, "</known_tools>")
	tools := strings.Split(strings.TrimSpace(known), "\n")[1:]
	if len(tools) != 5 || tools[0] != "- dora: forecasts the weather of a city" ||
		strings.Count(strings.Join(tools[1:], "\n"), ":") != 0 {
		t.Errorf("the known tools are\n%s", known)
	}
}
