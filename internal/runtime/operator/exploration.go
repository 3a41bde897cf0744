package operator

import (
	"context"
	"math"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// maxStarving bounds the starving tools that a report names.
const maxStarving = 20

// KnownTools shows whether new tools starve. New tools get no bonus in the ranking, so prompts may never show them, and then
// no program calls them.
type KnownTools struct {
	Limit          int      `json:"limit"`            // tools that a prompt shows
	Tools          int      `json:"tools"`            // registered
	New            int      `json:"new"`              // tools registered in the window
	NewShown       int      `json:"new_shown"`        // new tools whose present rank is within the limit
	NewCalled      int      `json:"new_called"`       // new tools that a program called in the window
	NewStarving    int      `json:"new_starving"`     // new tools neither shown nor called
	Starving       []string `json:"starving"`         // roles of starving tools, at most 20, the best ranked first
	Delegated      int      `json:"delegated_calls"`  // calls by programs in the window
	DelegatedToNew int      `json:"delegated_to_new"` // of these, calls of new tools
}

// knownTools builds the report from the present ranking and the calls of the window, in any order.
func (o *Operator) knownTools(ctx context.Context, since time.Time, calls []agent.LogEntry) (KnownTools, error) {
	k := KnownTools{Limit: o.calls.Policy().KnownToolsPromptLimit, Starving: []string{}}
	ranked, err := o.store.RankTools(ctx, o.o.Now(), math.MaxInt32)
	if err != nil {
		return k, err
	}
	delegated := map[string]int{} // by role
	for i := range calls {
		if calls[i].Depth > 0 {
			delegated[calls[i].Role]++
			k.Delegated++
		}
	}
	k.Tools = len(ranked)
	for place, t := range ranked {
		if t.Tool.CreatedAt.Before(since) {
			continue
		}
		k.New++
		k.DelegatedToNew += delegated[t.Tool.Role]
		shown, called := place < k.Limit, delegated[t.Tool.Role] > 0
		if shown {
			k.NewShown++
		}
		if called {
			k.NewCalled++
		}
		if shown || called {
			continue
		}
		if k.NewStarving++; len(k.Starving) < maxStarving {
			k.Starving = append(k.Starving, t.Tool.Role)
		}
	}
	return k, nil
}
