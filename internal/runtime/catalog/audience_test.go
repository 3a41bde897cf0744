package catalog

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// A saying is the text that a model wrote for one generation, with everything that may let others read it.
type saying struct {
	role, method, generation, owner string
}

func (s saying) word() string {
	return fmt.Sprintf("word%s%s%s%sx", s.owner, s.role, s.method, s.generation)
}

// vouched reports whether everybody may read the text, by the stored data.
func (s saying) vouched(t *testing.T, shelf *shelf) bool {
	tool, _ := shelf.store.Tool(t.Context(), s.role)
	a, err := shelf.store.Artifact(t.Context(), s.role, s.method)
	if err != nil || a.Find(s.generation) == nil {
		return tool.ByPerson
	}
	g := a.Find(s.generation)
	return tool.ByPerson || g.Approved || g.State == agent.StateDurable && len(g.Callers) == 2
}

// Whatever happens to methods, no listing, search or error shows text of another owner's model before somebody vouched
// for it, and every owner is shown the methods whose first program was theirs.
func TestNobodyIsShownAnothersWords(t *testing.T) {
	t.Parallel()
	owners := []string{"ann", "ben", "eve"}
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 7))
		s := newShelf(t)
		var said []saying
		made := map[string]string{} // owner of each method, by title
		for step := range 60 {
			role, method := "r"+fmt.Sprint(r.IntN(2)), "m"+fmt.Sprint(r.IntN(3))
			if a, err := s.store.Artifact(t.Context(), role, method); err != nil || r.IntN(4) == 0 {
				x := saying{role, method, "gen-1", owners[r.IntN(len(owners))]}
				if err == nil {
					x.generation = a.NextGenerationID()
				} else {
					made[role+"."+method] = x.owner
				}
				said = append(said, x)
				s.forge(x)
			} else {
				s.happens(r, a, owners)
			}
			for _, owner := range owners {
				s.holds(t, fmt.Sprintf("seed %d, step %d", seed, step), owner, said, made)
			}
		}
	}
}

// forge gives the method another program, with distinct words in every text.
func (s *shelf) forge(x saying) {
	word := x.word()
	f := &agent.Interface{Summary: "it " + word, Origin: agent.OriginDeclared,
		Parameters: []agent.Parameter{{Name: "p_" + word, Type: "string", Description: word}},
		Returns:    json.RawMessage(`{"type":"string","description":"` + word + `"}`)}
	s.change(x.role, x.method,
		agent.ArtifactChange{Generation: &agent.Generation{ID: x.generation, Trigger: "regenerate:x", Owner: x.owner,
			Code: word, CodeChecksum: agent.Checksum(word),
			RuntimeVersion: agent.ABI, Cacheable: true, Interface: f,
			Facts: json.RawMessage(`{"imports":[],"uses_args":true}`)}})
}

// happens makes a random change to a method, as calls and people do.
func (s *shelf) happens(r *rand.Rand, a *agent.Artifact, owners []string) {
	some := a.Generations[r.IntN(len(a.Generations))].ID
	yes, no := true, false
	switch r.IntN(6) {
	case 0, 1, 2:
		s.change(a.Role, a.MethodName, agent.ArtifactChange{Result: agent.ClassOK, ResultOf: some,
			Caller: owners[r.IntN(len(owners))]})
	case 3:
		s.change(a.Role, a.MethodName,
			agent.ArtifactChange{State: []string{agent.StateDurable, agent.StateProbation}[r.IntN(2)], ResultOf: some})
	case 4:
		s.change(a.Role, a.MethodName, agent.ArtifactChange{Approve: []*bool{&yes, &no, &no}[r.IntN(3)],
			ApproveOf: some})
	case 5:
		t := agent.Tool{Role: a.Role, ByPerson: r.IntN(4) == 0, CreatedAt: time.Now()}
		if !t.ByPerson {
			t.Owner, t.Purpose = "eve", "purposes of wordeve"
		}
		if _, err := s.store.PutTool(s.t.Context(), t, store.AnyRevision, nil); err != nil {
			s.t.Fatal(err)
		}
	}
}

// holds checks what the owner is shown.
func (s *shelf) holds(t *testing.T, when, owner string, said []saying, made map[string]string) {
	who := agent.Reader{Owner: owner}
	tools, _, err := s.List(t.Context(), who, "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	found, _ := s.Search(t.Context(), who, "it word", 1000)
	shown, titles := "", []string{}
	for _, tool := range append(tools, found...) {
		shown += fmt.Sprintf("%s %s %s %s\n", tool.Description, tool.Signature, tool.Parameters, tool.Returns)
		titles = append(titles, tool.Title)
	}
	for _, x := range said {
		if x.owner != owner && strings.Contains(shown, x.word()) && !x.vouched(t, s) {
			t.Fatalf("%s: %s is shown what %s's model wrote: %s", when, owner, x.owner, shown)
		}
	}
	if owner != "eve" && strings.Contains(shown, "wordeve\n") {
		t.Fatalf("%s: %s is shown the purpose that eve's call brought: %s", when, owner, shown)
	}
	for title, by := range made {
		role, method, _ := strings.Cut(title, ".")
		if _, err := s.Find(t.Context(), who, role+"__"+
			method); by == owner && (err != nil || !slices.Contains(titles, title)) {
			t.Fatalf("%s: %s is not shown %s: %v", when, owner, title, err)
		}
	}
}

// Data of an earlier version has no owner. Readers with the scope operate see it, others once somebody vouches for it.
func TestMethodsOfEarlierVersions(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.put("r", "old", &agent.Interface{Summary: "old words", Parameters: []agent.Parameter{}})
	count := func(r agent.Reader) int {
		tools, _, err := s.List(t.Context(), r, "", 10)
		if err != nil {
			t.Fatal(err)
		}
		return len(tools)
	}
	ann, operator, visitor := agent.Reader{Owner: "ann"}, agent.Reader{Owner: "op", Operates: true},
		agent.Reader{Owner: "default/local", Operates: true}
	if count(ann) != 0 || count(operator) != 1 || count(anybody) != 1 || count(visitor) != 1 ||
		count(agent.Reader{}) != 0 {
		t.Errorf("ann is shown %d, who operates %d, a daemon without tokens %d and %d, nobody %d", count(ann),
			count(operator), count(anybody), count(visitor), count(agent.Reader{}))
	}
	s.change("r", "old", agent.ArtifactChange{State: agent.StateDurable})
	for _, caller := range []string{"ann", "ann", "ben"} {
		if count(ann) != 0 {
			t.Error("ann is shown it before two had called it")
		}
		s.change("r", "old", agent.ArtifactChange{Result: agent.ClassOK, Caller: caller})
	}
	if count(ann) != 1 {
		t.Error("durable, and called by two, it is not shown to ann")
	}
}
