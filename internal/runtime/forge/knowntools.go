package forge

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/prompt"
	"github.com/recurgentd/recurgentd/internal/runtime/selection"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Bounds of the selection of known tools, which keep its cost independent of the registry's size.
const (
	maxConsidered = 1000 // best-ranked tools that are considered
	maxLooked     = 5000 // methods, over all tools, that are searched for a word of the task
	maxTaskNames  = 100  // keywords of the call that count as words of the task
	// tools shown if the registry has as many; those unrelated to the task are shown by their names alone
	leastShown        = 5
	maxArgumentText   = 2000 // bytes of the arguments whose words count
	maxShownMethods   = 8    // per tool
	maxMethodLookups  = 24   // over all tools, to show signatures
	maxSeenLookups    = 256  // over all tools, to check whether the call's owner may see them
	maxSignatureShown = 160  // characters of a signature and its summary
)

// knownTools returns the tools to show in the prompt, among those that the call's owner may see. The tools that the
// program to repair or replace calls come first. Then follow the call's own role and the tools that share a word with
// the task, ordered by utility times relevance. If there are fewer than five, the best others are added by their names
// alone.
func knownTools(ctx context.Context, c *call.Selection, q Request) []prompt.Tool {
	limit := c.Policy.KnownToolsPromptLimit
	if limit == 0 {
		return nil
	}
	called := calledBy(c, q)
	ranked, err := rankedTools(ctx, c, called)
	if err != nil {
		return nil
	}
	task, view, weak := taskWords(c), c.Registry(maxSeenLookups), weaknesses{}
	see := func(t store.RankedTool) (store.RankedTool, bool) { return view.Tool(ctx, t) }
	var out []prompt.Tool
	lookups := maxMethodLookups
	share := func(t *store.RankedTool) float64 {
		shown, ok := see(*t) // without the contract and the methods that are another's
		if !ok {
			return 0
		}
		w := weak.of(ctx, c.Call, &shown)
		return w.share()
	}
	for _, t := range relatedTools(ranked, wanted{c.Role, called, task, limit, see, maxLooked, share}) {
		known := prompt.Tool{Role: t.Tool.Role}
		if t.relevance > 0 {
			w := weak[t.Tool.Role]
			known.Purpose, known.Deliverable, known.Weak = t.Tool.Purpose, t.Tool.Deliverable, w.String()
		}
		for _, m := range byRelation(&t, called, task) {
			shown := agent.Quoted(m)
			if t.relevance > 0 && lookups > 0 && len(known.Methods) < maxShownMethods {
				lookups--
				shown = signatureOf(m, view.Method(ctx, &t.Tool, m).Takes)
			}
			known.Methods = append(known.Methods, shown)
		}
		out = append(out, known)
	}
	return out
}

// rankedTools returns the best-ranked tools, followed by the called tools that do not rank that high. If the policy
// switches off a role's programs, all but one of its methods are removed, so its methods do not make it relevant.
func rankedTools(ctx context.Context, c *call.Selection, called []store.Target) ([]store.RankedTool, error) {
	now := c.Env.Now()
	ranked, err := c.Env.Store.RankTools(ctx, now, maxConsidered)
	if err != nil {
		return nil, err
	}
	for _, k := range called {
		if !slices.ContainsFunc(ranked, func(t store.RankedTool) bool { return t.Tool.Role == k.Role }) {
			if t, err := c.Env.Store.RankedTool(ctx, k.Role, now); err == nil {
				ranked = append(ranked, t)
			}
		}
	}
	for i := range ranked {
		if t := &ranked[i]; selection.Switch(c.Policy, t.Tool.Role) != "" && len(t.Methods) > 0 {
			t.Methods = t.Methods[:1] // kept for the view, which leaves it out
		}
	}
	return ranked, nil
}

// signatureOf returns the method's signature with its summary, or only its name if the interface is unknown.
func signatureOf(method string, f *agent.Interface) string {
	if f == nil {
		return agent.Quoted(method)
	}
	text := f.Signature(agent.Quoted(method))
	if f.Summary != "" {
		text += ", " + f.Summary
	}
	return agent.Clip(text, maxSignatureShown)
}

// knownSignature returns the method's signature, or "" if it is unknown.
func knownSignature(ctx context.Context, c *call.Selection, role, method string) string {
	t, _ := c.Env.Store.Tool(ctx, role) // a missing tool counts as not made by a person
	t.Role = role
	if f := c.Registry(1).Method(ctx, &t, method).Takes; f != nil {
		return agent.Clip(f.Signature(method), maxSignatureShown)
	}
	return ""
}

// A task maps the words of a call to their weights.
type task map[string]int

// taskWords returns the words of the role, the method, the purpose and the argument names, and with half the weight the
// words of the arguments' values.
func taskWords(c *call.Selection) task {
	words := task{}
	left := maxArgumentText
	for _, raw := range append(c.Args[:len(c.Args):len(c.Args)], c.Kwargs) {
		text := agent.Clip(string(raw), left)
		words.add(text, 1)
		if left -= len(text); left <= 0 {
			break
		}
	}
	words.add(c.Role, 2)
	words.add(c.Method, 2)
	if k := c.Terms.Contract; k != nil {
		words.add(agent.Clip(k.Purpose, 2000), 2)
	}
	names := agent.Keywords(c.Kwargs)
	for _, name := range names[:min(len(names), maxTaskNames)] {
		words.add(agent.Clip(name, 400), 2)
	}
	return words
}

