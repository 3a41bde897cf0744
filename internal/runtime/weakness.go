package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/evolve"
	"github.com/recurgentd/recurgentd/internal/runtime/prompt"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Bounds of what is looked at for weak answers of tools.
const (
	newestWeak      = 20  // calls of a method
	maxWeakMethods  = 4   // of a tool
	maxWeakTools    = 24  // of those that have most to do with a task
	maxWeakReasons  = 3   // that are named
	maxBuilderTools = 8   // that a program called, in the evidence of its method
	maxWeakText     = 160 // bytes
)

// A weakness is how many of the newest answers of a tool were weak, and why.
type weakness struct {
	weak, of int
	reasons  []string
}

// share is the part of the answers that were weak, from 0 to 1.
func (w *weakness) share() float64 { return float64(w.weak) / float64(max(1, w.of)) }

// String is empty where nothing was weak.
func (w *weakness) String() string {
	if w.weak == 0 {
		return ""
	}
	return Clip(fmt.Sprintf("%d of its last %d: %s", w.weak, w.of, strings.Join(w.reasons[:min(len(w.reasons), maxWeakReasons)], ", ")), maxWeakText)
}

// weaknessOf looks at the newest answers of the role's methods. Reasons name what the deliverable declares, and nothing else of a value.
func (c *opened) weaknessOf(ctx context.Context, role string, deliverable json.RawMessage, methods ...string) (w weakness) {
	for _, m := range methods[:min(len(methods), maxWeakMethods)] {
		known, err := c.r.store.Evidence(ctx, role, m)
		if err != nil {
			continue // a poorer prompt is better than no program
		}
		weak, of, reasons := known.Weak(newestWeak)
		w.weak, w.of, w.reasons = w.weak+weak, w.of+of, append(w.reasons, reasons...)
	}
	if w.weak > 0 {
		w.reasons = evolve.WeakKinds(w.reasons, func(name string) bool { return strings.Contains(string(deliverable), strconv.Quote(name)) })
	}
	return w
}

// weaknesses remembers those of the tools that a prompt looks at, at most maxWeakTools of them.
type weaknesses map[string]weakness

func (known weaknesses) of(ctx context.Context, c *opened, t *store.RankedTool) weakness {
	w, seen := known[t.Tool.Role]
	if !seen && len(known) < maxWeakTools {
		w = c.weaknessOf(ctx, t.Tool.Role, t.Tool.Deliverable, t.Methods...)
		known[t.Tool.Role] = w
	}
	return w
}

// describeDelegates says which of the tools that the method's program called gave weak answers: who delegates writes their contracts.
func (c *selected) describeDelegates(ctx context.Context, e *evidenceText) {
	g := c.artifact.Current()
	if g == nil {
		return
	}
	called := slices.Clone(c.r.facts.of(g).Tools)
	if g.Effects != nil {
		called = append(called, g.Effects.Tools...)
	}
	slices.Sort(called)
	called = slices.Compact(called)
	for _, name := range called[:min(len(called), maxBuilderTools)] {
		dot := strings.LastIndexByte(name, '.') // of the method: "*" is a tool that is computed
		if dot < 0 || name[:dot] == c.role {
			continue
		}
		role, method := name[:dot], name[dot+1:]
		t, err := c.r.store.RankedTool(ctx, role, c.r.o.Now())
		if err != nil {
			continue
		}
		if t, shown := c.registry(1).tool(ctx, t); shown {
			if w := c.weaknessOf(ctx, role, t.Tool.Deliverable, method); w.weak > 0 {
				e.add(prompt.Public(fmt.Sprintf("answers of %s, which the program called, were weak, %s: a contract that you delegate with can demand more", name, &w)))
			}
		}
	}
}
