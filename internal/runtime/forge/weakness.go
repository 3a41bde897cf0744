package forge

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/evolve"
	"github.com/recurgentd/recurgentd/internal/runtime/prompt"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Bounds of the search for weak answers of tools.
const (
	newestWeak      = 20  // calls per method
	maxWeakMethods  = 4   // per tool
	maxWeakTools    = 24  // tools most related to the task
	maxWeakReasons  = 3   // reasons that are named
	maxBuilderTools = 8   // called tools in the evidence of a method
	maxWeakText     = 160 // bytes
)

// A weakness counts the weak answers among the newest of a tool, and lists the reasons.
type weakness struct {
	weak, of int
	reasons  []string
}

// share returns the fraction of weak answers, from 0 to 1.
func (w *weakness) share() float64 { return float64(w.weak) / float64(max(1, w.of)) }

// String returns "" if no answer was weak.
func (w *weakness) String() string {
	if w.weak == 0 {
		return ""
	}
	return agent.Clip(fmt.Sprintf("%d of its last %d: %s", w.weak, w.of,
		strings.Join(w.reasons[:min(len(w.reasons), maxWeakReasons)], ", ")), maxWeakText)
}

// weaknessOf examines the newest answers of the role's methods. Reasons contain only names that the deliverable
// declares, and nothing else of a value.
func weaknessOf(ctx context.Context, c *call.Call, role string, deliverable json.RawMessage,
	methods ...string) (w weakness) {
	for _, m := range methods[:min(len(methods), maxWeakMethods)] {
		known, err := c.Env.Store.Evidence(ctx, role, m)
		if err != nil {
			continue // a poorer prompt is better than no program
		}
		weak, of, reasons := known.Weak(newestWeak)
		w.weak, w.of, w.reasons = w.weak+weak, w.of+of, append(w.reasons, reasons...)
	}
	if w.weak > 0 {
		w.reasons = evolve.WeakKinds(w.reasons,
			func(name string) bool { return strings.Contains(string(deliverable), strconv.Quote(name)) })
	}
	return w
}

// weaknesses caches the weaknesses of at most maxWeakTools tools while a prompt is built.
type weaknesses map[string]weakness

// of returns the tool's weakness. Beyond maxWeakTools tools it returns the zero value.
func (known weaknesses) of(ctx context.Context, c *call.Call, t *store.RankedTool) weakness {
	w, seen := known[t.Tool.Role]
	if !seen && len(known) < maxWeakTools {
		w = weaknessOf(ctx, c, t.Tool.Role, t.Tool.Deliverable, t.Methods...)
		known[t.Tool.Role] = w
	}
	return w
}

// calledBy returns the methods of other roles, sorted, that the failing program or the one to replace calls: those of
// the failing run, and those that the programs have called or name. Programs that are switched off are ignored.
func calledBy(c *call.Selection, q Request) (out []store.Target) {
	names := slices.Clone(q.Basis.Attempt.Tools)
	programs := []*agent.Generation{q.Basis.Attempt.Program}
	if !c.SwitchedOff() {
		programs = append(programs, q.Predecessor)
	}
	for _, g := range programs {
		if g == nil {
			continue
		}
		names = append(names, c.Env.Facts.Of(g).Tools...)
		if g.Effects != nil {
			names = append(names, g.Effects.Tools...)
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		dot := strings.LastIndexByte(name, '.') // "*", which stands for computed tools, has none
		if dot >= 0 && name[:dot] != c.Role && len(out) < maxBuilderTools {
			out = append(out, store.Target{Role: name[:dot], Method: name[dot+1:]})
		}
	}
	return out
}

// describeDelegates adds which tools that the program calls gave weak answers. The model can strengthen their
// contracts.
func describeDelegates(ctx context.Context, c *call.Selection, e *evidenceText, q Request) {
	for _, k := range calledBy(c, q) {
		t, err := c.Env.Store.RankedTool(ctx, k.Role, c.Env.Now())
		if err != nil {
			continue
		}
		t.Methods = []string{k.Method}
		if t, shown := c.Registry(1).Tool(ctx, t); shown && len(t.Methods) > 0 {
			if w := weaknessOf(ctx, c.Call, k.Role, t.Tool.Deliverable, k.Method); w.weak > 0 {
				e.add(prompt.Public(fmt.Sprintf(
					"answers of %s.%s, which the program called, were weak, %s: a contract that you delegate with can demand more", k.Role, k.Method, &w)))
			}
		}
	}
}
