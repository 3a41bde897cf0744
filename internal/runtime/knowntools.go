package runtime

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/prompt"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Bounds of the selection of known tools: its cost does not grow with the registry.
const (
	maxConsidered = 1000 // best-ranked tools that are looked at
	maxLooked     = 5000 // methods of all of them that are looked at for a word of the task
	maxTaskNames  = 100  // keywords of the call that say something of the task
	// of all tools, where there are as many: those that have nothing to do with the task by their names alone
	leastShown        = 5
	maxArgumentText   = 2000 // bytes of the arguments whose words count
	maxShownMethods   = 8    // of a tool
	maxMethodLookups  = 24   // of all tools, for signatures
	maxSeenLookups    = 256  // of all tools, for whether the call's owner may see them
	maxSignatureShown = 160  // characters of a signature and its summary
)

// knownTools are the tools that the call's owner may see: those that the program to repair or replace calls, the call's own role and those that share a word
// with the task, by utility times relevance to it, and where they are fewer than five the best others, by their names alone.
func (c *selected) knownTools(ctx context.Context, q forgeRequest) []prompt.Tool {
	limit := c.policy.KnownToolsPromptLimit
	if limit == 0 {
		return nil
	}
	called := c.called(q)
	ranked, err := c.rankedTools(ctx, called)
	if err != nil {
		return nil
	}
	task, view, weak := c.taskWords(), c.registry(maxSeenLookups), weaknesses{}
	see := func(t store.RankedTool) (store.RankedTool, bool) { return view.tool(ctx, t) }
	var out []prompt.Tool
	lookups := maxMethodLookups
	share := func(t *store.RankedTool) float64 {
		shown, ok := see(*t) // without the contract and the methods that are another's
		if !ok {
			return 0
		}
		w := weak.of(ctx, c.opened, &shown)
		return w.share()
	}
	for _, t := range relatedTools(ranked, wanted{c.role, called, task, limit, see, maxLooked, share}) {
		known := prompt.Tool{Role: t.Tool.Role}
		if t.relevance > 0 {
			w := weak[t.Tool.Role]
			known.Purpose, known.Deliverable, known.Weak = t.Tool.Purpose, t.Tool.Deliverable, w.String()
		}
		for _, m := range byRelation(&t, called, task) {
			shown := agent.Quoted(m)
			if t.relevance > 0 && lookups > 0 && len(known.Methods) < maxShownMethods {
				lookups--
				shown = signatureOf(m, view.method(ctx, &t.Tool, m).takes)
			}
			known.Methods = append(known.Methods, shown)
		}
		out = append(out, known)
	}
	return out
}

// rankedTools are the best-ranked tools, and after them those that are called and do not rank that high. Methods whose programs the policy switches off make
// no tool relevant.
func (c *selected) rankedTools(ctx context.Context, called []store.Target) ([]store.RankedTool, error) {
	now := c.r.o.Now()
	ranked, err := c.r.store.RankTools(ctx, now, maxConsidered)
	if err != nil {
		return nil, err
	}
	for _, k := range called {
		if !slices.ContainsFunc(ranked, func(t store.RankedTool) bool { return t.Tool.Role == k.Role }) {
			if t, err := c.r.store.RankedTool(ctx, k.Role, now); err == nil {
				ranked = append(ranked, t)
			}
		}
	}
	for i := range ranked {
		if t := &ranked[i]; switchOf(c.policy, t.Tool.Role) != "" && len(t.Methods) > 0 {
			t.Methods = t.Methods[:1] // for the view, which leaves it out
		}
	}
	return ranked, nil
}

// signatureOf is the method's signature with its summary; its name where nothing is known of it.
func signatureOf(method string, f *agent.Interface) string {
	if f == nil {
		return agent.Quoted(method)
	}
	text := f.Signature(agent.Quoted(method))
	if f.Summary != "" {
		text += ", " + f.Summary
	}
	return Clip(text, maxSignatureShown)
}

