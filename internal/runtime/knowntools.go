package runtime

import (
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
	maxConsidered     = 1000 // best-ranked tools that are looked at
	maxLooked         = 5000 // methods of all of them that are looked at for a word of the task
	maxTaskNames      = 100  // keywords of the call that say something of the task
	maxUnrelated      = 3    // shown where fewer than that are related to the task
	maxShownMethods   = 8    // of a tool
	maxMethodLookups  = 24   // of all tools, for signatures
	maxSeenLookups    = 256  // of all tools, for whether the call's owner may see them
	maxSignatureShown = 160  // characters of a signature and its summary
)

// knownTools are the tools that can matter for the task and that the call's owner may see, best-ranked first: the call's own role, those that share
// a word with the task, and up to three of the best others, those that say what they are for before those that do not.
func (c *selected) knownTools(ctx context.Context) []prompt.Tool {
	limit := c.policy.KnownToolsPromptLimit
	if limit == 0 {
		return nil
	}
	ranked, err := c.r.store.RankTools(ctx, c.r.o.Now(), maxConsidered)
	if err != nil {
		return nil
	}
	task, view := c.taskWords(), c.registry(maxSeenLookups)
	see := func(t store.RankedTool) (store.RankedTool, bool) { return view.tool(ctx, t) }
	var out []prompt.Tool
	lookups := maxMethodLookups
	for _, t := range relatedTools(ranked, wanted{c.role, task, limit, see, maxLooked}) {
		known := prompt.Tool{Role: t.Tool.Role, Purpose: t.Tool.Purpose, Deliverable: t.Tool.Deliverable}
		for _, m := range byRelation(t.Methods, task) {
			shown := agent.Quoted(m)
			if lookups--; lookups >= 0 && len(known.Methods) < maxShownMethods {
				view.left = max(view.left, 1)
				shown = signatureOf(m, view.method(ctx, &t.Tool, m).takes)
			}
			known.Methods = append(known.Methods, shown)
		}
		out = append(out, known)
	}
	return out
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

// taskWords are the words of what the call asks for.
func (c *selected) taskWords() map[string]bool {
	task := map[string]bool{}
	addWords(task, c.role)
	addWords(task, c.method)
	if k := c.terms.contract; k != nil {
		addWords(task, Clip(k.Purpose, 2000))
	}
	names := agent.Keywords(c.kwargs)
	for _, name := range names[:min(len(names), maxTaskNames)] {
		addWords(task, Clip(name, 400))
	}
	return task
}

// wanted describes the tools to select.
type wanted struct {
	own   string          // the call's role
	task  map[string]bool // words
	limit int
	see   func(store.RankedTool) (store.RankedTool, bool) // what the call's owner may see of a tool
	look  int                                             // methods that may still be looked at
}

func (w *wanted) relates(t *store.RankedTool) bool {
	if t.Tool.Role == w.own || relates(w.task, t.Tool.Role, t.Tool.Purpose) {
		return true
	}
	look := t.Methods[:min(len(t.Methods), w.look)]
	w.look -= len(look)
	return slices.ContainsFunc(look, func(m string) bool { return relates(w.task, m) })
}

// relatedTools selects of the ranked tools, in their order.
func relatedTools(ranked []store.RankedTool, w wanted) []store.RankedTool {
	var related, others, silent []store.RankedTool
	see := func(to *[]store.RankedTool, t store.RankedTool) {
		if seen, ok := w.see(t); ok {
			*to = append(*to, seen)
		}
	}
	for _, t := range ranked {
		switch {
		case w.relates(&t):
			if see(&related, t); len(related) == w.limit {
				return related
			}
		case t.Tool.Purpose == "":
			silent = append(silent, t)
		case len(others) < maxUnrelated:
			see(&others, t)
		}
	}
	add := min(max(0, maxUnrelated-len(related)), w.limit-len(related))
	for len(others) < add && len(silent) > 0 { // which say the least
		see(&others, silent[0])
		silent = silent[1:]
	}
	chosen := map[string]store.RankedTool{}
	for _, t := range append(related, others[:min(add, len(others))]...) {
		chosen[t.Tool.Role] = t
	}
	var out []store.RankedTool
	for _, t := range ranked {
		if seen, ok := chosen[t.Tool.Role]; ok {
			out = append(out, seen)
		}
	}
	return out
}

// byRelation puts the methods that share a word with the task first.
func byRelation(methods []string, task map[string]bool) []string {
	var related, others []string
	for _, m := range methods {
		if relates(task, m) {
			related = append(related, m)
		} else {
			others = append(others, m)
		}
	}
	return append(related, others...)
}

// relates reports whether a text has a word of the task.
func relates(task map[string]bool, texts ...string) bool {
	words := map[string]bool{}
	for _, t := range texts {
		addWords(words, Clip(t, 400))
	}
	for w := range words {
		if task[w] {
			return true
		}
	}
	return false
}

// common words say nothing of a task.
var commonWords = strings.Fields("the and for with from that this are its into all one two new get set has have not but any out per was will can each which their them then than when where who what how why use used uses using return returns given value values list object text number name first second argument arguments method methods call calls")

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
	for _, w := range strings.FieldsFunc(b.String(), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if len(w) < 3 || slices.Contains(commonWords, w) {
			continue
		}
		if len(w) > 4 && strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") {
			w = strings.TrimSuffix(w, "s")
		}
		to[w] = true
	}
}