// add sets the weight of a text's words.
func (k task) add(text string, weight int) {
	words := map[string]bool{}
	addWords(words, text)
	for w := range words {
		k[w] = weight
	}
}

// relevance returns the total weight of the task's words that occur in the texts.
func (k task) relevance(texts ...string) (sum int) {
	words := map[string]bool{}
	for _, t := range texts {
		addWords(words, agent.Clip(t, 400))
	}
	for w := range words {
		sum += k[w]
	}
	return sum
}

// wanted describes the tools to select.
type wanted struct {
	own   string         // the call's role
	calls []store.Target // calls of the program to repair or replace: their tools come first
	task  task
	limit int
	see   func(store.RankedTool) (store.RankedTool, bool) // returns what the call's owner may see of a tool
	look  int                                             // methods that may still be searched
	weak  func(*store.RankedTool) float64                 // returns the share of weak answers among a tool's newest
}

// A relatedTool is a tool with its relation to the task.
type relatedTool struct {
	store.RankedTool
	relevance int // 0 means unrelated
	worth     float64
	called    bool
}

// ownRelevance is added for the call's own role, which has the sibling methods, and for a called tool.
const ownRelevance = 8

func (w *wanted) relevance(t *store.RankedTool) int {
	look := t.Methods[:min(len(t.Methods), w.look)]
	w.look -= len(look)
	out := w.task.relevance(append([]string{t.Tool.Role, t.Tool.Purpose}, look...)...)
	if t.Tool.Role == w.own || w.called(t) {
		out += ownRelevance
	}
	return out
}

func (w *wanted) called(t *store.RankedTool) bool {
	return slices.ContainsFunc(w.calls, func(k store.Target) bool { return k.Role == t.Tool.Role })
}

// utility returns how useful a tool was recently, reduced by its share of weak answers. The constant keeps a tool that
// was never used in the running.
func (w *wanted) utility(t *store.RankedTool) float64 { return 0.1 + t.Score*(1-w.weak(t)) }

// relatedTools selects among the tools, which are sorted by rank: first the called ones, then the related ones by
// utility times relevance, then the best others up to five in all, those with a purpose first.
func relatedTools(ranked []store.RankedTool, w wanted) []relatedTool {
	var related, others []relatedTool
	for _, t := range ranked {
		if r := w.relevance(&t); r > 0 {
			related = append(related, relatedTool{t, r, 0, w.called(&t)})
		} else {
			others = append(others, relatedTool{RankedTool: t})
		}
	}
	for i := range related {
		t := &related[i]
		t.worth = (0.1 + t.Score) * float64(t.relevance)
	}
	byWorth := func(a, b relatedTool) int {
		switch {
		case a.called && !b.called:
			return -1
		case b.called && !a.called:
			return 1
		}
		return cmp.Compare(b.worth, a.worth)
	}
	slices.SortStableFunc(related, byWorth)
	// refine the order of the first ones: looking up weak answers is costly, and they can only lower a tool's worth
	for i := range related[:min(len(related), maxWeakTools)] {
		t := &related[i]
		t.worth = w.utility(&t.RankedTool) * float64(t.relevance)
	}
	slices.SortStableFunc(related, byWorth)
	slices.SortStableFunc(others, func(a, b relatedTool) int {
		return cmp.Or(cmp.Compare(says(&b), says(&a)), cmp.Compare(b.Score, a.Score))
	})
	out := w.seen(nil, related, w.limit)
	return w.seen(out, others, min(leastShown, w.limit))
}

// says returns 1 if the tool has a purpose, otherwise 0.
func says(t *relatedTool) int { return min(1, len(t.Tool.Purpose)) }

// seen appends the tools that the call's owner may see, up to most in all.
func (w *wanted) seen(out, from []relatedTool, most int) []relatedTool {
	for _, t := range from {
		if len(out) >= most {
			break
		}
		if shown, ok := w.see(t.RankedTool); ok {
			t.RankedTool = shown
			out = append(out, t)
		}
	}
	return out
}

// byRelation returns the tool's methods: the called ones first, then those that share a word with the task.
func byRelation(t *relatedTool, calls []store.Target, words task) []string {
	var called, related, others []string
	for _, m := range t.Methods {
		switch {
		case slices.Contains(calls, store.Target{Role: t.Tool.Role, Method: m}):
			called = append(called, m)
		case words.relevance(m) > 0:
			related = append(related, m)
		default:
			others = append(others, m)
		}
	}
	return slices.Concat(called, related, others)
}

// commonWords are too common to relate a tool to a task.
var commonWords = strings.Fields(
	"the and for with from that this are its into all one two new get set has have not but any out per was will can each which their them then than when where who what how why use used uses using return returns given value values list object text number name first second argument arguments method methods call calls")

// addWords adds the words of a text: runs of letters and digits, split where an upper-case letter follows a lower-case
// one, converted to lower case, without a plural s.
func addWords(to map[string]bool, text string) {
	var b strings.Builder
	var last rune
	for _, r := range text {
		if unicode.IsUpper(r) && unicode.IsLower(last) {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
		last = r
	}
	for _, w := range strings.FieldsFunc(b.String(), func(r rune) bool {
		return !unicode.IsLetter(r) &&
			!unicode.IsDigit(r)
	}) {
		if len(w) < 3 || slices.Contains(commonWords, w) {
			continue
		}
		if len(w) > 4 && strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") {
			w = strings.TrimSuffix(w, "s")
		}
		to[w] = true
	}
}
