package operator

import (
	"context"
	"math"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// maxStarving bounds the starving tools that a report names.
const maxStarving = 20

// KnownTools reports whether new tools starve. The ranking gives new tools no bonus, so prompts may never show them,
// and then no program calls them. It counts what prompts showed, not ranks: a prompt selects by the subject of its
// task.
type KnownTools struct {
	Limit          int      `json:"limit"`            // tools in a prompt, at most
	Tools          int      `json:"tools"`            // registered
	New            int      `json:"new"`              // tools registered in the window
	NewShown       int      `json:"new_shown"`        // new tools that a prompt showed in the window
	NewCalled      int      `json:"new_called"`       // new tools that a program called in the window
	NewStarving    int      `json:"new_starving"`     // new tools neither shown nor called
	Starving       []string `json:"starving"`         // roles of starving tools, at most 20, the best ranked first
	Delegated      int      `json:"delegated_calls"`  // calls by programs in the window
	DelegatedToNew int      `json:"delegated_to_new"` // calls of new tools among them
}

// knownTools builds the report from the registry and the calls of the window, in any order.
func (o *Operator) knownTools(ctx context.Context, since time.Time, calls []agent.LogEntry) (KnownTools, error) {
	k := KnownTools{Limit: o.calls.Policy().KnownToolsPromptLimit, Starving: []string{}}
	ranked, err := o.store.RankTools(ctx, o.o.Now(), math.MaxInt32)
	if err != nil {
		return k, err
	}
	delegated, shown := map[string]int{}, map[string]bool{} // by role
	for i := range calls {
		for _, role := range calls[i].PromptTools {
			shown[role] = true
		}
		if calls[i].Depth > 0 {
			delegated[calls[i].Role]++
			k.Delegated++
		}
	}
	k.Tools = len(ranked)
	for _, t := range ranked {
		if t.Tool.CreatedAt.Before(since) {
			continue
		}
		k.New++
		k.DelegatedToNew += delegated[t.Tool.Role]
		called := delegated[t.Tool.Role] > 0
		if shown[t.Tool.Role] {
			k.NewShown++
		}
		if called {
			k.NewCalled++
		}
		if shown[t.Tool.Role] || called {
			continue
		}
		if k.NewStarving++; len(k.Starving) < maxStarving {
			k.Starving = append(k.Starving, t.Tool.Role)
		}
	}
	return k, nil
}