// knownSignature is the method's signature, "" where it is not known.
func (c *selected) knownSignature(ctx context.Context, role, method string) string {
	t, _ := c.r.store.Tool(ctx, role) // a role without a tool is not a person's
	t.Role = role
	if f := c.registry(1).method(ctx, &t, method).takes; f != nil {
		return Clip(f.Signature(method), maxSignatureShown)
	}
	return ""
}

// A task is the words of what a call asks for, and how much each says of it.
type task map[string]int

// taskWords are the words of role, method, purpose and names of arguments, and with half the weight those of the arguments' texts.
func (c *selected) taskWords() task {
	words := task{}
	left := maxArgumentText
	for _, raw := range append(c.args[:len(c.args):len(c.args)], c.kwargs) {
		text := Clip(string(raw), left)
		words.add(text, 1)
		if left -= len(text); left <= 0 {
			break
		}
	}
	words.add(c.role, 2)
	words.add(c.method, 2)
	if k := c.terms.contract; k != nil {
		words.add(Clip(k.Purpose, 2000), 2)
	}
	names := agent.Keywords(c.kwargs)
	for _, name := range names[:min(len(names), maxTaskNames)] {
		words.add(Clip(name, 400), 2)
	}
	return words
}

// add gives the words of a text a weight.
func (k task) add(text string, weight int) {
	words := map[string]bool{}
	addWords(words, text)
	for w := range words {
		k[w] = weight
	}
}

// relevance is the weight of the task's words that the texts have.
func (k task) relevance(texts ...string) (sum int) {
	words := map[string]bool{}
	for _, t := range texts {
		addWords(words, Clip(t, 400))
	}
	for w := range words {
		sum += k[w]
	}
	return sum
}

// wanted describes the tools to select.
type wanted struct {
	own   string         // the call's role
	calls []store.Target // of the program to repair or replace: these tools come first
	task  task
	limit int
	see   func(store.RankedTool) (store.RankedTool, bool) // what the call's owner may see of a tool
	look  int                                             // methods that may still be looked at
	weak  func(*store.RankedTool) float64                 // the share of weak answers among a tool's newest
}

// A relatedTool is a tool with what it has to do with the task.
type relatedTool struct {
	store.RankedTool
	relevance int // 0 of none
	worth     float64
	called    bool
}

// ownRelevance is the relevance of the call's own role, which has the sibling methods, and of a tool that is called.
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

// utility is what a tool was worth of late, of which weak answers take their share. One that was never used may be as good as any.
func (w *wanted) utility(t *store.RankedTool) float64 { return 0.1 + t.Score*(1-w.weak(t)) }

// relatedTools selects of the tools, which come by their rank: those that are called, then by utility times relevance, then the best others up to five in all.
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
	// a weak answer only lowers the worth of those that come first
	for i := range related[:min(len(related), maxWeakTools)] {
		t := &related[i]
		t.worth = w.utility(&t.RankedTool) * float64(t.relevance)
	}
	slices.SortStableFunc(related, byWorth)
	slices.SortStableFunc(others, func(a, b relatedTool) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(says(&b), says(&a)))
	})
	out := w.seen(nil, related, w.limit)
	return w.seen(out, others, min(leastShown, w.limit))
}

// says is 1 of a tool that says what it is for.
func says(t *relatedTool) int { return min(1, len(t.Tool.Purpose)) }

// seen adds the tools that the call's owner may see, up to most in all.
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

// byRelation are the tool's methods: those that are called first, then those that share a word with the task.
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

// common words say nothing of a task.
var commonWords = strings.Fields(
	"the and for with from that this are its into all one two new get set has have not but any out per was will can each which their them then than when where who what how why use used uses using return returns given value values list object text number name first second argument arguments method methods call calls")

// addWords adds the words of a text: runs of letters and digits, split where lower case meets upper case, in lower case,
// without a plural s.
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
